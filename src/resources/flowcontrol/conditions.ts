/** Validates conditions in the status of flow control objects: each type once. */
import type { KubeObject } from '#meta/object.ts'
import { asJson, type FieldError, fieldPath } from '#meta/validation/field-path.ts'

interface ConditionList {
  readonly conditions?: readonly { readonly type?: string }[]
}

/** Metadata of a status update is ignored, even another uid, which other kinds reject. */
export function keepUid(next: KubeObject, old: KubeObject): void {
  if (old.metadata.uid !== undefined) next.metadata.uid = old.metadata.uid
}

export function validateStatusConditions(status: ConditionList | undefined): FieldError[] {
  const seen = new Set<string>()
  return fieldPath('status.conditions').each(status?.conditions, (path, { type = '' }) => {
    const field = path.child('type')
    const errors = seen.has(type) ? [field.duplicate(asJson(type))] : []
    seen.add(type)
    return type === '' ? [...errors, field.required()] : errors
  })
}
