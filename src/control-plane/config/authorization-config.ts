/**
 * `--authorization-config`: an AuthorizationConfiguration, the authorizers in the order in which they are asked. Read
 * again when it changes; what cannot be used then changes nothing.
 */
import { isAbsolute } from 'node:path'

import type { AuthorizationMode, ConfiguredAuthorizer } from '#apiserver/authorizers/index.ts'
import {
  defineConfig,
  fileErrorText,
  flag,
  listOf,
  optional,
  readConfig,
  scalar,
  struct,
  text,
} from '#meta/config-kind.ts'
import { durationMs } from '#meta/duration.ts'
import {
  aggregateText,
  duplicate,
  type FieldError,
  index,
  invalid,
  notSupported,
  required,
  tooMany,
  verbatim,
} from '#meta/validation/field-error.ts'
import { dns1123Subdomain } from '#meta/validation/names.ts'
import { compileAccessCondition } from '#model/expressions/access.ts'
import { expressionErrors, fit } from '#model/expressions/compile.ts'

import { createReviewClient, type ReviewClientTools } from '../review-client.ts'

const WEBHOOK = struct('v1.WebhookConfiguration', {
  authorizedTTL: scalar('duration', 'v1.Duration'),
  cacheAuthorizedRequests: optional(flag),
  unauthorizedTTL: scalar('duration', 'v1.Duration'),
  cacheUnauthorizedRequests: optional(flag),
  timeout: scalar('duration', 'v1.Duration'),
  subjectAccessReviewVersion: text,
  matchConditionSubjectAccessReviewVersion: text,
  failurePolicy: text,
  connectionInfo: struct('v1.WebhookConnectionInfo', { type: text, kubeConfigFile: optional(text) }),
  matchConditions: listOf(struct('v1.WebhookMatchCondition', { expression: text })),
})

const AUTHORIZATION = defineConfig(
  'AuthorizationConfiguration',
  ['v1', 'v1beta1', 'v1alpha1'].map((version) => `apiserver.config.k8s.io/${version}`),
  'v1.AuthorizationConfiguration',
  { authorizers: listOf(struct('v1.AuthorizerConfiguration', { type: text, name: text, webhook: optional(WEBHOOK) })) },
)

interface WebhookSettings {
  readonly authorizedTTL?: string
  readonly cacheAuthorizedRequests?: boolean
  readonly unauthorizedTTL?: string
  readonly cacheUnauthorizedRequests?: boolean
  readonly timeout?: string
  readonly subjectAccessReviewVersion?: string
  readonly matchConditionSubjectAccessReviewVersion?: string
  readonly failurePolicy?: string
  readonly connectionInfo?: { readonly type?: string; readonly kubeConfigFile?: string }
  readonly matchConditions?: readonly { readonly expression?: string }[]
}

export interface AuthorizerSettings {
  readonly type?: string
  readonly name?: string
  readonly webhook?: WebhookSettings
}

/** Upstream's, and which of them may be there more than once. */
const TYPES = ['ABAC', 'AlwaysAllow', 'AlwaysDeny', 'Node', 'RBAC', 'Webhook']
const REPEATABLE = 'Webhook'

/** Throws upstream's texts. */
export function parseAuthorizationConfig(source: string): readonly AuthorizerSettings[] {
  let value
  try {
    ;({ value } = readConfig(source, [AUTHORIZATION], {
      mistaken: (kind) => `expected AuthorizationConfiguration, got *apiserver.${kind}`,
    }))
  } catch (cause) {
    throw new Error(`failed to load AuthorizationConfiguration from file: ${(cause as Error).message}`, { cause })
  }
  const { authorizers = [] } = value as { readonly authorizers?: readonly AuthorizerSettings[] }
  const errors =
    authorizers.length === 0
      ? [required('authorizers', 'at least one authorization mode must be defined')]
      : authorizers.flatMap((one, at) => authorizerErrors(one, at, authorizers.slice(0, at)))
  if (errors.length > 0) throw new Error(aggregateText(errors))
  return authorizers
}

