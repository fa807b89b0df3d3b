/** Moves the ownership of fields from a client-side manager to the manager of server-side apply. */
import type { FieldsV1, ManagedFieldsEntry } from '#meta/object.ts'

/** Merges the entries of `names` into the apply entry of `manager`. */
export function unionOf(
  entries: readonly ManagedFieldsEntry[],
  names: ReadonlySet<string | undefined>,
  manager: string,
): ManagedFieldsEntry[] {
  let result = [...entries]
  for (const name of names) result = joined(result, name, manager)
  return result
}

function joined(
  entries: readonly ManagedFieldsEntry[],
  name: string | undefined,
  manager: string,
): ManagedFieldsEntry[] {
  const isTheirs = (entry: ManagedFieldsEntry): boolean =>
    entry.manager === name && entry.operation === 'Update' && (entry.subresource ?? '') === ''
  const isOurs = (entry: ManagedFieldsEntry): boolean =>
    entry.manager === manager && entry.operation === 'Apply' && (entry.subresource ?? '') === ''
  const own = entries.findIndex(isOurs)
  const at = own < 0 ? entries.findIndex(isTheirs) : own
  const target = entries[at]
  if (target === undefined) return [...entries]
  const theirs = entries.find((entry) => isTheirs(entry) && entry.apiVersion === target.apiVersion)
  const fieldsV1 = theirs === undefined ? (target.fieldsV1 ?? {}) : union(target.fieldsV1 ?? {}, theirs.fieldsV1 ?? {})
  const ours: ManagedFieldsEntry = { ...target, manager, operation: 'Apply', fieldsV1 }
  return entries.flatMap((entry, index) => (index === at ? [ours] : isTheirs(entry) ? [] : [entry]))
}

function union(one: FieldsV1, other: FieldsV1): FieldsV1 {
  const merged: FieldsV1 = { ...one }
  for (const [key, value] of Object.entries(other)) {
    merged[key] = union((merged[key] ?? {}) as FieldsV1, value as FieldsV1)
  }
  return merged
}
