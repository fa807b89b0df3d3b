/** CredentialProviderConfig: which credential provider plugins handle which images. Pure. */

import { durationMs } from '#lib/go/duration.ts'
import { goQuote } from '#lib/go/text.ts'
import { defineConfig, readConfig } from '#meta/config-kind.ts'
import type { Complete } from '#meta/config-rows.ts'
import { aggregateText } from '#meta/validation/field-error.ts'
import { collectErrors, type FieldError, fieldPath, type FieldPath } from '#meta/validation/field-path.ts'
import { qualifiedName } from '#meta/validation/names.ts'

const STRUCTS = {
  'v1.CredentialProviderConfig': { providers: '[]v1.CredentialProvider =' },
  'v1.CredentialProvider': {
    name: 'string =',
    matchImages: '[]string =',
    defaultCacheDuration: '*v1.Duration',
    apiVersion: 'string =',
    args: '[]string',
    env: '[]v1.ExecEnvVar',
    tokenAttributes: '*v1.ServiceAccountTokenAttributes',
  },
  'v1.ExecEnvVar': { name: 'string =', value: 'string =' },
  'v1.ServiceAccountTokenAttributes': {
    serviceAccountTokenAudience: 'string =',
    cacheType: 'string =',
    requireServiceAccount: '*bool',
    requiredServiceAccountAnnotationKeys: '[]string',
    optionalServiceAccountAnnotationKeys: '[]string',
  },
} as const

/** `name` is the file name of the plugin in the plugin directory, `apiVersion` the version of its protocol. */
export interface ProviderConfig extends Complete<typeof STRUCTS, 'v1.CredentialProvider'> {}

export interface TokenAttributes extends Complete<typeof STRUCTS, 'v1.ServiceAccountTokenAttributes'> {}

const GROUP = 'kubelet.config.k8s.io'
export const PROVIDER_API = 'credentialprovider.kubelet.k8s.io'
const PROTOCOLS = ['v1', 'v1alpha1', 'v1beta1'].map((version) => `${PROVIDER_API}/${version}`)
const [NEWEST = ''] = PROTOCOLS
const CACHE_TYPES = ['ServiceAccount', 'Token']

const KIND = defineConfig(
  ['CredentialProviderConfig', 'v1.CredentialProviderConfig'],
  ['v1', 'v1beta1', 'v1alpha1'].map((version) => `${GROUP}/${version}`),
  STRUCTS,
)

export interface ConfigFile {
  readonly path: string
  readonly source: string
}

/** Merges all files. Throws upstream's errors. */
export function readProviders(files: readonly ConfigFile[], hasTokens: boolean): ProviderConfig[] {
  const providers: ProviderConfig[] = []
  for (const { path, source } of files) {
    for (const provider of decode(path, source)) {
      if (providers.some(({ name }) => name === provider.name)) {
        throw new Error(`duplicate provider name ${goQuote(provider.name)} found in configuration file(s)`)
      }
      providers.push(provider)
    }
  }
  const errors = providersErrors(providers, hasTokens)
  if (errors.length > 0) throw new Error(`failed to validate credential provider config: ${aggregateText(errors)}`)
  return providers
}

function decode(path: string, source: string): readonly ProviderConfig[] {
  try {
    return KIND.withDefaults(readConfig(source, [KIND]).value).providers
  } catch (cause) {
    throw new Error(`error decoding config ${goQuote(path)}: ${(cause as Error).message}`, { cause })
  }
}

const FIELD = fieldPath('providers')

function providersErrors(providers: readonly ProviderConfig[], hasTokens: boolean): FieldError[] {
  if (providers.length === 0) return [FIELD.required('at least 1 item in plugins is required')]
  return providers.flatMap((provider) => [
    ...nameErrors(provider),
    ...protocolErrors(provider),
    ...imageErrors(provider),
    ...durationErrors(provider),
    ...tokenErrors(provider, hasTokens),
  ])
}

