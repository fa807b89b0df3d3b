/**
 * Configurations of single admission plugins, as `--admission-control-config-file` hands them out. A plugin without a
 * configuration is read as well, because some do not start without.
 */
import { isAbsolute } from 'node:path'

import type { EventLimit } from '#admission/event-rate-limit.ts'
import type { PluginSettings } from '#admission/index.ts'
import type { NodeSelectorsByNamespace } from '#admission/pod-node-selector.ts'
import type { Exemptions } from '#admission/pod-security/pod-security.ts'
import {
  LEVEL_RULE,
  type LevelVersion,
  type Mode,
  parseLevel,
  parseVersion,
  VERSION_RULE,
} from '#admission/pod-security/policy.ts'
import { type ClusterTolerations, TOLERATIONS } from '#admission/pod-toleration-restriction.ts'
import type { LimitedResource } from '#admission/resource-quota/check.ts'
import { aggregatedText } from '#apiserver/authorizers/authorizer.ts'
import { formatDuration } from '#lib/flags/go-literals.ts'
import { parseYaml } from '#lib/yaml.ts'
import { decodeValue } from '#meta/codec/decode.ts'
import {
  type ConfigKind,
  defineConfig,
  flag,
  listOf,
  readConfig,
  scalar,
  struct,
  text,
  texts,
} from '#meta/config-kind.ts'
import type { StructSchema } from '#meta/schema.ts'
import {
  aggregateText,
  duplicate,
  type FieldError,
  fieldErrorText,
  forbidden,
  index,
  invalid,
  notSupported,
  required,
  verbatim,
} from '#meta/validation/field-error.ts'
import { dns1123Label, dns1123Subdomain } from '#meta/validation/names.ts'
import { validateTolerations } from '#model/taints.ts'

export const CONFIG_GROUP = 'apiserver.config.k8s.io'

/** What upstream finds wrong with a plugin only after it is made. */
export class InitializationError extends Error {
  override readonly name = 'InitializationError'
}

/** The part of WebhookAdmissionConfiguration that is set; paths are whole. */
export interface WebhookPluginSettings {
  /** Credentials for webhooks, by host: see webhook-credentials.ts. */
  readonly kubeConfigFile?: string
}

export interface ImagePolicySettings {
  readonly kubeConfigFile: string
  readonly allowTtlMs: number
  readonly denyTtlMs: number
  /** Before the first retry; half as long again before each further one. */
  readonly retryBackoffMs: number
  readonly defaultAllow: boolean
}

/** All that the file sets: for plugins, and for the connections that the server makes for them. */
export interface AdmissionFileSettings extends PluginSettings {
  readonly imagePolicyBackend?: ImagePolicySettings
  readonly mutatingWebhooks?: WebhookPluginSettings
  readonly validatingWebhooks?: WebhookPluginSettings
}

/** By plugin. Each is called without a source when the plugin is on and has no configuration. */
export const READERS: Readonly<Record<string, (source: string | undefined) => AdmissionFileSettings>> = {
  ImagePolicyWebhook: (source) => ({ imagePolicyBackend: readImagePolicy(source) }),
  PodNodeSelector: (source) => (source === undefined ? {} : { nodeSelectors: readNodeSelectors(source) }),
  PodTolerationRestriction: (source) => (source === undefined ? {} : { podTolerations: readTolerations(source) }),
  PodSecurity: (source) => (source === undefined ? {} : { podSecurity: readPodSecurity(source) }),
  ResourceQuota: (source) => (source === undefined ? {} : { limitedResources: readLimitedResources(source) }),
  EventRateLimit: (source) => ({ eventLimits: readEventLimits(source) }),
  MutatingAdmissionWebhook: (source) => (source === undefined ? {} : { mutatingWebhooks: readWebhook(source) }),
  ValidatingAdmissionWebhook: (source) => (source === undefined ? {} : { validatingWebhooks: readWebhook(source) }),
}

const MODES: readonly Mode[] = ['enforce', 'audit', 'warn']

const POD_SECURITY = defineConfig(
  'PodSecurityConfiguration',
  ['v1', 'v1beta1', 'v1alpha1'].map((version) => `pod-security.admission.config.k8s.io/${version}`),
  'v1.PodSecurityConfiguration',
  {
    defaults: struct(
      'v1.PodSecurityDefaults',
      Object.fromEntries(MODES.flatMap((mode) => [mode, `${mode}-version`]).map((name) => [name, text])),
    ),
    exemptions: struct('v1.PodSecurityExemptions', { usernames: texts, namespaces: texts, runtimeClasses: texts }),
  },
)

