/** Validates the fields of the scale subresource: int32 replicas, and a selector as text. */
import type { CustomResourceSubresourceScale } from '#apis/apiextensions/v1.ts'
import { goJson } from '#lib/go/text.ts'
import { isJsonObject, type JsonObject, type JsonValue } from '#lib/json/value.ts'
import { collectErrors, type FieldError, fieldPath } from '#meta/validation/field-path.ts'

const MAX_REPLICAS = 2 ** 31 - 1

/** With `part` status, only the fields in the status. */
export function validateScale(
  object: JsonObject,
  { specReplicasPath, statusReplicasPath, labelSelectorPath = '' }: CustomResourceSubresourceScale,
  part?: 'status',
): FieldError[] {
  return collectErrors(
    part !== 'status' && validateReplicas(object, specReplicasPath),
    validateReplicas(object, statusReplicasPath),
    labelSelectorPath !== '' && validateSelector(object, labelSelectorPath),
  )
}

function validateReplicas(object: JsonObject, path: string): FieldError[] {
  const found = valueAt(object, path, 'int64')
  if (typeof found === 'string') return [fieldPath(path).invalid(0, found)]
  const replicas = Number(found.value ?? 0)
  if (replicas < 0) return [fieldPath(path).invalid(replicas, 'should be a non-negative integer')]
  if (replicas > MAX_REPLICAS)
    return [fieldPath(path).invalid(replicas, `should be less than or equal to ${MAX_REPLICAS}`)]
  return []
}

function validateSelector(object: JsonObject, path: string): FieldError[] {
  const found = valueAt(object, path, 'string')
  return typeof found === 'string' ? [fieldPath(path).invalid('', found)] : []
}

/** The value at `.spec.replicas`, or the error; the value is undefined if absent. */
function valueAt(
  object: JsonObject,
  path: string,
  expected: 'int64' | 'string',
): { readonly value: number | bigint | string | undefined } | string {
  const names = path.replace(/^\./, '').split('.')
  let at: JsonValue = object
  for (const [depth, name] of names.entries()) {
    if (!isJsonObject(at)) {
      return `.${names.slice(0, depth).join('.')} accessor error: ${goValue(at)} is of the type ${goType(at)}, expected map[string]interface{}`
    }
    if (!Object.hasOwn(at, name)) return { value: undefined }
    at = at[name] as JsonValue
  }
  if (goType(at) === expected) return { value: at as number | string }
  return `.${names.join('.')} accessor error: ${goValue(at)} is of the type ${goType(at)}, expected ${expected}`
}

function goType(value: JsonValue): string {
  if (value === null) return '<nil>'
  if (typeof value === 'string') return 'string'
  if (typeof value === 'boolean') return 'bool'
  if (Array.isArray(value)) return '[]interface {}'
  if (typeof value === 'bigint' || Number.isSafeInteger(value)) return 'int64'
  return typeof value === 'number' ? 'float64' : 'map[string]interface {}'
}

function goValue(value: JsonValue): string {
  if (value === null) return '<nil>'
  return typeof value === 'string' ? value : goJson(value)
}
