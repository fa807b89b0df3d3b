/** Conditions in the status of what configures flow control: each type once. */
import { asJson, child, duplicate, type FieldError, index, required } from '#meta/validation/field-error.ts'

interface Conditioned {
  readonly conditions?: readonly { readonly type?: string }[]
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