function readPodSecurity(source: string): NonNullable<PluginSettings['podSecurity']> {
  const { defaults = {}, exemptions = {} } = readConfig(source, [POD_SECURITY]).value as {
    readonly defaults?: Readonly<Record<string, string>>
    readonly exemptions?: Exemptions
  }
  const problems: string[] = []
  const read = (mode: Mode): LevelVersion => {
    const level = parseLevel(defaults[mode] || 'privileged')
    const minor = parseVersion(defaults[`${mode}-version`] || 'latest')
    if (level === undefined) problems.push(`${mode}: ${LEVEL_RULE}`)
    if (minor === undefined) problems.push(`${mode}-version: ${VERSION_RULE}`)
    return { level: level ?? 'privileged', minor: minor ?? Infinity }
  }
  const policy = { enforce: read('enforce'), audit: read('audit'), warn: read('warn') }
  const failed = 'failed to initialize admission plugin "PodSecurity": PodSecurity'
  if (problems.length > 0) throw new InitializationError(`${failed} configuration error: ${aggregatedText(problems)}`)
  const errors = exemptionErrors(exemptions)
  if (errors.length > 0) throw new InitializationError(`${failed} invalid: ${aggregateText(errors)}`)
  return { defaults: policy, exemptions }
}

function exemptionErrors({ namespaces = [], runtimeClasses = [], usernames = [] }: Exemptions): FieldError[] {
  const check = (name: string, list: readonly string[], complaints: (value: string) => string[]): FieldError[] =>
    list.flatMap((value, at) => {
      const field = index(`exemptions.${name}`, at)
      const found = complaints(value)
      if (found.length > 0) return [invalid(field, value, found.join(', '))]
      return list.indexOf(value) < at ? [duplicate(field, value)] : []
    })
  return [
    ...check('namespaces', namespaces, dns1123Label),
    ...check('runtimeClasses', runtimeClasses, dns1123Subdomain),
    ...check('usernames', usernames, (name) => (name === '' ? ['username must not be empty'] : [])),
  ]
}

const quotaFields = {
  limitedResources: listOf(
    struct('v1.LimitedResource', {
      apiGroup: text,
      resource: text,
      matchContains: texts,
      matchScopes: listOf(
        struct('v1.ScopedResourceSelectorRequirement', { scopeName: text, operator: text, values: texts }),
      ),
    }),
  ),
}

const QUOTA: readonly ConfigKind[] = [
  defineConfig('ResourceQuotaConfiguration', [`${CONFIG_GROUP}/v1`], 'v1.Configuration', quotaFields),
  defineConfig(
    'Configuration',
    ['resourcequota.admission.k8s.io/v1beta1', 'resourcequota.admission.k8s.io/v1alpha1'],
    'v1beta1.Configuration',
    quotaFields,
  ),
]

function readLimitedResources(source: string): readonly LimitedResource[] {
  const { limitedResources = [] } = readConfig(source, QUOTA).value as {
    readonly limitedResources?: readonly LimitedResource[]
  }
  const errors = limitedResources.flatMap(({ resource = '' }: Partial<LimitedResource>, at) =>
    resource === '' ? [required(`${index('limitedResources', at)}.resource`)] : [],
  )
  if (errors.length > 0) throw new Error(aggregateText(errors))
  return limitedResources
}

const EVENT_LIMITS = defineConfig(
  'Configuration',
  ['eventratelimit.admission.k8s.io/v1alpha1'],
  'v1alpha1.Configuration',
  {
    limits: listOf(
      struct('v1alpha1.Limit', {
        type: scalar('string', 'v1alpha1.LimitType'),
        qps: scalar('int32'),
        burst: scalar('int32'),
        cacheSize: scalar('int32'),
      }),
    ),
  },
)

const LIMIT_TYPES = ['Server', 'Namespace', 'User', 'SourceAndObject']

/** Without limits the plugin is of no use, and upstream does not start. */
function readEventLimits(source: string | undefined): readonly EventLimit[] {
  const ignore = { warn: () => undefined }
  const { limits = [] } = (source === undefined ? {} : readConfig(source, [EVENT_LIMITS], ignore).value) as {
    readonly limits?: readonly EventLimit[]
  }
  const errors = limits.length === 0 ? [invalid('limits', verbatim('null'), 'must not be empty')] : []
  errors.push(...limits.flatMap(limitErrors))
  if (errors.length > 0) throw new Error(aggregateText(errors))
  return limits
}

function limitErrors({ type, qps = 0, burst = 0, cacheSize = 0 }: Partial<EventLimit>, at: number): FieldError[] {
  const path = index('limits', at)
  return [
    ...(LIMIT_TYPES.includes(type ?? '') ? [] : [notSupported(`${path}.type`, type ?? '', LIMIT_TYPES)]),
    ...(burst > 0 ? [] : [invalid(`${path}.burst`, burst, 'must be positive')]),
    ...(qps > 0 ? [] : [invalid(`${path}.qps`, qps, 'must be positive')]),
    ...(type === 'Server' || cacheSize >= 0 ? [] : [invalid(`${path}.cacheSize`, cacheSize, 'must not be negative')]),
  ]
}

