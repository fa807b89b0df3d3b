/** Names the managers that own fields which an edit changes, from the object's managedFields. */
import type { FieldsV1, KubeObject, ManagedFieldsEntry } from '#meta/object.ts'

import { FIELD_MANAGER } from './changes.ts'
import { hasKeys, pathText } from './field-path.ts'

export interface Owned {
  readonly field: string
  readonly manager: string
}

/** Managers that own these fields by an apply: they will put their value back. Paths are those of `object`. */
export function ownersOf(object: KubeObject, paths: readonly (readonly (string | number)[])[]): readonly Owned[] {
  const entries = (object.metadata.managedFields ?? []).filter(({ manager }) => manager !== FIELD_MANAGER)
  return paths.flatMap((path) =>
    entries
      .filter((entry) => isApplied(entry) && owns(entry.fieldsV1, object, path))
      .map(({ manager = '' }) => ({ field: pathText(path), manager })),
  )
}

/** Controllers update fields as they need; an apply states how a field must be. */
function isApplied({ operation, manager }: ManagedFieldsEntry): boolean {
  return operation === 'Apply' || manager === 'kubectl-client-side-apply'
}

function owns(fields: FieldsV1 | undefined, value: unknown, path: readonly (string | number)[]): boolean {
  if (fields === undefined) return false
  const [step, ...rest] = path
  if (step === undefined) return true
  // A leaf in the set owns everything below it.
  if (Object.keys(fields).length === 0) return true
  const child = (value as Record<string | number, unknown> | undefined)?.[step]
  const next = typeof step === 'string' ? fields[`f:${step}`] : itemFields(fields, child)
  return owns(next as FieldsV1 | undefined, child, rest)
}

function itemFields(fields: FieldsV1, item: unknown): FieldsV1 | undefined {
  for (const [key, inner] of Object.entries(fields)) {
    if (key === `v:${JSON.stringify(item)}`) return inner as FieldsV1
    if (key.startsWith('k:') && hasKeys(item, JSON.parse(key.slice(2)) as Record<string, unknown>))
      return inner as FieldsV1
  }
  return undefined
}
