/** CredentialProviderConfig: which programs are asked whom to be before which registries. Pure. */
import { goQuote } from '#lib/go-text.ts'
import { defineConfig, listOf, optional, flag, readConfig, scalar, struct, text, texts } from '#meta/config-kind.ts'
import { durationMs } from '#meta/duration.ts'
import {
  aggregateText,
  child,
  duplicate,
  type FieldError,
  forbidden,
  invalid,
  notSupported,
  required,
} from '#meta/validation/field-error.ts'
import { qualifiedName } from '#meta/validation/names.ts'

export interface TokenAttributes {
  readonly serviceAccountTokenAudience: string
  readonly cacheType: string
  readonly requireServiceAccount?: boolean
  readonly requiredServiceAccountAnnotationKeys?: readonly string[]
  readonly optionalServiceAccountAnnotationKeys?: readonly string[]
}

export interface ProviderConfig {
  /** Of the program, in the directory of programs. */
  readonly name: string
  readonly matchImages: readonly string[]
  readonly defaultCacheDuration?: string
  /** Of the protocol it speaks. */
  readonly apiVersion: string
  readonly args?: readonly string[]
  readonly env?: readonly { readonly name: string; readonly value: string }[]
  readonly tokenAttributes?: TokenAttributes
}

const GROUP = 'kubelet.config.k8s.io'
export const PROVIDER_API = 'credentialprovider.kubelet.k8s.io'
const PROTOCOLS = ['v1', 'v1alpha1', 'v1beta1'].map((version) => `${PROVIDER_API}/${version}`)
const [NEWEST = ''] = PROTOCOLS
const CACHE_TYPES = ['ServiceAccount', 'Token']

const KIND = defineConfig(
  'CredentialProviderConfig',
  ['v1', 'v1beta1', 'v1alpha1'].map((version) => `${GROUP}/${version}`),
  'v1.CredentialProviderConfig',
  {
    providers: listOf(
      struct('v1.CredentialProvider', {
        name: text,
        matchImages: texts,
        defaultCacheDuration: optional(scalar('duration', 'v1.Duration')),
        apiVersion: text,
        args: texts,
        env: listOf(struct('v1.ExecEnvVar', { name: text, value: text })),
        tokenAttributes: optional(
          struct('v1.ServiceAccountTokenAttributes', {
            serviceAccountTokenAudience: text,
            cacheType: text,
            requireServiceAccount: optional(flag),
            requiredServiceAccountAnnotationKeys: texts,
            optionalServiceAccountAnnotationKeys: texts,
          }),
        ),
      }),
    ),
  },
)

export interface ConfigFile {
  readonly path: string
  readonly source: string
}

/** All files as one. Throws upstream's texts. */
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
    const { value } = readConfig(source, [KIND])
    return (value['providers'] ?? []) as readonly ProviderConfig[]
  } catch (cause) {
    throw new Error(`error decoding config ${goQuote(path)}: ${(cause as Error).message}`, { cause })
  }
}

const FIELD = 'providers'

function providersErrors(providers: readonly ProviderConfig[], hasTokens: boolean): FieldError[] {
  if (providers.length === 0) return [required(FIELD, 'at least 1 item in plugins is required')]
  return providers.flatMap((provider) => [
    ...nameErrors(provider),
    ...protocolErrors(provider),
    ...imageErrors(provider),
    ...durationErrors(provider),
    ...tokenErrors(provider, hasTokens),
  ])
}

function nameErrors({ name }: ProviderConfig): FieldError[] {
  const wrong = (detail: string): FieldError => invalid(child(FIELD, 'name'), name, `provider name cannot ${detail}`)
  return [
    ...(name.includes('/') ? [wrong("contain '/'")] : []),
    ...(name.includes(' ') ? [wrong('contain spaces')] : []),
    ...(name === '.' || name === '..' ? [wrong(`be '${name}'`)] : []),
  ]
}

function protocolErrors({ apiVersion }: ProviderConfig): FieldError[] {
  const field = child(FIELD, 'apiVersion')
  if ((apiVersion ?? '') === '') return [required(field)]
  return PROTOCOLS.includes(apiVersion) ? [] : [notSupported(field, apiVersion, PROTOCOLS)]
}

function imageErrors({ matchImages }: Partial<ProviderConfig>): FieldError[] {
  const field = child(FIELD, 'matchImages')
  if (matchImages === undefined || matchImages.length === 0)
    return [required(field, 'at least 1 item in matchImages is required')]
  return matchImages.flatMap((pattern) =>
    /\s/.test(pattern) ? [invalid(field, pattern, 'match image is invalid: it has blanks')] : [],
  )
}

function durationErrors({ defaultCacheDuration: duration }: ProviderConfig): FieldError[] {
  const field = child(FIELD, 'defaultCacheDuration')
  if (duration === undefined) return [required(field)]
  return durationMs(duration) < 0 ? [invalid(field, duration, 'must be greater than or equal to 0')] : []
}

function tokenErrors({ tokenAttributes: given, apiVersion }: ProviderConfig, hasTokens: boolean): FieldError[] {
  if (given === undefined) return []
  const field = child(FIELD, 'tokenAttributes')
  const requiredKeys = given.requiredServiceAccountAnnotationKeys ?? []
  const optionalKeys = given.optionalServiceAccountAnnotationKeys ?? []
  const both = requiredKeys.filter((key) => optionalKeys.includes(key)).sort()
  const gate = 'KubeletServiceAccountTokenForCredentialProviders'
  const keysField = child(field, 'requiredServiceAccountAnnotationKeys')
  const isLoose = given.requireServiceAccount === false && requiredKeys.length > 0
  return [
    ...(hasTokens ? [] : [forbidden(field, `tokenAttributes is not supported when ${gate} feature gate is disabled`)]),
    ...((given.serviceAccountTokenAudience ?? '') === ''
      ? [required(child(field, 'serviceAccountTokenAudience'))]
      : []),
    ...(given.requireServiceAccount === undefined ? [required(child(field, 'requireServiceAccount'))] : []),
    ...(apiVersion === NEWEST ? [] : [forbidden(field, `tokenAttributes is only supported for ${NEWEST} API version`)]),
    ...(isLoose
      ? [forbidden(keysField, 'requireServiceAccount cannot be false when requiredServiceAccountAnnotationKeys is set')]
      : []),
    ...keyErrors(keysField, requiredKeys),
    ...keyErrors(child(field, 'optionalServiceAccountAnnotationKeys'), optionalKeys),
    ...(both.length > 0 ? [invalid(field, both, 'annotation keys cannot be both required and optional')] : []),
    ...cacheTypeErrors(child(field, 'cacheType'), given.cacheType ?? ''),
  ]
}

function keyErrors(field: string, keys: readonly string[]): FieldError[] {
  return keys.flatMap((key, at) => [
    ...qualifiedName(key.toLowerCase()).map((detail) => invalid(field, key, detail)),
    ...(keys.indexOf(key) < at ? [duplicate(field, key)] : []),
  ])
}

function cacheTypeErrors(field: string, cacheType: string): FieldError[] {
  if (CACHE_TYPES.includes(cacheType)) return []
  if (cacheType !== '') return [notSupported(field, cacheType, CACHE_TYPES)]
  const list = CACHE_TYPES.join(', ')
  return [
    required(field, `cacheType is required to be set when tokenAttributes is specified. Supported values are: ${list}`),
  ]
}