const WEBHOOK = defineConfig('WebhookAdmissionConfiguration', [`${CONFIG_GROUP}/v1`], 'v1.WebhookAdmission', {
  kubeConfigFile: text,
  staticManifestsDir: text,
})

function readWebhook(source: string): WebhookPluginSettings {
  const { kubeConfigFile = '', staticManifestsDir = '' } = readConfig(source, [WEBHOOK]).value as {
    readonly kubeConfigFile?: string
    readonly staticManifestsDir?: string
  }
  if (kubeConfigFile !== '' && !isAbsolute(kubeConfigFile)) {
    throw new Error(fieldErrorText(invalid('kubeConfigFile', kubeConfigFile, 'must be an absolute file path')))
  }
  if (staticManifestsDir !== '') {
    const why = 'staticManifestsDir requires the ManifestBasedAdmissionControlConfig feature gate to be enabled'
    throw new Error(fieldErrorText(forbidden('staticManifestsDir', why)))
  }
  return kubeConfigFile === '' ? {} : { kubeConfigFile }
}

const TOLERATION_CONFIG = defineConfig(
  'Configuration',
  ['podtolerationrestriction.admission.k8s.io/v1alpha1'],
  'v1alpha1.Configuration',
  { default: TOLERATIONS, whitelist: TOLERATIONS },
)

function readTolerations(source: string): ClusterTolerations {
  const config: ClusterTolerations = readConfig(source, [TOLERATION_CONFIG], { warn: () => undefined }).value
  const errors = [
    ...validateTolerations('podtolerationrestriction.default', config.default),
    ...validateTolerations('podtolerationrestriction.whitelist', config.whitelist),
  ]
  if (errors.length > 0) throw new Error(`invalid config: [${errors.map(fieldErrorText).join(' ')}]`)
  return config
}

const NODE_SELECTORS = struct('podnodeselector.pluginConfig', {
  podNodeSelectorPluginConfig: { type: 'map', values: text },
})

/** Unlike upstream, which ignores a document that it cannot read, refuses it: without it, pods go anywhere. */
function readNodeSelectors(source: string): NodeSelectorsByNamespace {
  const { podNodeSelectorPluginConfig = {} } = readUnversioned(source, NODE_SELECTORS) as {
    readonly podNodeSelectorPluginConfig?: NodeSelectorsByNamespace
  }
  return podNodeSelectorPluginConfig
}

const duration = scalar('int64', 'time.Duration')

const IMAGE_POLICY = struct('imagepolicy.AdmissionConfig', {
  imagePolicy: struct('imagepolicy.imagePolicyWebhookConfig', {
    kubeConfigFile: text,
    allowTTL: duration,
    denyTTL: duration,
    retryBackoff: duration,
    defaultAllow: flag,
  }),
})

function readImagePolicy(source: string | undefined): ImagePolicySettings {
  if (source === undefined) throw new Error('no config specified')
  const { imagePolicy = {} } = readUnversioned(source, IMAGE_POLICY) as {
    readonly imagePolicy?: {
      readonly kubeConfigFile?: string
      readonly allowTTL?: number
      readonly denyTTL?: number
      readonly retryBackoff?: number
      readonly defaultAllow?: boolean
    }
  }
  const { kubeConfigFile = '', allowTTL = 0, denyTTL = 0, retryBackoff = 0, defaultAllow = false } = imagePolicy
  return {
    retryBackoffMs: boundedMs(retryBackoff, 1, { minMs: 1e-6, maxMs: 5 * 60_000, defaultMs: 500 }),
    allowTtlMs: boundedMs(allowTTL, 1000, { minMs: 1000, maxMs: 30 * 60_000, defaultMs: 5 * 60_000 }),
    denyTtlMs: boundedMs(denyTTL, 1000, { minMs: 1000, maxMs: 30 * 60_000, defaultMs: 30_000 }),
    kubeConfigFile,
    defaultAllow,
  }
}

interface Bounds {
  readonly minMs: number
  readonly maxMs: number
  readonly defaultMs: number
}

/** 0 stands for the default, -1 for none at all. */
function boundedMs(value: number | bigint, unitMs: number, { minMs, maxMs, defaultMs }: Bounds): number {
  const amount = Number(value)
  if (amount === -1) return 0
  if (amount === 0) return defaultMs
  const durationMs = amount * unitMs
  if (durationMs >= minMs && durationMs <= maxMs) return durationMs
  const [least, most, given] = [minMs, maxMs, durationMs].map(formatDuration)
  throw new Error(`valid value is between ${least} and ${most}, got ${given}`)
}

/** A configuration without kind and version. */
function readUnversioned(source: string, schema: StructSchema): Readonly<Record<string, unknown>> {
  const sink = { duplicates: [], offences: [] }
  return decodeValue(schema, parseYaml(source) ?? {}, 'Ignore', sink) as Readonly<Record<string, unknown>>
}
