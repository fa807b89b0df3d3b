/** Writes and reads the file in the editor: the object, instructions above it and previous errors. */
import { isJsonObject, type JsonValue } from '#lib/json/value.ts'
import { writeJson } from '#lib/json/write.ts'
import { parseYaml } from '#lib/yaml/yaml.ts'

export interface Reason {
  readonly head: string
  readonly details: readonly string[]
}

const EDIT_HEADER = `# Please edit the object below. Lines beginning with a '#' will be ignored,
# and an empty file will abort the edit. If an error occurs while saving this file will be
# reopened with the relevant failures.
#
`

const LAST_APPLIED_HEADER = `# Please edit the 'last-applied-configuration' annotations below.
# Lines beginning with a '#' will be ignored, and an empty file will abort the edit.
#
`

export function headerText(isLastApplied: boolean, reasons: readonly Reason[]): string {
  const parts = reasons.map(({ head, details }) => {
    const lines = details.map((detail) => `# * ${commented(detail)}\n`)
    return `# ${commented(head)}${details.length > 0 ? ':' : ''}\n${lines.join('')}#\n`
  })
  return (isLastApplied ? LAST_APPLIED_HEADER : EDIT_HEADER) + parts.join('')
}

function commented(text: string): string {
  return text.replaceAll(/\n(?=[^#])/g, '\n# ')
}

/** Removes comment lines. */
export function withoutComments(text: string): string {
  return text
    .split('\n')
    .filter((line) => !line.trim().startsWith('#'))
    .join('\n')
}

/** The form in which two texts are compared: the parsed value, or the lines if there is none. */
export function meaningOf(text: string): string {
  try {
    return writeJson(parseYaml(text), { sortedKeys: true })
  } catch {
    // The text is no YAML, so its lines decide.
    return withoutComments(text)
  }
}

export function hasContent(text: string): boolean {
  return withoutComments(text).trim() !== ''
}

/** A problem that kubectl finds before it sends the object; undefined without one. */
export function problemOf(text: string): string | undefined {
  let value: JsonValue
  try {
    value = parseYaml(text)
  } catch (error) {
    return error instanceof Error ? error.message : String(error)
  }
  if (value === null || !isJsonObject(value)) return 'invalid object to validate'
  const missing = ['apiVersion', 'kind']
    .filter((field) => (value[field] ?? '') === '')
    .map((field) => `${field} not set`)
  if (missing.length === 0) return undefined
  return missing.length === 1 ? missing.join('') : `[${missing.join(', ')}]`
}
