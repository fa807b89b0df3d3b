/**
 * `--encryption-provider-config`: an EncryptionConfiguration with the encrypted resources and their providers. Errors
 * have upstream's texts and contain no secrets.
 */

import { durationMs } from '#lib/go/duration.ts'
import { goQuote } from '#lib/go/text.ts'
import { defineConfig, readConfig } from '#meta/config-kind.ts'
import type { Given } from '#meta/config-rows.ts'
import { aggregateText } from '#meta/validation/field-error.ts'
import { collectErrors, type FieldError, fieldPath, type FieldPath, verbatim } from '#meta/validation/field-path.ts'
import type { EncryptionConfig, ProviderConfig, ResourceRule } from '#storage/encryption/config.ts'

const STRUCTS = {
  'v1.EncryptionConfiguration': { resources: '[]v1.ResourceConfiguration' },
  'v1.ResourceConfiguration': { resources: '[]string', providers: '[]v1.ProviderConfiguration' },
  'v1.ProviderConfiguration': {
    aesgcm: '*v1.AESConfiguration',
    aescbc: '*v1.AESConfiguration',
    secretbox: '*v1.SecretboxConfiguration',
    identity: '*v1.IdentityConfiguration',
    kms: '*v1.KMSConfiguration',
  },
  'v1.AESConfiguration': { keys: '[]v1.Key' },
  'v1.SecretboxConfiguration': { keys: '[]v1.Key' },
  'v1.IdentityConfiguration': {},
  'v1.KMSConfiguration': {
    apiVersion: 'string',
    name: 'string',
    cachesize: '*int32',
    endpoint: 'string',
    timeout: '*v1.Duration',
  },
  'v1.Key': { name: 'string', secret: 'string' },
} as const

const ENCRYPTION = defineConfig(
  ['EncryptionConfiguration', 'v1.EncryptionConfiguration'],
  ['apiserver.config.k8s.io/v1'],
  STRUCTS,
)

type Structs = typeof STRUCTS
type FileKey = Given<Structs, 'v1.Key'>
type FileKms = Given<Structs, 'v1.KMSConfiguration'>
type FileProvider = Given<Structs, 'v1.ProviderConfiguration'>
type FileRule = Given<Structs, 'v1.ResourceConfiguration'>

/** Throws upstream's texts. */
export function parseEncryptionConfig(file: string, source: string): EncryptionConfig {
  if (source === '') {
    const why = `encryption provider configuration file ${goQuote(file)} is empty`
    throw new Error(`error while parsing file: error while loading file: ${why}`)
  }
  const rules = readRules(file, source)
  const errors = rulesErrors(rules)
  if (errors.length > 0) throw new Error(`error while parsing file: ${aggregateText(errors)}`)
  const trouble = maskedRule(rules) ?? oldKms(rules)
  if (trouble !== undefined) throw new Error(`error while building transformers: ${trouble}`)
  return { resources: rules.map(toRule) }
}

function readRules(file: string, source: string): readonly FileRule[] {
  try {
    const { value } = readConfig(source, [ENCRYPTION], {
      mistaken: (kind) => `got unexpected config type: apiserver.config.k8s.io/v1, Kind=${kind}`,
    })
    return (value['resources'] ?? []) as readonly FileRule[]
  } catch (cause) {
    const what = `error decoding encryption provider configuration file ${goQuote(file)}`
    throw new Error(`error while parsing file: ${what}: ${(cause as Error).message}`, { cause })
  }
}

function rulesErrors(rules: readonly FileRule[]): FieldError[] {
  if (rules.length === 0) return [fieldPath('resources').required('at least one resources is required')]
  const names = new Set<string>()
  return fieldPath('resources').each(rules, (path, { resources = [], providers = [] }) => {
    const atLeastOne = (path: FieldPath, list: readonly unknown[]): FieldError[] =>
      list.length > 0 ? [] : [path.required(`at least one ${path} is required`)]
    return [
      ...atLeastOne(path.child('resources'), resources),
      ...overlapErrors(path.child('resources'), resources),
      ...path.child('resources').each(resources, resourceErrors),
      ...atLeastOne(path.child('providers'), providers),
      ...path.child('providers').each(providers, (path, provider) => providerErrors(path, provider, names)),
    ]
  })
}

interface ResourceName {
  readonly resource: string
  readonly group: string
}

/** `deployments.apps`: the group is what follows the first dot. */
function parseName(name: string): ResourceName {
  const [resource = '', ...group] = name.split('.')
  return { resource, group: group.join('.') }
}

