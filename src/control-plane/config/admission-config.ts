/**
 * `--admission-control-config-file`: an AdmissionConfiguration with a part for each plugin, inline or in a file of its
 * own. Parts of plugins that are off are not looked at, as upstream does not.
 */
import { dirname, isAbsolute, join } from 'node:path'

import type { EventLimit } from '#admission/event-rate-limit.ts'
import { enabledPlugins, type PluginSettings } from '#admission/index.ts'
import type { Exemptions } from '#admission/pod-security/pod-security.ts'
import {
  LEVEL_RULE,
  type LevelVersion,
  type Mode,
  parseLevel,
  parseVersion,
  VERSION_RULE,
} from '#admission/pod-security/policy.ts'
import type { LimitedResource } from '#admission/resource-quota/check.ts'
import { aggregatedText } from '#apiserver/authorizers/authorizer.ts'
import { goQuote } from '#lib/go-text.ts'
import { ProgramError } from '#lib/program.ts'
import {
  anything,
  type ConfigKind,
  defineConfig,
  fileErrorText,
  listOf,
  optional,
  readConfig,
  scalar,
  struct,
  text,
  texts,
} from '#meta/config-kind.ts'
import {
  aggregateText,
  duplicate,
  type FieldError,
  index,
  invalid,
  notSupported,
  required,
  verbatim,
} from '#meta/validation/field-error.ts'
import { dns1123Label, dns1123Subdomain } from '#meta/validation/names.ts'

const CONFIG_GROUP = 'apiserver.config.k8s.io'

const ADMISSION = defineConfig(
  'AdmissionConfiguration',
  [`${CONFIG_GROUP}/v1`, 'apiserver.k8s.io/v1alpha1'],
  'v1.AdmissionConfiguration',
  {
    plugins: listOf(
      struct('v1.AdmissionPluginConfiguration', { name: text, path: text, configuration: optional(anything) }),
    ),
  },
)

interface PluginPart {
  readonly name?: string
  readonly path?: string
  readonly configuration?: unknown
}

export interface AdmissionConfigTools {
  readonly readFile: (path: string) => Promise<string>
  readonly enable: readonly string[]
  readonly disable: readonly string[]
}

/** Throws ProgramError with upstream's texts. Without a file the plugins have their own defaults. */
export async function loadAdmissionConfig(file: string, tools: AdmissionConfigTools): Promise<PluginSettings> {
  const parts = file === '' ? [] : await readParts(file, tools.readFile)
  let settings: PluginSettings = {}
  for (const name of enabledPlugins(tools)) {
    const reader = Object.hasOwn(READERS, name) ? READERS[name] : undefined
    if (reader === undefined) continue
    const part = parts.find((one) => one.name === name)
    const source = part === undefined ? undefined : await sourceOf(part, file, tools.readFile)
    settings = { ...settings, ...attempt(`couldn't init admission plugin ${goQuote(name)}`, () => reader(source)) }
  }
  return settings
}

async function readParts(file: string, readFile: AdmissionConfigTools['readFile']): Promise<readonly PluginPart[]> {
  const place = 'failed to read plugin config'
  const source = await readFile(file).catch((cause: Error) => {
    throw refusal(
      `${place}: unable to read admission control configuration from ${goQuote(file)} [${fileErrorText(file, cause)}]`,
      cause,
    )
  })
  const { value } = attempt(place, () =>
    readConfig(source, [ADMISSION], { mistaken: (kind) => `unexpected type: *apiserver.${kind}` }),
  )
  return (value as { readonly plugins?: readonly PluginPart[] }).plugins ?? []
}

/** Undefined when the part says nothing. */
async function sourceOf(
  { configuration, path = '' }: PluginPart,
  file: string,
  readFile: AdmissionConfigTools['readFile'],
): Promise<string | undefined> {
  if (configuration !== undefined && configuration !== null) return JSON.stringify(configuration)
  if (path === '') return undefined
  const whole = isAbsolute(path) ? path : join(dirname(file), path)
  return readFile(whole).catch((cause: Error) => {
    throw refusal(`Couldn't open admission plugin configuration ${whole}: ${fileErrorText(whole, cause)}`, cause)
  })
}

function attempt<T>(place: string, task: () => T): T {
  try {
    return task()
  } catch (cause) {
    if (cause instanceof InitializationError) throw refusal(cause.message, cause)
    throw refusal(`${place}: ${(cause as Error).message}`, cause)
  }
}

/** What upstream finds wrong with a plugin only after it is made. */
class InitializationError extends Error {
  override readonly name = 'InitializationError'
}

function refusal(why: string, cause: unknown): ProgramError {
  return new ProgramError(`failed to apply admission: ${why}`, { cause })
}

/** What plugins make of their part; of none at all, too. */
const READERS: Readonly<Record<string, (source: string | undefined) => PluginSettings>> = {
  PodSecurity: (source) => (source === undefined ? {} : { podSecurity: readPodSecurity(source) }),
  ResourceQuota: (source) => (source === undefined ? {} : { limitedResources: readLimitedResources(source) }),
  EventRateLimit: (source) => ({ eventLimits: readEventLimits(source) }),
  MutatingAdmissionWebhook: (source) => readWebhook(source),
  ValidatingAdmissionWebhook: (source) => readWebhook(source),
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

/** Credentials for webhooks would go unused: whoever needs them must know. */
function readWebhook(source: string | undefined): PluginSettings {
  const value = source === undefined ? {} : readConfig(source, [WEBHOOK]).value
  for (const field of ['kubeConfigFile', 'staticManifestsDir']) {
    if ((value[field] ?? '') !== '') throw new Error(`${field} is not supported: admission webhooks are not called yet`)
  }
  return {}
}
