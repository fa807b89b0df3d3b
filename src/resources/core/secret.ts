/** The Secret resource: like a ConfigMap, for confidential data. Some types require certain keys. */
import { type Secret, Secrets } from '#apis/core/v1.ts'
import { ageColumn, nameColumn } from '#apiserver/registry/columns.ts'
import { defineResource, type Resource } from '#apiserver/registry/resource.ts'
import { parseJson } from '#lib/json/json.ts'
import { isJsonObject } from '#lib/json/value.ts'
import { semanticEqual } from '#meta/object.ts'
import { asJson, type FieldError, fieldPath } from '#meta/validation/field-path.ts'
import { configMapKey } from '#meta/validation/names.ts'

import { keyPairComplaint } from './secret-key-pair.ts'

/** The total size of values; the object may be larger by its metadata. */
const MAX_DATA_BYTES = 1024 * 1024

const SERVICE_ACCOUNT_NAME = 'kubernetes.io/service-account.name'

export const secret: Resource<Secret> = defineResource<Secret>({
  kind: Secrets,
  metadataRules: { update: ['change', 'whole'] },
  applyDefaults(object) {
    absorbStringData(object)
    object.type ||= 'Opaque'
  },
  // Admission may have added stringData again.
  prepareCreate: absorbStringData,
  prepareUpdate: absorbStringData,
  validate: validateSecret,
  validateUpdate: (next, old) => [...validateChange(next, old), ...validateSecret(next)],
  warnings: ({ type, data = {} }) =>
    type === 'kubernetes.io/tls' ? keyPairComplaint(bytesOf(data, 'tls.crt'), bytesOf(data, 'tls.key')) : [],
  fieldSelectors: { type: ({ type = '' }) => type },
  unknownField: (label) => `field label not supported: ${label}`,
  columns: [
    nameColumn,
    { name: 'Type', value: ({ type = '' }) => type },
    { name: 'Data', value: ({ data = {} }) => Object.keys(data).length },
    ageColumn,
  ],
})

/** stringData is write-only; the stored object has bytes only. */
function absorbStringData(object: Secret): void {
  const { stringData } = object
  delete object.stringData
  if (stringData === undefined || Object.keys(stringData).length === 0) return
  const encoded = Object.entries(stringData).map(([name, text]) => [name, Buffer.from(text).toString('base64')])
  object.data = { ...object.data, ...(Object.fromEntries(encoded) as Record<string, string>) }
}

type Data = Readonly<Record<string, string>>

function bytesOf(data: Data, name: string): Buffer {
  return Buffer.from(Object.hasOwn(data, name) ? (data[name] ?? '') : '', 'base64')
}

type TypeRule = (data: Data, object: Secret) => FieldError[]

const typeRules: ReadonlyMap<string, TypeRule> = new Map<string, TypeRule>([
  [
    'kubernetes.io/service-account-token',
    (_data, { metadata }) =>
      (metadata.annotations?.[SERVICE_ACCOUNT_NAME] ?? '') === ''
        ? [fieldPath('metadata.annotations').key(SERVICE_ACCOUNT_NAME).required()]
        : [],
  ],
  ['kubernetes.io/dockercfg', needsJson('.dockercfg')],
  ['kubernetes.io/dockerconfigjson', needsJson('.dockerconfigjson')],
  [
    'kubernetes.io/basic-auth',
    // One of the two suffices, and may be empty.
    (data) =>
      Object.hasOwn(data, 'username') || Object.hasOwn(data, 'password') ? [] : needs('username', 'password')(data),
  ],
  [
    'kubernetes.io/ssh-auth',
    (data) =>
      bytesOf(data, 'ssh-privatekey').length === 0 ? [fieldPath('data').key('ssh-privatekey').required()] : [],
  ],
  ['kubernetes.io/tls', needs('tls.crt', 'tls.key')],
])

function needs(...names: readonly string[]): (data: Data) => FieldError[] {
  return (data) =>
    names.filter((name) => !Object.hasOwn(data, name)).map((name) => fieldPath('data').key(name).required())
}

function needsJson(name: string): TypeRule {
  return (data) => {
    if (!Object.hasOwn(data, name)) return [fieldPath('data').key(name).required()]
    const complaint = jsonObjectComplaint(bytesOf(data, name))
    return complaint === undefined ? [] : [fieldPath('data').key(name).invalid('<secret contents redacted>', complaint)]
  }
}

function jsonObjectComplaint(bytes: Buffer): string | undefined {
  try {
    const value = parseJson(bytes)
    if (value === null || isJsonObject(value)) return undefined
    const shape = Array.isArray(value) ? 'array' : typeof value === 'boolean' ? 'bool' : typeof value
    return `json: cannot unmarshal ${shape} into Go value of type map[string]interface {}`
  } catch (error) {
    return (error as Error).message
  }
}

function validateSecret(object: Secret): FieldError[] {
  const { data = {}, type = '' } = object
  const errors: FieldError[] = []
  let bytes = 0
  for (const [name, value] of Object.entries(data)) {
    errors.push(...fieldPath('data').key(name).check(name, configMapKey))
    // Bytes may be null in JSON, because Go allows nil.
    bytes += Buffer.byteLength(value ?? '', 'base64')
  }
  if (bytes > MAX_DATA_BYTES) errors.push(fieldPath('data').tooLong(MAX_DATA_BYTES))
  return [...errors, ...(typeRules.get(type)?.(data, object) ?? [])]
}

function validateChange(next: Secret, old: Secret): FieldError[] {
  const errors =
    next.type === old.type
      ? []
      : [fieldPath('type').invalid(asJson(next.type ?? ''), 'field is immutable', 'immutable')]
  if (old.immutable !== true) return errors
  const rule = 'field is immutable when `immutable` is set'
  if (next.immutable !== true) errors.push(fieldPath('immutable').forbidden(rule))
  if (!semanticEqual(next.data, old.data)) errors.push(fieldPath('data').forbidden(rule))
  return errors
}
