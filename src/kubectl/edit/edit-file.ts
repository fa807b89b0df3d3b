/** The text that is edited: the object with a word above it, what was wrong before, and what counts of it. */
import { isJsonObject, type JsonValue } from '#lib/json-value.ts'
import { writeJson } from '#lib/json-write.ts'
import { parseYaml } from '#lib/yaml.ts'

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

/** Lines that are no comments. */
export function withoutComments(text: string): string {
  return text
    .split('\n')
    .filter((line) => !line.trim().startsWith('#'))
    .join('\n')
}

/** What two texts are compared by: what they say, or their lines when they say nothing. */
export function meaningOf(text: string): string {
  try {
    return writeJson(parseYaml(text), { sortedKeys: true })
  } catch {
    // It is no YAML: its words decide.
    return withoutComments(text)
  }
}

export function hasContent(text: string): boolean {
  return withoutComments(text).trim() !== ''
}

/** What is wrong before anybody is asked; undefined: nothing. */
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