function authorizerErrors(
  { type = '', name = '', webhook }: AuthorizerSettings,
  at: number,
  earlier: readonly AuthorizerSettings[],
): FieldError[] {
  const path = index('authorizers', at)
  if (type === '') return [required(`${path}.type`)]
  if (!TYPES.includes(type)) return [notSupported(`${path}.type`, type, TYPES)]
  if (type !== REPEATABLE && earlier.some((one) => one.type === type)) return [duplicate(`${path}.type`, type)]
  const errors = nameErrors(`${path}.name`, name, earlier)
  if (type === 'ABAC') errors.push(invalid(`${path}.type`, type, 'is not supported by this server: use RBAC'))
  if (type !== 'Webhook') {
    const only = 'may only be specified when type=Webhook'
    return webhook === undefined ? errors : [...errors, invalid(`${path}.webhook`, 'non-null', only)]
  }
  if (webhook === undefined) return [...errors, required(`${path}.webhook`, 'required when type=Webhook')]
  return [...errors, ...webhookErrors(path, webhook)]
}

function nameErrors(field: string, name: string, earlier: readonly AuthorizerSettings[]): FieldError[] {
  if (name === '') return [required(field)]
  if (earlier.some((one) => one.name === name)) return [duplicate(field, name)]
  const complaints = dns1123Subdomain(name)
  return complaints.length === 0 ? [] : [invalid(field, name, `authorizer name is invalid: ${complaints.join(', ')}`)]
}

const MAX_TIMEOUT_MS = 30_000
/** What a cache keeps an answer for that does not say. */
const AUTHORIZED_TTL = '5m0s'
const UNAUTHORIZED_TTL = '30s'

function webhookErrors(path: string, webhook: WebhookSettings): FieldError[] {
  const { timeout = '', authorizedTTL = '', unauthorizedTTL = '' } = webhook
  const positive = (field: string, value: string): FieldError[] =>
    millis(value) < 0 ? [invalid(`${path}.${field}`, value, 'must be > 0s')] : []
  const timeoutMs = millis(timeout)
  const isBadTimeout = timeoutMs < 0 || timeoutMs > MAX_TIMEOUT_MS
  return [
    ...(timeoutMs === 0 ? [required(`${path}.timeout`)] : []),
    ...(isBadTimeout ? [invalid(`${path}.timeout`, timeout, 'must be > 0s and <= 30s')] : []),
    ...positive('authorizedTTL', authorizedTTL),
    ...positive('unauthorizedTTL', unauthorizedTTL),
    ...choiceErrors(`${path}.subjectAccessReviewVersion`, webhook.subjectAccessReviewVersion, ['v1', 'v1beta1']),
    ...conditionVersionErrors(`${path}.matchConditionSubjectAccessReviewVersion`, webhook),
    ...choiceErrors(`${path}.failurePolicy`, webhook.failurePolicy, ['NoOpinion', 'Deny']),
    ...connectionErrors(`${path}.connectionInfo`, webhook.connectionInfo),
    ...conditionErrors(`${path}.matchConditions`, webhook.matchConditions ?? []),
  ]
}

function millis(text: string): number {
  return text === '' ? 0 : durationMs(text)
}

function choiceErrors(field: string, value: string | undefined, choices: readonly string[]): FieldError[] {
  if ((value ?? '') === '') return [required(field)]
  return choices.includes(value ?? '') ? [] : [notSupported(field, value, choices)]
}

function conditionVersionErrors(field: string, webhook: WebhookSettings): FieldError[] {
  const { matchConditionSubjectAccessReviewVersion: version = '', matchConditions = [] } = webhook
  if (version !== '') return choiceErrors(field, version, ['v1'])
  return matchConditions.length === 0 ? [] : [required(field, 'required if match conditions are specified')]
}

const CONNECTIONS = ['InClusterConfig', 'KubeConfigFile']