function overlapErrors(path: FieldPath, resources: readonly string[]): FieldError[] {
  const named = resources.map(parseName)
  const isSame = (a: ResourceName, b: ResourceName): boolean => a.group === b.group && a.resource === b.resource
  const covers = (a: ResourceName, b: ResourceName): boolean =>
    (a.resource === '*' && a.group === '*') || (a.group === b.group && a.resource === '*')
  const pairs = named.flatMap((a, at) => named.filter((_, other) => other !== at).map((b) => [a, b] as const))
  const isRepeated = pairs.some(([a, b]) => isSame(a, b))
  const isCovered = pairs.some(([a, b]) => !isSame(a, b) && covers(a, b))
  const complaints = [
    isRepeated ? 'the same resource cannot be specified multiple times' : '',
    isCovered
      ? "using overlapping resources such as 'secrets' and '*.' in the same resource list is not allowed as they will be masked"
      : '',
  ]
  return complaints.filter((detail) => detail !== '').map((detail) => path.invalid(resources, detail))
}

const NOT_REST: readonly string[] = ['apiserveripinfo', 'serviceipallocations', 'servicenodeportallocations']

/** In the order of the checks; the first that fails is reported. */
const NAME_RULES: readonly (readonly [isBad: (name: string, named: ResourceName) => boolean, detail: string])[] = [
  [(name) => name.toLowerCase() !== name, 'resource name should not contain capital letters'],
  [(name) => name === '*', "use '*.' to encrypt all the resources from core API group or *.* to encrypt all resources"],
  [(name) => NOT_REST.includes(name), 'resources which do not have REST API/s cannot be encrypted'],
  [
    (_, { group }) => group === 'events.k8s.io',
    "'*.events.k8s.io' objects are stored using the 'events' API group in etcd. Use 'events' instead in the config file",
  ],
  [(_, { group }) => group === 'extensions', "'extensions' group has been removed and cannot be used for encryption"],
  [
    (_, { group, resource }) => group === '*' && resource !== '*',
    'encrypting the same resource across groups is not supported',
  ],
]

function resourceErrors(path: FieldPath, name: string): FieldError[] {
  const broken = NAME_RULES.find(([isBad]) => isBad(name, parseName(name)))
  return broken === undefined ? [] : [path.invalid(name, broken[1])]
}

const AES_KEY_BYTES: readonly number[] = [16, 24, 32]
const SECRETBOX_KEY_BYTES: readonly number[] = [32]

function providerErrors(path: FieldPath, provider: FileProvider, names: Set<string>): FieldError[] {
  const { aesgcm, aescbc, secretbox, identity, kms } = provider
  const found = [aesgcm, aescbc, secretbox, identity, kms].filter((one) => one !== undefined).length
  const none = 'provider does not contain any of the expected providers: KMS, AESGCM, AESCBC, Secretbox, Identity'
  const many = 'more than one provider specified in a single element, should split into different list elements'
  const count = found === 1 ? [] : [path.invalid(verbatim(goProvider(provider)), found === 0 ? none : many)]
  if (kms !== undefined) return [...count, ...kmsErrors(path.child('kms'), kms, names)]
  if (aesgcm !== undefined) return [...count, ...keysErrors(path.child('aesgcm.keys'), aesgcm.keys, AES_KEY_BYTES)]
  if (aescbc !== undefined) return [...count, ...keysErrors(path.child('aescbc.keys'), aescbc.keys, AES_KEY_BYTES)]
  if (secretbox === undefined) return count
  return [...count, ...keysErrors(path.child('secretbox.keys'), secretbox.keys, SECRETBOX_KEY_BYTES)]
}

/** Upstream's form with Go's names, without the secrets. */
function goProvider({ aesgcm, aescbc, secretbox, identity, kms }: FileProvider): string {
  const keyed = (one: FileProvider['aesgcm']): unknown =>
    one === undefined ? null : { Keys: (one.keys ?? []).map(({ name = '' }) => ({ Name: name, Secret: '[REDACTED]' })) }
  const { apiVersion = 'v1', name = '', cachesize = null, endpoint = '', timeout = DEFAULT_TIMEOUT } = kms ?? {}
  return JSON.stringify({
    AESGCM: keyed(aesgcm),
    AESCBC: keyed(aescbc),
    Secretbox: keyed(secretbox),
    Identity: identity === undefined ? null : {},
    KMS:
      kms === undefined
        ? null
        : { APIVersion: apiVersion, Name: name, CacheSize: cachesize, Endpoint: endpoint, Timeout: timeout },
  })
}

function keysErrors(path: FieldPath, keys: readonly FileKey[] = [], sizes: readonly number[]): FieldError[] {
  if (keys.length === 0) return [path.required('at least one keys is required')]
  return path.each(keys, (path, key) => keyErrors(path, key, sizes))
}

function keyErrors(path: FieldPath, { name = '', secret = '' }: FileKey, sizes: readonly number[]): FieldError[] {
  const errors = name === '' ? [path.child('name').required('name is a mandatory field for a key')] : []
  const field = path.child('secret')
  if (secret === '') return [...errors, field.required('secret is a mandatory field for a key')]
  if (!isBase64(secret)) return [...errors, field.invalid('REDACTED', 'secrets must be base64 encoded')]
  const bytes = Buffer.from(secret, 'base64').length
  if (sizes.includes(bytes)) return errors
  const detail = `secret is not of the expected length, got ${bytes}, expected one of [${sizes.join(' ')}]`
  return [...errors, field.invalid('REDACTED', detail)]
}

