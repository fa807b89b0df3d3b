/**
 * `--encryption-provider-config`: an EncryptionConfiguration, which resources rest encrypted and with what. Refused in
 * upstream's words; secrets are in none of them.
 */
import { goQuote } from '#lib/go-text.ts'
import { defineConfig, listOf, optional, readConfig, scalar, struct, text, texts } from '#meta/config-kind.ts'
import { durationMs } from '#meta/duration.ts'
import { aggregateText, type FieldError, index, invalid, required, verbatim } from '#meta/validation/field-error.ts'
import type { EncryptionConfig, ProviderConfig, ResourceRule } from '#storage/encryption/config.ts'

const KEYS = listOf(struct('v1.Key', { name: text, secret: text }))
const KMS = struct('v1.KMSConfiguration', {
  apiVersion: text,
  name: text,
  cachesize: optional(scalar('int32')),
  endpoint: text,
  timeout: optional(scalar('duration', 'v1.Duration')),
})
const PROVIDER = struct('v1.ProviderConfiguration', {
  aesgcm: optional(struct('v1.AESConfiguration', { keys: KEYS })),
  aescbc: optional(struct('v1.AESConfiguration', { keys: KEYS })),
  secretbox: optional(struct('v1.SecretboxConfiguration', { keys: KEYS })),
  identity: optional(struct('v1.IdentityConfiguration', {})),
  kms: optional(KMS),
})
const ENCRYPTION = defineConfig(
  'EncryptionConfiguration',
  ['apiserver.config.k8s.io/v1'],
  'v1.EncryptionConfiguration',
  { resources: listOf(struct('v1.ResourceConfiguration', { resources: texts, providers: listOf(PROVIDER) })) },
)

interface FileKey {
  readonly name?: string
  readonly secret?: string
}

interface FileKms {
  readonly apiVersion?: string
  readonly name?: string
  readonly cachesize?: number
  readonly endpoint?: string
  readonly timeout?: string
}

interface FileProvider {
  readonly aesgcm?: { readonly keys?: readonly FileKey[] }
  readonly aescbc?: { readonly keys?: readonly FileKey[] }
  readonly secretbox?: { readonly keys?: readonly FileKey[] }
  readonly identity?: object
  readonly kms?: FileKms
}

interface FileRule {
  readonly resources?: readonly string[]
  readonly providers?: readonly FileProvider[]
}

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
  if (rules.length === 0) return [required('resources', 'at least one resources is required')]
  const names = new Set<string>()
  return rules.flatMap(({ resources = [], providers = [] }, at) => {
    const path = index('resources', at)
    const atLeastOne = (field: string, list: readonly unknown[]): FieldError[] =>
      list.length > 0 ? [] : [required(field, `at least one ${field} is required`)]
    return [
      ...atLeastOne(`${path}.resources`, resources),
      ...overlapErrors(`${path}.resources`, resources),
      ...resources.flatMap((name, place) => resourceErrors(index(`${path}.resources`, place), name)),
      ...atLeastOne(`${path}.providers`, providers),
      ...providers.flatMap((provider, place) => providerErrors(index(`${path}.providers`, place), provider, names)),
    ]
  })
}

interface Named {
  readonly resource: string
  readonly group: string
}

/** `deployments.apps`: the group is what follows the first dot. */
function parseName(name: string): Named {
  const [resource = '', ...group] = name.split('.')
  return { resource, group: group.join('.') }
}

function overlapErrors(field: string, resources: readonly string[]): FieldError[] {
  const named = resources.map(parseName)
  const isSame = (a: Named, b: Named): boolean => a.group === b.group && a.resource === b.resource
  const covers = (a: Named, b: Named): boolean =>
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
  return complaints.filter((detail) => detail !== '').map((detail) => invalid(field, resources, detail))
}

const NOT_REST: readonly string[] = ['apiserveripinfo', 'serviceipallocations', 'servicenodeportallocations']

