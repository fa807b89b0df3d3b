/**
 * Configurations of single admission plugins from `--admission-control-config-file`. Plugins without a configuration
 * are parsed as well, because some require one.
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
import type { ClusterTolerations } from '#admission/pod-toleration-restriction.ts'
import type { LimitedResource } from '#admission/resource-quota/check.ts'
import { structFor } from '#apis/schemas.ts'
import { aggregatedText } from '#auth/authorizer.ts'
import { durationOfMs } from '#lib/go/duration.ts'
import { parseYaml } from '#lib/yaml/yaml.ts'
import { decodeValue } from '#meta/codec/decode.ts'
import { type ConfigKind, defineConfig, readConfig } from '#meta/config-kind.ts'
import { fillDefaults, schemaOf } from '#meta/config-rows.ts'
import type { StructSchema } from '#meta/schema.ts'
import { aggregateText, fieldErrorText } from '#meta/validation/field-error.ts'
import { collectErrors, type FieldError, fieldPath, verbatim } from '#meta/validation/field-path.ts'
import { dns1123Label, dns1123Subdomain } from '#meta/validation/names.ts'
import { validateTolerations } from '#model/nodes/taints.ts'

export const CONFIG_GROUP = 'apiserver.config.k8s.io'

/** Errors that upstream reports only after a plugin is created. */
export class InitializationError extends Error {
  override readonly name = 'InitializationError'
}

/** The set part of WebhookAdmissionConfiguration, with absolute paths. */
export interface WebhookPluginSettings {
  /** Credentials for webhooks, by host: see webhook-credentials.ts. */
  readonly kubeConfigFile?: string
}

export interface ImagePolicySettings {
  readonly kubeConfigFile: string
  readonly allowTtlMs: number
  readonly denyTtlMs: number
  /** The backoff before the first retry; it grows by half with each further one. */
  readonly retryBackoffMs: number
  readonly defaultAllow: boolean
}

/** All settings of the file: for plugins, and for connections that the server makes for them. */
export interface AdmissionFileSettings extends PluginSettings {
  readonly imagePolicyBackend?: ImagePolicySettings
  readonly mutatingWebhooks?: WebhookPluginSettings
  readonly validatingWebhooks?: WebhookPluginSettings
}

/** By plugin. Each is called without a source if the plugin is enabled and has no configuration. */
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
  ['PodSecurityConfiguration', 'v1.PodSecurityConfiguration'],
  ['v1', 'v1beta1', 'v1alpha1'].map((version) => `pod-security.admission.config.k8s.io/${version}`),
  {
    'v1.PodSecurityConfiguration': { defaults: 'v1.PodSecurityDefaults', exemptions: 'v1.PodSecurityExemptions' },
    'v1.PodSecurityDefaults': Object.fromEntries(
      MODES.flatMap((mode) => [mode, `${mode}-version`]).map((name) => [name, 'string']),
    ),
    'v1.PodSecurityExemptions': { usernames: '[]string', namespaces: '[]string', runtimeClasses: '[]string' },
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
    fieldPath(`exemptions.${name}`).each(list, (field, value, at) => {
      const found = complaints(value)
      if (found.length > 0) return [field.invalid(value, found.join(', '))]
      return list.indexOf(value) < at ? [field.duplicate(value)] : []
    })
  return [
    ...check('namespaces', namespaces, dns1123Label),
    ...check('runtimeClasses', runtimeClasses, dns1123Subdomain),
    ...check('usernames', usernames, (name) => (name === '' ? ['username must not be empty'] : [])),
  ]
}

const QUOTA_STRUCTS = {
  'v1.LimitedResource': {
    apiGroup: 'string',
    resource: 'string',
    matchContains: '[]string',
    matchScopes: '[]v1.ScopedResourceSelectorRequirement',
  },
  'v1.ScopedResourceSelectorRequirement': { scopeName: 'string', operator: 'string', values: '[]string' },
}
const QUOTA_FIELDS = { limitedResources: '[]v1.LimitedResource' }

const QUOTA: readonly ConfigKind[] = [
  defineConfig(['ResourceQuotaConfiguration', 'v1.Configuration'], [`${CONFIG_GROUP}/v1`], {
    'v1.Configuration': QUOTA_FIELDS,
    ...QUOTA_STRUCTS,
  }),
  defineConfig(
    ['Configuration', 'v1beta1.Configuration'],
    ['resourcequota.admission.k8s.io/v1beta1', 'resourcequota.admission.k8s.io/v1alpha1'],
    { 'v1beta1.Configuration': QUOTA_FIELDS, ...QUOTA_STRUCTS },
  ),
]

function readLimitedResources(source: string): readonly LimitedResource[] {
  const { limitedResources = [] } = readConfig(source, QUOTA).value as {
    readonly limitedResources?: readonly LimitedResource[]
  }
  const errors = limitedResources.flatMap(({ resource = '' }: Partial<LimitedResource>, at) =>
    resource === '' ? [fieldPath('limitedResources').index(at).child('resource').required()] : [],
  )
  if (errors.length > 0) throw new Error(aggregateText(errors))
  return limitedResources
}

const EVENT_LIMITS = defineConfig(
  ['Configuration', 'v1alpha1.Configuration'],
  ['eventratelimit.admission.k8s.io/v1alpha1'],
  {
    'v1alpha1.Configuration': { limits: '[]v1alpha1.Limit' },
    'v1alpha1.Limit': { type: 'v1alpha1.LimitType', qps: 'int32', burst: 'int32', cacheSize: 'int32' },
  },
)

const LIMIT_TYPES = ['Server', 'Namespace', 'User', 'SourceAndObject']

