/** The ConfigMap resource: configuration as text or bytes, for pods. */
import { type ConfigMap, ConfigMaps } from '#apis/core/v1.ts'
import { ageColumn, nameColumn } from '#apiserver/registry/columns.ts'
import { defineResource, type Resource } from '#apiserver/registry/resource.ts'
import { semanticEqual } from '#meta/object.ts'
import { type FieldError, fieldPath, type FieldPath } from '#meta/validation/field-path.ts'
import { configMapKey } from '#meta/validation/names.ts'

/** The total size of values; the object may be larger by its metadata. */
const MAX_DATA_BYTES = 1024 * 1024

export const configMap: Resource<ConfigMap> = defineResource({
  kind: ConfigMaps,
  metadataRules: { update: ['change', 'whole'] },
  validate: validateConfigMap,
  validateUpdate: (next, old) => [...validateImmutable(next, old), ...validateConfigMap(next)],
  columns: [nameColumn, { name: 'Data', value: countEntries }, ageColumn],
})

function validateConfigMap({ data = {}, binaryData = {} }: ConfigMap): FieldError[] {
  const errors: FieldError[] = []
  let bytes = 0
  // Not by Object.entries, which needs ten times as long for a hundred thousand keys.
  for (const name of Object.keys(data)) {
    errors.push(...fieldPath('data').key(name).check(name, configMapKey))
    if (Object.hasOwn(binaryData, name))
      errors.push(fieldPath('data').key(name).invalid(name, 'duplicate of key present in binaryData'))
    bytes += Buffer.byteLength(data[name] ?? '')
  }
  for (const name of Object.keys(binaryData)) {
    errors.push(...fieldPath('binaryData').key(name).check(name, configMapKey))
    // Bytes may be null in JSON, because Go allows nil.
    bytes += Buffer.byteLength(binaryData[name] ?? '', 'base64')
  }
  return bytes > MAX_DATA_BYTES ? [...errors, fieldPath('[]').tooLong(MAX_DATA_BYTES)] : errors
}

/** Immutability is permanent, because nodes have stopped watching the object. */
function validateImmutable(next: ConfigMap, old: ConfigMap): FieldError[] {
  if (old.immutable !== true) return []
  const undone =
    next.immutable === true ? [] : [fieldPath('immutable').forbidden('field is immutable when `immutable` is set')]
  return [
    ...undone,
    ...fixed(fieldPath('data'), next.data, old.data),
    ...fixed(fieldPath('binaryData'), next.binaryData, old.binaryData),
  ]
}

function fixed(path: FieldPath, next: unknown, old: unknown): FieldError[] {
  return semanticEqual(next, old) ? [] : [path.forbidden('field is immutable when `immutable` is set')]
}

function countEntries({ data = {}, binaryData = {} }: ConfigMap): number {
  return Object.keys(data).length + Object.keys(binaryData).length
}
