/**
 * Webhook authorizer: sends a SubjectAccessReview and caches the answer. If the webhook does not answer, the next
 * authorizer decides.
 */
import type { Clock } from '#lib/clock.ts'
import { ExpiringCache } from '#lib/collections/expiring-cache.ts'
import { type FieldSelector, parseFieldSelector } from '#meta/fields.ts'
import { parseSelector, type Selector } from '#meta/labels.ts'
import { type AccessSpec, evaluateAccess } from '#model/expressions/access.ts'
import type { CompiledExpression } from '#model/expressions/compile.ts'
import { createServerMeters, type ServerMeters } from '#model/metrics/families.ts'

import { type Access, aggregatedText, type Authorizer, NO_OPINION, NO_RULES, type Verdict } from '../authorizer.ts'
import type { SendReview } from '../credentials/review-webhook.ts'
import type { User } from '../user.ts'

export interface WebhookAuthorizerOptions {
  /** The name in metrics. */
  readonly name?: string
  readonly metrics?: ServerMeters | undefined
  readonly clock: Clock
  /** Sends a review and returns the status of the answer. */
  readonly send: SendReview
  readonly version?: 'v1' | 'v1beta1'
  /** `--authorization-webhook-cache-authorized-ttl`; upstream's default is 5 minutes. */
  readonly authorizedTtlMs?: number
  /** `--authorization-webhook-cache-unauthorized-ttl`; upstream's default is 30 seconds. */
  readonly unauthorizedTtlMs?: number
  /** The decision on failure. `Deny` is final; by default later authorizers decide. */
  readonly failurePolicy?: 'NoOpinion' | 'Deny'
  /** The match conditions. The webhook has no opinion about other requests and receives none of them. */
  readonly conditions?: readonly CompiledExpression[]
}

const AUTHORIZED_TTL_MS = 5 * 60_000
const UNAUTHORIZED_TTL_MS = 30_000
/** The maximum number of cached answers, as upstream. */
const MAX_ANSWERS = 8192
/** Longer reviews are not cached, so that clients cannot fill the memory with them. */
const MAX_KEPT_CHARACTERS = 10_000

export function createWebhookAuthorizer(options: WebhookAuthorizerOptions): Authorizer {
  const { clock, send, version = 'v1' } = options
  const { authorizedTtlMs = AUTHORIZED_TTL_MS, unauthorizedTtlMs = UNAUTHORIZED_TTL_MS } = options
  const answers = new ExpiringCache<Verdict>(clock, MAX_ANSWERS)
  const meter = createWebhookMeter(options)
  const condition = createConditions(options)
  const ask = async (spec: object): Promise<Verdict> => {
    const done = meter()
    try {
      const review = { apiVersion: `authorization.k8s.io/${version}`, kind: 'SubjectAccessReview', spec }
      const verdict = verdictOf(await send(review))
      done('success')
      return verdict
    } catch (error) {
      done('error')
      throw error
    }
  }
  const ttlOf = (key: string, { allowed }: Verdict): number => {
    if (key.length > MAX_KEPT_CHARACTERS) return 0
    return allowed ? authorizedTtlMs : unauthorizedTtlMs
  }
  const failed = (error: unknown): Verdict => ({
    allowed: false,
    denied: options.failurePolicy === 'Deny',
    reason: '',
    error: error instanceof Error ? error.message : String(error),
  })
  return {
    authorize(user, access) {
      const skipped = condition(() => specOf(user, access, 'v1'))
      if (skipped !== undefined) return skipped
      const spec = specOf(user, access, version)
      const key = JSON.stringify(spec)
      const fetch = (): Promise<Verdict> =>
        answers.getOrFetch(
          key,
          () => ask(spec),
          (verdict) => ttlOf(key, verdict),
        )
      return answers.get(key) ?? fetch().catch(failed)
    },
    rulesFor: () => ({
      ...NO_RULES,
      incomplete: true,
      error: 'webhook authorizer does not support user rule resolution',
    }),
  }
}