/** In the order in which they are looked for; the first that holds is told. */
const NAME_RULES: readonly (readonly [isBad: (name: string, named: Named) => boolean, detail: string])[] = [
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

function resourceErrors(field: string, name: string): FieldError[] {
  const broken = NAME_RULES.find(([isBad]) => isBad(name, parseName(name)))
  return broken === undefined ? [] : [invalid(field, name, broken[1])]
}

const AES_KEY_BYTES: readonly number[] = [16, 24, 32]
const SECRETBOX_KEY_BYTES: readonly number[] = [32]

function providerErrors(path: string, provider: FileProvider, names: Set<string>): FieldError[] {
  const { aesgcm, aescbc, secretbox, identity, kms } = provider
  const found = [aesgcm, aescbc, secretbox, identity, kms].filter((one) => one !== undefined).length
  const none = 'provider does not contain any of the expected providers: KMS, AESGCM, AESCBC, Secretbox, Identity'
  const many = 'more than one provider specified in a single element, should split into different list elements'
  const count = found === 1 ? [] : [invalid(path, verbatim(goProvider(provider)), found === 0 ? none : many)]
  if (kms !== undefined) return [...count, ...kmsErrors(`${path}.kms`, kms, names)]
  if (aesgcm !== undefined) return [...count, ...keysErrors(`${path}.aesgcm.keys`, aesgcm.keys, AES_KEY_BYTES)]
  if (aescbc !== undefined) return [...count, ...keysErrors(`${path}.aescbc.keys`, aescbc.keys, AES_KEY_BYTES)]
  if (secretbox === undefined) return count
  return [...count, ...keysErrors(`${path}.secretbox.keys`, secretbox.keys, SECRETBOX_KEY_BYTES)]
}

/** As upstream shows it, with Go's names, but for the secrets. */
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

function keysErrors(path: string, keys: readonly FileKey[] = [], sizes: readonly number[]): FieldError[] {
  if (keys.length === 0) return [required(path, 'at least one keys is required')]
  return keys.flatMap((key, at) => keyErrors(index(path, at), key, sizes))
}

function keyErrors(path: string, { name = '', secret = '' }: FileKey, sizes: readonly number[]): FieldError[] {
  const errors = name === '' ? [required(`${path}.name`, 'name is a mandatory field for a key')] : []
  const field = `${path}.secret`
  if (secret === '') return [...errors, required(field, 'secret is a mandatory field for a key')]
  if (!isBase64(secret)) return [...errors, invalid(field, 'REDACTED', 'secrets must be base64 encoded')]
  const bytes = Buffer.from(secret, 'base64').length
  if (sizes.includes(bytes)) return errors
  const detail = `secret is not of the expected length, got ${bytes}, expected one of [${sizes.join(' ')}]`
  return [...errors, invalid(field, 'REDACTED', detail)]
}

function isBase64(secret: string): boolean {
  const whole = secret.replace(/[\r\n]/g, '')
  return whole.length % 4 === 0 && /^[A-Za-z0-9+/]*={0,2}$/.test(whole)
}

const DEFAULT_TIMEOUT = '3s'

function kmsErrors(path: string, kms: FileKms, names: Set<string>): FieldError[] {
  const { apiVersion = 'v1', cachesize, timeout = DEFAULT_TIMEOUT } = kms
  const errors = kmsNameErrors(`${path}.name`, kms, names)
  if (durationMs(timeout) <= 0) errors.push(invalid(`${path}.timeout`, timeout, 'timeout should be a positive value'))
  errors.push(...endpointErrors(`${path}.endpoint`, kms.endpoint ?? ''))
  if (apiVersion !== 'v1' && cachesize !== undefined) {
    errors.push(invalid(`${path}.cachesize`, cachesize, 'cachesize is not supported in v2'))
  }
  if (apiVersion === 'v1' && cachesize === 0) {
    const detail = 'cachesize should be a positive value, or negative to disable'
    errors.push(invalid(`${path}.cachesize`, cachesize, detail))
  }
  if (apiVersion !== 'v1' && apiVersion !== 'v2') {
    const detail = 'unsupported apiVersion apiVersion for KMS provider, only v1 and v2 are supported'
    errors.push(invalid(`${path}.apiVersion`, apiVersion, detail))
  }
  return errors
}

function kmsNameErrors(field: string, { apiVersion = 'v1', name = '' }: FileKms, names: Set<string>): FieldError[] {
  const errors = name === '' ? [required(field, 'name is a mandatory field for a provider')] : []
  if (apiVersion !== 'v1' && name.includes(':')) {
    errors.push(invalid(field, name, `invalid KMS provider name ${name}, must not contain ':'`))
  }
  if (apiVersion !== 'v1' && names.has(name)) {
    errors.push(invalid(field, name, `duplicate KMS provider name ${name}, names must be unique`))
  }
  names.add(name)
  return errors
}

function endpointErrors(field: string, endpoint: string): FieldError[] {
  if (endpoint === '') return [invalid(field, '', 'endpoint is a mandatory field for a kms')]
  if (endpoint.startsWith(':')) {
    const why = `parse ${goQuote(endpoint)}: missing protocol scheme`
    return [invalid(field, endpoint, `invalid endpoint for kms provider, error: ${why}`)]
  }
  const scheme = /^[a-zA-Z][a-zA-Z0-9+.-]*(?=:)/.exec(endpoint)?.[0].toLowerCase() ?? ''
  if (scheme === 'unix') return []
  return [invalid(field, endpoint, `unsupported scheme ${goQuote(scheme)} for KMS provider, only unix is supported`)]
}

/** A rule that could never apply, because an earlier one takes everything of its group, or everything. */
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

/** `/@name` is a socket of Linux without a file. */
function socketOf(endpoint: string): string {
  const path = decodeURIComponent(new URL(endpoint).pathname)
  return path.startsWith('/@') ? `\0${path.slice(2)}` : path
}
