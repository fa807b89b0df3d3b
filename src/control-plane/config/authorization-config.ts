/**
 * `--authorization-config`: an AuthorizationConfiguration with the authorizers in order. The file is reloaded when it
 * changes; an invalid file then has no effect.
 */
import { isAbsolute } from 'node:path'

import type { AuthorizationMode, ConfiguredAuthorizer } from '#auth/authorizers/index.ts'
import { durationMs } from '#lib/go/duration.ts'
import { defineConfig, fileErrorText, readConfig } from '#meta/config-kind.ts'
import type { Given } from '#meta/config-rows.ts'
import { aggregateText } from '#meta/validation/field-error.ts'
import { collectErrors, type FieldError, fieldPath, type FieldPath, verbatim } from '#meta/validation/field-path.ts'
import { dns1123Subdomain } from '#meta/validation/names.ts'
import { compileAccessCondition } from '#model/expressions/access.ts'
import { expressionErrors, fit } from '#model/expressions/compile.ts'

import { createReviewClient, type ReviewClientTools } from '../review-client.ts'

const STRUCTS = {
  'v1.AuthorizationConfiguration': { authorizers: '[]v1.AuthorizerConfiguration' },
  'v1.AuthorizerConfiguration': { type: 'string', name: 'string', webhook: '*v1.WebhookConfiguration' },
  'v1.WebhookConfiguration': {
    authorizedTTL: 'v1.Duration',
    cacheAuthorizedRequests: '*bool',
    unauthorizedTTL: 'v1.Duration',
    cacheUnauthorizedRequests: '*bool',
    timeout: 'v1.Duration',
    subjectAccessReviewVersion: 'string',
    matchConditionSubjectAccessReviewVersion: 'string',
    failurePolicy: 'string',
    connectionInfo: 'v1.WebhookConnectionInfo',
    matchConditions: '[]v1.WebhookMatchCondition',
  },
  'v1.WebhookConnectionInfo': { type: 'string', kubeConfigFile: '*string' },
  'v1.WebhookMatchCondition': { expression: 'string' },
} as const

const AUTHORIZATION = defineConfig(
  ['AuthorizationConfiguration', 'v1.AuthorizationConfiguration'],
  ['v1', 'v1beta1', 'v1alpha1'].map((version) => `apiserver.config.k8s.io/${version}`),
  STRUCTS,
)

type WebhookSettings = Given<typeof STRUCTS, 'v1.WebhookConfiguration'>

export interface AuthorizerSettings extends Given<typeof STRUCTS, 'v1.AuthorizerConfiguration'> {}

/** Upstream's types; the value tells if a type may be repeated. */
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
      ? [fieldPath('authorizers').required('at least one authorization mode must be defined')]
      : authorizers.flatMap((one, at) => authorizerErrors(one, at, authorizers.slice(0, at)))
  if (errors.length > 0) throw new Error(aggregateText(errors))
  return authorizers
}

function authorizerErrors(
  { type = '', name = '', webhook }: AuthorizerSettings,
  at: number,
  earlier: readonly AuthorizerSettings[],
): FieldError[] {
  const path = fieldPath('authorizers').index(at)
  if (type === '') return [path.child('type').required()]
  if (!TYPES.includes(type)) return [path.child('type').notSupported(type, TYPES)]
  if (type !== REPEATABLE && earlier.some((one) => one.type === type)) return [path.child('type').duplicate(type)]
  const errors = nameErrors(path.child('name'), name, earlier)
  if (type === 'ABAC') errors.push(path.child('type').invalid(type, 'is not supported by this server: use RBAC'))
  if (type !== 'Webhook') {
    const only = 'may only be specified when type=Webhook'
    return webhook === undefined ? errors : [...errors, path.child('webhook').invalid('non-null', only)]
  }
  if (webhook === undefined) return [...errors, path.child('webhook').required('required when type=Webhook')]
  return [...errors, ...webhookErrors(path, webhook)]
}

function nameErrors(path: FieldPath, name: string, earlier: readonly AuthorizerSettings[]): FieldError[] {
  if (name === '') return [path.required()]
  if (earlier.some((one) => one.name === name)) return [path.duplicate(name)]
  const complaints = dns1123Subdomain(name)
  return complaints.length === 0 ? [] : [path.invalid(name, `authorizer name is invalid: ${complaints.join(', ')}`)]
}

const MAX_TIMEOUT_MS = 30_000
/** The default lifetime of cached answers. */
const AUTHORIZED_TTL = '5m0s'
const UNAUTHORIZED_TTL = '30s'