/** The verdict if the match conditions exclude the request. */
function createConditions(options: WebhookAuthorizerOptions): (spec: () => AccessSpec) => Verdict | undefined {
  const { clock, conditions = [], name = 'webhook', failurePolicy, metrics = createServerMeters() } = options
  if (conditions.length === 0) return () => undefined
  const seconds = metrics.family('apiserver_authorization_match_condition_evaluation_seconds').labels('Webhook', name)
  const errors = metrics.family('apiserver_authorization_match_condition_evaluation_errors_total')
  const exclusions = metrics.family('apiserver_authorization_match_condition_exclusions_total')
  return (spec) => {
    const startMs = clock.elapsed()
    const outcome = evaluateAccess(conditions, spec())
    seconds.observe((clock.elapsed() - startMs) / 1000)
    if (outcome.matches) return undefined
    if (outcome.errors.length === 0) {
      exclusions.labels('Webhook', name).inc()
      return NO_OPINION
    }
    errors.labels('Webhook', name).inc()
    return { ...NO_OPINION, denied: failurePolicy === 'Deny', error: aggregatedText(outcome.errors) }
  }
}

/** Starts one review and returns the function that records its result. */
function createWebhookMeter(options: WebhookAuthorizerOptions): () => (result: 'success' | 'error') => void {
  const { clock, name = 'webhook', failurePolicy, metrics = createServerMeters() } = options
  const total = metrics.family('apiserver_authorization_webhook_evaluations_total')
  const duration = metrics.family('apiserver_authorization_webhook_duration_seconds')
  const passedOn = metrics.family('apiserver_authorization_webhook_evaluations_fail_open_total')
  return () => {
    const startMs = clock.elapsed()
    return (result) => {
      total.labels(name, result).inc()
      duration.labels(name, result).observe((clock.elapsed() - startMs) / 1000)
      if (result === 'error' && failurePolicy !== 'Deny') passedOn.labels(name, result).inc()
    }
  }
}

function verdictOf(status: Readonly<Record<string, unknown>>): Verdict {
  const allowed = status['allowed'] === true
  const denied = status['denied'] === true
  const reason = typeof status['reason'] === 'string' ? status['reason'] : ''
  const error = 'webhook subject access review returned both allow and deny response'
  return allowed && denied ? { allowed: false, denied, reason, error } : { allowed, denied, reason }
}

/** `groups` is called `group` in v1beta1. */
function specOf({ name, uid, groups, extra }: User, access: Access, version: 'v1' | 'v1beta1'): AccessSpec {
  const { isResource, verb, path } = access
  return {
    ...(isResource ? { resourceAttributes: attributesOf(access) } : { nonResourceAttributes: present({ path, verb }) }),
    ...present({ user: name }),
    ...(groups.length === 0 ? {} : { [version === 'v1' ? 'groups' : 'group']: groups }),
    ...(Object.keys(extra).length === 0 ? {} : { extra }),
    ...present({ uid }),
  }
}

function attributesOf(access: Access): object {
  const {
    namespace,
    verb,
    group,
    version,
    resource,
    subresource,
    name,
    fieldSelector = '',
    labelSelector = '',
  } = access
  const fields = fieldRequirements(fieldSelector)
  const labels = labelRequirements(labelSelector)
  return {
    ...present({ namespace, verb, group, version, resource, subresource, name }),
    ...(fields.length === 0 ? {} : { fieldSelector: { requirements: fields } }),
    ...(labels.length === 0 ? {} : { labelSelector: { requirements: labels } }),
  }
}

function fieldRequirements(text: string): object[] {
  const { requirements } = understood<FieldSelector>(() => parseFieldSelector(text)) ?? { requirements: [] }
  return requirements.map(({ field, operator, value }) => ({
    key: field,
    operator: operator === '=' ? 'In' : 'NotIn',
    values: [value],
  }))
}

const LABEL_OPERATORS: ReadonlyMap<string, string> = new Map([
  ['=', 'In'],
  ['==', 'In'],
  ['in', 'In'],
  ['!=', 'NotIn'],
  ['notin', 'NotIn'],
  ['exists', 'Exists'],
  ['!', 'DoesNotExist'],
])

/** Omits requirements that the review cannot express: the review then covers more than the request, never less. */
function labelRequirements(text: string): object[] {
  const { requirements } = understood<Selector>(() => parseSelector(text)) ?? { requirements: [] }
  return requirements.flatMap(({ key, operator, values }) => {
    const known = LABEL_OPERATORS.get(operator)
    return known === undefined ? [] : [{ key, operator: known, ...(values.length === 0 ? {} : { values }) }]
  })
}

/** An unparsable selector restricts nothing. */
function understood<T>(read: () => T): T | undefined {
  try {
    return read()
  } catch {
    return undefined
  }
}

function present(texts: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(Object.entries(texts).filter(([, text]) => text !== ''))
}
