/** Joins the cluster file of a user with a template. Pure. */
import { isJsonObject } from '#lib/json/value.ts'
import { semanticEqual } from '#meta/object.ts'

export interface TemplateRules {
  readonly config: Readonly<Record<string, unknown>>
  /** Paths; what is below them may differ too. */
  readonly editable: readonly string[]
}

export interface JoinedFile {
  readonly config: Readonly<Record<string, unknown>>
  /** The locked paths at which the file differs from the template. */
  readonly locked: readonly string[]
}

/** The template, with the editable parts of `file`. Locked parts may be absent in the file, or equal to the template. */
export function joinTemplate(template: TemplateRules, file: Readonly<Record<string, unknown>>): JoinedFile {
  const locked: string[] = []
  const config = joinObjects(template.config, file, { path: '', editable: template.editable, locked })
  return { config, locked }
}

interface Position {
  readonly path: string
  readonly editable: readonly string[]
  readonly locked: string[]
}

type Json = Readonly<Record<string, unknown>>

function joinObjects(template: Json, file: Json, position: Position): Json {
  const own = Object.entries(file).flatMap(([key, value]) => {
    const path = position.path === '' ? key : `${position.path}.${key}`
    const joined = join(Object.hasOwn(template, key) ? template[key] : undefined, value, { ...position, path })
    return joined === undefined ? [] : [[key, joined] as const]
  })
  return { ...template, ...Object.fromEntries(own) }
}

/** Undefined: the value stays away. */
function join(template: unknown, value: unknown, position: Position): unknown {
  const { path, editable, locked } = position
  if (editable.some((one) => path === one || path.startsWith(`${one}.`))) return value
  if (semanticEqual(template, value)) return template
  const hasEditable = editable.some((one) => one.startsWith(`${path}.`))
  if (isJsonObject(value) && (isJsonObject(template) || (template === undefined && hasEditable)))
    return joinObjects(isJsonObject(template) ? template : {}, value, position)
  locked.push(path)
  return template
}
