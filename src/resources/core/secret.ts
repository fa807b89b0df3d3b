/** Secret: like a ConfigMap, for what is not everybody's business. Some types promise to have certain keys. */
import { type Secret, Secrets } from '#apis/core/v1.ts'
import { ageColumn, nameColumn } from '#apiserver/registry/columns.ts'
import { defineResource, type Resource } from '#apiserver/registry/resource.ts'
import { isJsonObject } from '#lib/json-value.ts'
import { parseJson } from '#lib/json.ts'
import { semanticEqual } from '#meta/object.ts'
import { asJson, type FieldError, forbidden, invalid, key, required, tooLong } from '#meta/validation/field-error.ts'
import { configMapKey } from '#meta/validation/names.ts'
import { complaining } from '#meta/validation/rules.ts'

import { keyPairComplaint } from './secret-key-pair.ts'

/** All values together; the object itself may be larger by its metadata. */
const MAX_DATA_BYTES = 1024 * 1024

const SERVICE_ACCOUNT_NAME = 'kubernetes.io/service-account.name'

export const secret: Resource<Secret> = defineResource<Secret>({
  kind: Secrets,
  metadataRules: { update: ['change', 'whole'] },
  applyDefaults(object) {
    absorbStringData(object)
    object.type ||= 'Opaque'
  },
  // Admission may have added text once more.
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

/** Text is a convenience of writers; stored and answered are bytes only. */
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
        ? [required(key('metadata.annotations', SERVICE_ACCOUNT_NAME))]
        : [],
  ],
  ['kubernetes.io/dockercfg', needsJson('.dockercfg')],
  ['kubernetes.io/dockerconfigjson', needsJson('.dockerconfigjson')],
  [
    'kubernetes.io/basic-auth',
    // One of the two is enough, and may be empty.
    (data) =>
      Object.hasOwn(data, 'username') || Object.hasOwn(data, 'password') ? [] : needs('username', 'password')(data),
  ],
  [
    'kubernetes.io/ssh-auth',
    (data) => (bytesOf(data, 'ssh-privatekey').length === 0 ? [required(key('data', 'ssh-privatekey'))] : []),
  ],
  ['kubernetes.io/tls', needs('tls.crt', 'tls.key')],
])

function needs(...names: readonly string[]): (data: Data) => FieldError[] {
  return (data) => names.filter((name) => !Object.hasOwn(data, name)).map((name) => required(key('data', name)))
}

function needsJson(name: string): TypeRule {
  return (data) => {
    if (!Object.hasOwn(data, name)) return [required(key('data', name))]
    const complaint = jsonObjectComplaint(bytesOf(data, name))
    return complaint === undefined ? [] : [invalid(key('data', name), '<secret contents redacted>', complaint)]
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
    errors.push(...complaining(key('data', name), name, configMapKey(name)))
    // In Go, and so in JSON, bytes may be nil.
    bytes += Buffer.byteLength(value ?? '', 'base64')
  }
  if (bytes > MAX_DATA_BYTES) errors.push(tooLong('data', MAX_DATA_BYTES))
  return [...errors, ...(typeRules.get(type)?.(data, object) ?? [])]
}

function validateChange(next: Secret, old: Secret): FieldError[] {
  const errors =
    next.type === old.type ? [] : [invalid('type', asJson(next.type ?? ''), 'field is immutable', 'immutable')]
  if (old.immutable !== true) return errors
  const rule = 'field is immutable when `immutable` is set'
  if (next.immutable !== true) errors.push(forbidden('immutable', rule))
  if (!semanticEqual(next.data, old.data)) errors.push(forbidden('data', rule))
  return errors
}