function nameErrors({ name }: ProviderConfig): FieldError[] {
  const wrong = (detail: string): FieldError => FIELD.child('name').invalid(name, `provider name cannot ${detail}`)
  return collectErrors(
    name.includes('/') && wrong("contain '/'"),
    name.includes(' ') && wrong('contain spaces'),
    (name === '.' || name === '..') && wrong(`be '${name}'`),
  )
}

function protocolErrors({ apiVersion }: ProviderConfig): FieldError[] {
  const field = FIELD.child('apiVersion')
  if (apiVersion === '') return [field.required()]
  return PROTOCOLS.includes(apiVersion) ? [] : [field.notSupported(apiVersion, PROTOCOLS)]
}

function imageErrors({ matchImages }: ProviderConfig): FieldError[] {
  const field = FIELD.child('matchImages')
  if (matchImages.length === 0) return [field.required('at least 1 item in matchImages is required')]
  return matchImages.flatMap((pattern) =>
    /\s/.test(pattern) ? [field.invalid(pattern, 'match image is invalid: it contains whitespace')] : [],
  )
}

function durationErrors({ defaultCacheDuration: duration }: ProviderConfig): FieldError[] {
  const field = FIELD.child('defaultCacheDuration')
  if (duration === undefined) return [field.required()]
  return durationMs(duration) < 0 ? [field.invalid(duration, 'must be greater than or equal to 0')] : []
}

function tokenErrors({ tokenAttributes: given, apiVersion }: ProviderConfig, hasTokens: boolean): FieldError[] {
  if (given === undefined) return []
  const field = FIELD.child('tokenAttributes')
  const requiredKeys = given.requiredServiceAccountAnnotationKeys ?? []
  const optionalKeys = given.optionalServiceAccountAnnotationKeys ?? []
  const both = requiredKeys.filter((key) => optionalKeys.includes(key)).sort()
  const gate = 'KubeletServiceAccountTokenForCredentialProviders'
  const keysField = field.child('requiredServiceAccountAnnotationKeys')
  const isLoose = given.requireServiceAccount === false && requiredKeys.length > 0
  return [
    ...(hasTokens ? [] : [field.forbidden(`tokenAttributes is not supported when ${gate} feature gate is disabled`)]),
    ...(given.serviceAccountTokenAudience === '' ? [field.child('serviceAccountTokenAudience').required()] : []),
    ...(given.requireServiceAccount === undefined ? [field.child('requireServiceAccount').required()] : []),
    ...(apiVersion === NEWEST ? [] : [field.forbidden(`tokenAttributes is only supported for ${NEWEST} API version`)]),
    ...(isLoose
      ? [keysField.forbidden('requireServiceAccount cannot be false when requiredServiceAccountAnnotationKeys is set')]
      : []),
    ...keyErrors(keysField, requiredKeys),
    ...keyErrors(field.child('optionalServiceAccountAnnotationKeys'), optionalKeys),
    ...(both.length > 0 ? [field.invalid(both, 'annotation keys cannot be both required and optional')] : []),
    ...cacheTypeErrors(field.child('cacheType'), given.cacheType),
  ]
}

function keyErrors(path: FieldPath, keys: readonly string[]): FieldError[] {
  return keys.flatMap((key, at) =>
    collectErrors(
      qualifiedName(key.toLowerCase()).map((detail) => path.invalid(key, detail)),
      keys.indexOf(key) < at && path.duplicate(key),
    ),
  )
}

function cacheTypeErrors(path: FieldPath, cacheType: string): FieldError[] {
  if (CACHE_TYPES.includes(cacheType)) return []
  if (cacheType !== '') return [path.notSupported(cacheType, CACHE_TYPES)]
  const list = CACHE_TYPES.join(', ')
  return [
    path.required(`cacheType is required to be set when tokenAttributes is specified. Supported values are: ${list}`),
  ]
}