/** Without limits the plugin is useless, and upstream does not start. */
function readEventLimits(source: string | undefined): readonly EventLimit[] {
  const ignore = { warn: () => undefined }
  const { limits = [] } = (source === undefined ? {} : readConfig(source, [EVENT_LIMITS], ignore).value) as {
    readonly limits?: readonly EventLimit[]
  }
  const errors = limits.length === 0 ? [fieldPath('limits').invalid(verbatim('null'), 'must not be empty')] : []
  errors.push(...limits.flatMap(limitErrors))
  if (errors.length > 0) throw new Error(aggregateText(errors))
  return limits
}

function limitErrors({ type, qps = 0, burst = 0, cacheSize = 0 }: Partial<EventLimit>, at: number): FieldError[] {
  const path = fieldPath('limits').index(at)
  return collectErrors(
    !LIMIT_TYPES.includes(type ?? '') && path.child('type').notSupported(type ?? '', LIMIT_TYPES),
    !(burst > 0) && path.child('burst').invalid(burst, 'must be positive'),
    !(qps > 0) && path.child('qps').invalid(qps, 'must be positive'),
    type !== 'Server' && !(cacheSize >= 0) && path.child('cacheSize').invalid(cacheSize, 'must not be negative'),
  )
}

const WEBHOOK_STRUCTS = {
  'v1.WebhookAdmission': { kubeConfigFile: 'string =', staticManifestsDir: 'string =' },
} as const

const WEBHOOK = defineConfig(
  ['WebhookAdmissionConfiguration', 'v1.WebhookAdmission'],
  [`${CONFIG_GROUP}/v1`],
  WEBHOOK_STRUCTS,
)

function readWebhook(source: string): WebhookPluginSettings {
  const { kubeConfigFile, staticManifestsDir } = WEBHOOK.withDefaults(readConfig(source, [WEBHOOK]).value)
  if (kubeConfigFile !== '' && !isAbsolute(kubeConfigFile)) {
    throw new Error(
      fieldErrorText(fieldPath('kubeConfigFile').invalid(kubeConfigFile, 'must be an absolute file path')),
    )
  }
  if (staticManifestsDir !== '') {
    const why = 'staticManifestsDir requires the ManifestBasedAdmissionControlConfig feature gate to be enabled'
    throw new Error(fieldErrorText(fieldPath('staticManifestsDir').forbidden(why)))
  }
  return kubeConfigFile === '' ? {} : { kubeConfigFile }
}

const TOLERATION_CONFIG = defineConfig(
  ['Configuration', 'v1alpha1.Configuration'],
  ['podtolerationrestriction.admission.k8s.io/v1alpha1'],
  { 'v1alpha1.Configuration': { default: '[]v1.Toleration', whitelist: '[]v1.Toleration' } },
  { 'v1.Toleration': structFor('core.v1', 'Toleration') },
)

function readTolerations(source: string): ClusterTolerations {
  const config: ClusterTolerations = readConfig(source, [TOLERATION_CONFIG], { warn: () => undefined }).value
  const errors = [
    ...validateTolerations(fieldPath('podtolerationrestriction.default'), config.default),
    ...validateTolerations(fieldPath('podtolerationrestriction.whitelist'), config.whitelist),
  ]
  if (errors.length > 0) throw new Error(`invalid config: [${errors.map(fieldErrorText).join(' ')}]`)
  return config
}

const NODE_SELECTORS = schemaOf(
  { 'podnodeselector.pluginConfig': { podNodeSelectorPluginConfig: 'map[string]string' } },
  'podnodeselector.pluginConfig',
)

/** Rejects an unreadable document, unlike upstream, which ignores it: without it, pods would run on any node. */
function readNodeSelectors(source: string): NodeSelectorsByNamespace {
  const { podNodeSelectorPluginConfig = {} } = readUnversioned(source, NODE_SELECTORS) as {
    readonly podNodeSelectorPluginConfig?: NodeSelectorsByNamespace
  }
  return podNodeSelectorPluginConfig
}

const IMAGE_POLICY = {
  'imagepolicy.AdmissionConfig': { imagePolicy: 'imagepolicy.imagePolicyWebhookConfig' },
  'imagepolicy.imagePolicyWebhookConfig': {
    kubeConfigFile: 'string =',
    allowTTL: 'time.Duration =0',
    denyTTL: 'time.Duration =0',
    retryBackoff: 'time.Duration =0',
    defaultAllow: 'bool =false',
  },
} as const
const IMAGE_POLICY_ROOT = 'imagepolicy.AdmissionConfig'

function readImagePolicy(source: string | undefined): ImagePolicySettings {
  if (source === undefined) throw new Error('no config specified')
  const given = readUnversioned(source, schemaOf(IMAGE_POLICY, IMAGE_POLICY_ROOT))
  const { imagePolicy } = fillDefaults(IMAGE_POLICY, IMAGE_POLICY_ROOT, given)
  const { kubeConfigFile, allowTTL, denyTTL, retryBackoff, defaultAllow } = imagePolicy
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

/** 0 is the default, -1 none. */
function boundedMs(value: number | bigint, unitMs: number, { minMs, maxMs, defaultMs }: Bounds): number {
  const amount = Number(value)
  if (amount === -1) return 0
  if (amount === 0) return defaultMs
  const durationMs = amount * unitMs
  if (durationMs >= minMs && durationMs <= maxMs) return durationMs
  const [least, most, given] = [minMs, maxMs, durationMs].map(durationOfMs)
  throw new Error(`valid value is between ${least} and ${most}, got ${given}`)
}

/** A configuration without kind and version. */
function readUnversioned(source: string, schema: StructSchema): Readonly<Record<string, unknown>> {
  const sink = { duplicates: [], offences: [] }
  return decodeValue(schema, parseYaml(source) ?? {}, 'Ignore', sink) as Readonly<Record<string, unknown>>
}
