/** ConfigMap: configuration as text or bytes, for pods to read. */
import { type ConfigMap, ConfigMaps } from '#apis/core/v1.ts'
import { ageColumn, nameColumn } from '#apiserver/registry/columns.ts'
import { defineResource, type Resource } from '#apiserver/registry/resource.ts'
import { semanticEqual } from '#meta/object.ts'
import { type FieldError, forbidden, invalid, key, tooLong } from '#meta/validation/field-error.ts'
import { configMapKey } from '#meta/validation/names.ts'
import { complaining } from '#meta/validation/rules.ts'

/** All values together; the object itself may be larger by its metadata. */
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
  for (const [name, value] of Object.entries(data)) {
    errors.push(...complaining(key('data', name), name, configMapKey(name)))
    if (Object.hasOwn(binaryData, name))
      errors.push(invalid(key('data', name), name, 'duplicate of key present in binaryData'))
    bytes += Buffer.byteLength(value)
  }
  for (const [name, value] of Object.entries(binaryData)) {
    errors.push(...complaining(key('binaryData', name), name, configMapKey(name)))
    // In Go, and so in JSON, bytes may be nil.
    bytes += Buffer.byteLength(value ?? '', 'base64')
  }
  return bytes > MAX_DATA_BYTES ? [...errors, tooLong('[]', MAX_DATA_BYTES)] : errors
}

/** Once immutable, always: nodes have stopped watching it. */
function validateImmutable(next: ConfigMap, old: ConfigMap): FieldError[] {
  if (old.immutable !== true) return []
  const undone = next.immutable === true ? [] : [forbidden('immutable', 'field is immutable when `immutable` is set')]
  return [...undone, ...fixed('data', next.data, old.data), ...fixed('binaryData', next.binaryData, old.binaryData)]
}

function fixed(field: string, next: unknown, old: unknown): FieldError[] {
  return semanticEqual(next, old) ? [] : [forbidden(field, 'field is immutable when `immutable` is set')]
}

function countEntries({ data = {}, binaryData = {} }: ConfigMap): number {
  return Object.keys(data).length + Object.keys(binaryData).length
}