function connectionErrors(path: string, info: WebhookSettings['connectionInfo'] = {}): FieldError[] {
  const { type = '', kubeConfigFile } = info
  const field = `${path}.kubeConfigFile`
  switch (type) {
    case '':
      return [required(`${path}.type`)]
    case 'InClusterConfig':
      return [
        ...(kubeConfigFile === undefined
          ? []
          : [invalid(field, kubeConfigFile, 'can only be set when type=KubeConfigFile')]),
        invalid(`${path}.type`, type, 'is not supported by this server: use KubeConfigFile'),
      ]
    case 'KubeConfigFile':
      if ((kubeConfigFile ?? '') === '') return [required(field)]
      return isAbsolute(kubeConfigFile ?? '') ? [] : [invalid(field, kubeConfigFile, 'must be an absolute path')]
    default: {
      // Upstream shows the whole of it, as Go names its fields.
      const whole = JSON.stringify({ Type: type, KubeConfigFile: kubeConfigFile ?? null })
      return [notSupported(`${path}.type`, verbatim(whole), CONNECTIONS)]
    }
  }
}

const MAX_CONDITIONS = 64

function conditionErrors(path: string, conditions: readonly { readonly expression?: string }[]): FieldError[] {
  if (conditions.length > MAX_CONDITIONS) return [tooMany(path, conditions.length, MAX_CONDITIONS)]
  const expressions = conditions.map(({ expression = '' }) => expression)
  return expressions.flatMap((expression, at) => {
    const field = `${index(path, at)}.expression`
    if (expression.trim() === '') return [required(field)]
    if (expressions.indexOf(expression) < at) return [duplicate(field, expression)]
    return expressionErrors(field, compileAccessCondition(expression))
  })
}

/** The authorizers of settings that `parseAuthorizationConfig` let pass. Rejects when a kubeconfig cannot be used. */
export function loadAuthorizers(
  settings: readonly AuthorizerSettings[],
  tools: ReviewClientTools,
): Promise<readonly ConfiguredAuthorizer[]> {
  return Promise.all(
    settings.map(async ({ type, name = '', webhook }, at) => ({
      type: type as AuthorizationMode,
      name,
      ...(webhook !== undefined && { webhook: await loadWebhook(webhook, index('authorizers', at), tools) }),
    })),
  )
}

async function loadWebhook(
  settings: WebhookSettings,
  path: string,
  tools: ReviewClientTools,
): Promise<NonNullable<ConfiguredAuthorizer['webhook']>> {
  const file = settings.connectionInfo?.kubeConfigFile ?? ''
  await tools.readFile(file).catch((cause: Error) => {
    const field = `${path}.connectionInfo.kubeConfigFile`
    throw new Error(
      aggregateText([
        invalid(field, file, `error loading file: ${fileErrorText(file, cause).replace(/^open /, 'stat ')}`),
      ]),
      { cause },
    )
  })
  const { cacheAuthorizedRequests = true, cacheUnauthorizedRequests = true } = settings
  return {
    clock: tools.clock,
    send: await createReviewClient(file, tools, millis(settings.timeout ?? '')),
    version: settings.subjectAccessReviewVersion === 'v1beta1' ? 'v1beta1' : 'v1',
    authorizedTtlMs: cacheAuthorizedRequests
      ? millis(settings.authorizedTTL || AUTHORIZED_TTL) || millis(AUTHORIZED_TTL)
      : 0,
    unauthorizedTtlMs: cacheUnauthorizedRequests
      ? millis(settings.unauthorizedTTL || UNAUTHORIZED_TTL) || millis(UNAUTHORIZED_TTL)
      : 0,
    failurePolicy: settings.failurePolicy === 'Deny' ? 'Deny' : 'NoOpinion',
    conditions: (settings.matchConditions ?? []).flatMap(({ expression = '' }) =>
      fit(compileAccessCondition(expression)),
    ),
  }
}
