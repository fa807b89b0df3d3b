/** Conditions in the status of what configures flow control: each type once. */
import type { KubeObject } from '#meta/object.ts'
import { asJson, child, duplicate, type FieldError, index, required } from '#meta/validation/field-error.ts'

interface Conditioned {
  readonly conditions?: readonly { readonly type?: string }[]
}

/** Of the metadata that comes with a status nothing counts, not even another uid, which other kinds refuse. */
export function keepUid(next: KubeObject, old: KubeObject): void {
  if (old.metadata.uid !== undefined) next.metadata.uid = old.metadata.uid
}

export function validateStatusConditions(status: Conditioned | undefined): FieldError[] {
  const seen = new Set<string>()
  return (status?.conditions ?? []).flatMap(({ type = '' }, at) => {
    const field = child(index('status.conditions', at), 'type')
    const errors = seen.has(type) ? [duplicate(field, asJson(type))] : []
    seen.add(type)
    return type === '' ? [...errors, required(field)] : errors
  })
}