function isBase64(secret: string): boolean {
  const whole = secret.replace(/[\r\n]/g, '')
  return whole.length % 4 === 0 && /^[A-Za-z0-9+/]*={0,2}$/.test(whole)
}

const DEFAULT_TIMEOUT = '3s'

function kmsErrors(path: FieldPath, kms: FileKms, names: Set<string>): FieldError[] {
  const { apiVersion = 'v1', cachesize, timeout = DEFAULT_TIMEOUT } = kms
  return collectErrors(
    kmsNameErrors(path.child('name'), kms, names),
    durationMs(timeout) <= 0 && path.child('timeout').invalid(timeout, 'timeout should be a positive value'),
    endpointErrors(path.child('endpoint'), kms.endpoint ?? ''),
    apiVersion !== 'v1' &&
      cachesize !== undefined &&
      path.child('cachesize').invalid(cachesize, 'cachesize is not supported in v2'),
    apiVersion === 'v1' &&
      cachesize === 0 &&
      path.child('cachesize').invalid(cachesize, 'cachesize should be a positive value, or negative to disable'),
    apiVersion !== 'v1' &&
      apiVersion !== 'v2' &&
      path
        .child('apiVersion')
        .invalid(apiVersion, 'unsupported apiVersion apiVersion for KMS provider, only v1 and v2 are supported'),
  )
}

function kmsNameErrors(path: FieldPath, { apiVersion = 'v1', name = '' }: FileKms, names: Set<string>): FieldError[] {
  const errors = name === '' ? [path.required('name is a mandatory field for a provider')] : []
  if (apiVersion !== 'v1' && name.includes(':')) {
    errors.push(path.invalid(name, `invalid KMS provider name ${name}, must not contain ':'`))
  }
  if (apiVersion !== 'v1' && names.has(name)) {
    errors.push(path.invalid(name, `duplicate KMS provider name ${name}, names must be unique`))
  }
  names.add(name)
  return errors
}

function endpointErrors(path: FieldPath, endpoint: string): FieldError[] {
  if (endpoint === '') return [path.invalid('', 'endpoint is a mandatory field for a kms')]
  if (endpoint.startsWith(':')) {
    const why = `parse ${goQuote(endpoint)}: missing protocol scheme`
    return [path.invalid(endpoint, `invalid endpoint for kms provider, error: ${why}`)]
  }
  const scheme = /^[a-zA-Z][a-zA-Z0-9+.-]*(?=:)/.exec(endpoint)?.[0].toLowerCase() ?? ''
  if (scheme === 'unix') return []
  return [path.invalid(endpoint, `unsupported scheme ${goQuote(scheme)} for KMS provider, only unix is supported`)]
}

/** A rule that never applies, because an earlier one covers its group or everything. */
function maskedRule(rules: readonly FileRule[]): string | undefined {
  const earlier = new Set<string>()
  for (const { resources = [] } of rules) {
    for (const name of resources) {
      const mask = [`*.${parseName(name).group}`, '*.*'].find((pattern) => earlier.has(pattern))
      if (mask !== undefined) return `resource ${goQuote(name)} is masked by earlier rule ${goQuote(mask)}`
    }
    for (const name of resources) earlier.add(name)
  }
  return undefined
}

function oldKms(rules: readonly FileRule[]): string | undefined {
  const isOld = ({ kms }: FileProvider): boolean => kms !== undefined && (kms.apiVersion ?? 'v1') === 'v1'
  if (!rules.some(({ providers = [] }) => providers.some(isOld))) return undefined
  return 'KMSv1 is deprecated and will only receive security updates going forward. Use KMSv2 instead.  Set --feature-gates=KMSv1=true to use the deprecated KMSv1 feature.'
}

function toRule({ resources = [], providers = [] }: FileRule): ResourceRule {
  return { resources, providers: providers.map(toProvider) }
}

function toProvider({ aesgcm, aescbc, secretbox, kms }: FileProvider): ProviderConfig {
  if (kms !== undefined) {
    const { name = '', endpoint = '', timeout = DEFAULT_TIMEOUT } = kms
    return { type: 'kms', name, socket: socketOf(endpoint), timeoutMs: durationMs(timeout) }
  }
  for (const [type, keyed] of Object.entries({ aesgcm, aescbc, secretbox })) {
    if (keyed === undefined) continue
    const keys = (keyed.keys ?? []).map(({ name = '', secret = '' }) => ({
      name,
      secret: Buffer.from(secret, 'base64'),
    }))
    return { type: type as 'aesgcm', keys }
  }
  return { type: 'identity' }
}

/** `/@name` is an abstract Unix socket. */
function socketOf(endpoint: string): string {
  const path = decodeURIComponent(new URL(endpoint).pathname)
  return path.startsWith('/@') ? `\0${path.slice(2)}` : path
}
