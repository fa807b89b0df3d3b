/**
 * Reads defaults of flags from a config file. The field of a flag takes effect unless the command line contains the
 * flag.
 */
import { type FlagGroups, FlagError, type FlagSet, type NamedFlag, type ParsedFlags } from './flags.ts'

/** `parsed` with the document's values where no flag was given. `source` names the file in errors. Throws FlagError. */
export function applyConfig<V>(
  set: FlagSet<FlagGroups>,
  parsed: ParsedFlags<V>,
  document: unknown,
  source: string,
): ParsedFlags<V> {
  if (!isObject(document)) throw new FlagError(`Config file "${source}" must hold one object`)
  const values = { ...parsed.values } as Record<string, unknown>
  const warnings = [...parsed.warnings]
  for (const each of set.byName.values()) {
    const found = each.field === undefined ? undefined : valueAt(document, each.field.split('.'))
    // An explicit null is "not set", as for any pointer field of a Kubernetes config type.
    if (found === undefined || found === null || parsed.changed.has(each.name)) continue
    const value = read(each, found, source)
    values[each.name] = value
    warnings.push(...(each.kind.warnings?.(value) ?? []))
  }
  return { ...parsed, values: values as V, warnings }
}

/** Dotted paths of the document's fields that no flag claims, top-level `apiVersion` and `kind` excepted. */
export function unknownFields(set: FlagSet<FlagGroups>, document: unknown): string[] {
  const claimed = new Set([...set.byName.values()].flatMap(({ field }) => field ?? []))
  return leaves(document, '', claimed).filter((path) => path !== 'apiVersion' && path !== 'kind')
}

function leaves(value: unknown, path: string, claimed: ReadonlySet<string>): string[] {
  if (claimed.has(path)) return []
  const isBranch = path === '' || [...claimed].some((field) => field.startsWith(`${path}.`))
  if (!isBranch || !isObject(value)) return [path]
  return Object.entries(value).flatMap(([key, inner]) => leaves(inner, path === '' ? key : `${path}.${key}`, claimed))
}

function valueAt(document: unknown, path: readonly string[]): unknown {
  let at = document
  for (const key of path) {
    if (!isObject(at) || !Object.hasOwn(at, key)) return undefined
    at = at[key]
  }
  return at
}

function read({ kind, field }: NamedFlag, value: unknown, source: string): unknown {
  try {
    if (kind.read) return kind.read(value)
    if (typeof value === 'string') return kind.parse(value)
    if (typeof value === 'number' || typeof value === 'boolean') return kind.parse(String(value))
    throw new Error(`must be a ${kind.type}`)
  } catch (cause) {
    throw new FlagError(`Invalid field "${field}" in config file "${source}": ${(cause as Error).message}`, { cause })
  }
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