function webhookErrors(path: FieldPath, webhook: WebhookSettings): FieldError[] {
  const { timeout = '', authorizedTTL = '', unauthorizedTTL = '' } = webhook
  const positive = (field: string, value: string): FieldError[] =>
    millis(value) < 0 ? [path.child(field).invalid(value, 'must be > 0s')] : []
  const timeoutMs = millis(timeout)
  const isBadTimeout = timeoutMs < 0 || timeoutMs > MAX_TIMEOUT_MS
  return collectErrors(
    timeoutMs === 0 && path.child('timeout').required(),
    isBadTimeout && path.child('timeout').invalid(timeout, 'must be > 0s and <= 30s'),
    positive('authorizedTTL', authorizedTTL),
    positive('unauthorizedTTL', unauthorizedTTL),
    choiceErrors(path.child('subjectAccessReviewVersion'), webhook.subjectAccessReviewVersion, ['v1', 'v1beta1']),
    conditionVersionErrors(path.child('matchConditionSubjectAccessReviewVersion'), webhook),
    choiceErrors(path.child('failurePolicy'), webhook.failurePolicy, ['NoOpinion', 'Deny']),
    connectionErrors(path.child('connectionInfo'), webhook.connectionInfo),
    conditionErrors(path.child('matchConditions'), webhook.matchConditions ?? []),
  )
}

function millis(text: string): number {
  return text === '' ? 0 : durationMs(text)
}

function choiceErrors(path: FieldPath, value: string | undefined, choices: readonly string[]): FieldError[] {
  if ((value ?? '') === '') return [path.required()]
  return choices.includes(value ?? '') ? [] : [path.notSupported(value, choices)]
}

function conditionVersionErrors(path: FieldPath, webhook: WebhookSettings): FieldError[] {
  const { matchConditionSubjectAccessReviewVersion: version = '', matchConditions = [] } = webhook
  if (version !== '') return choiceErrors(path, version, ['v1'])
  return matchConditions.length === 0 ? [] : [path.required('required if match conditions are specified')]
}

const CONNECTIONS = ['InClusterConfig', 'KubeConfigFile']

function connectionErrors(path: FieldPath, info: WebhookSettings['connectionInfo'] = {}): FieldError[] {
  const { type = '', kubeConfigFile } = info
  const field = path.child('kubeConfigFile')
  switch (type) {
    case '':
      return [path.child('type').required()]
    case 'InClusterConfig':
      return collectErrors(
        kubeConfigFile !== undefined && field.invalid(kubeConfigFile, 'can only be set when type=KubeConfigFile'),
        path.child('type').invalid(type, 'is not supported by this server: use KubeConfigFile'),
      )
    case 'KubeConfigFile':
      if ((kubeConfigFile ?? '') === '') return [field.required()]
      return isAbsolute(kubeConfigFile ?? '') ? [] : [field.invalid(kubeConfigFile, 'must be an absolute path')]
    default: {
      // Upstream prints the whole value with Go's field names.
      const whole = JSON.stringify({ Type: type, KubeConfigFile: kubeConfigFile ?? null })
      return [path.child('type').notSupported(verbatim(whole), CONNECTIONS)]
    }
  }
}

const MAX_CONDITIONS = 64

function conditionErrors(path: FieldPath, conditions: readonly { readonly expression?: string }[]): FieldError[] {
  if (conditions.length > MAX_CONDITIONS) return [path.tooMany(conditions.length, MAX_CONDITIONS)]
  const expressions = conditions.map(({ expression = '' }) => expression)
  return path.each(expressions, (path, expression, at) => {
    const field = path.child('expression')
    if (expression.trim() === '') return [field.required()]
    if (expressions.indexOf(expression) < at) return [field.duplicate(expression)]
    return expressionErrors(field, compileAccessCondition(expression))
  })
}

/** The authorizers of settings that passed `parseAuthorizationConfig`. Rejects for an unusable kubeconfig. */
export function loadAuthorizers(
  settings: readonly AuthorizerSettings[],
  tools: ReviewClientTools,
): Promise<readonly ConfiguredAuthorizer[]> {
  return Promise.all(
    settings.map(async ({ type, name = '', webhook }, at) => ({
      type: type as AuthorizationMode,
      name,
      ...(webhook !== undefined && { webhook: await loadWebhook(webhook, fieldPath('authorizers').index(at), tools) }),
    })),
  )
}

async function loadWebhook(
  settings: WebhookSettings,
  path: FieldPath,
  tools: ReviewClientTools,
): Promise<NonNullable<ConfiguredAuthorizer['webhook']>> {
  const file = settings.connectionInfo?.kubeConfigFile ?? ''
  await tools.readFile(file).catch((cause: Error) => {
    const field = path.child('connectionInfo.kubeConfigFile')
    throw new Error(
      aggregateText([
        field.invalid(file, `error loading file: ${fileErrorText(file, cause).replace(/^open /, 'stat ')}`),
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
