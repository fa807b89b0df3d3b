/**
 * Webhook authorizer: somebody else decides, asked by a SubjectAccessReview. Answers are kept for a while, a yes longer
 * than a no; when nobody answers, the request is not allowed by us and the next authorizer is asked.
 */
import type { Clock } from '#lib/clock.ts'
import { type FieldSelector, parseFieldSelector } from '#meta/fields.ts'
import { parseSelector, type Selector } from '#meta/labels.ts'
import { type AccessSpec, evaluateAccess } from '#model/expressions/access.ts'
import type { CompiledExpression } from '#model/expressions/compile.ts'
import { createServerMeters, type ServerMeters } from '#model/metrics/families.ts'

import { ExpiringCache } from '../credentials/expiring-cache.ts'
import type { SendReview } from '../credentials/review-webhook.ts'
import type { User } from '../registry/resource.ts'
import { type Access, aggregatedText, type Authorizer, NO_OPINION, NO_RULES, type Verdict } from './authorizer.ts'

export interface WebhookAuthorizerOptions {
  /** For metrics. */
  readonly name?: string
  readonly metrics?: ServerMeters | undefined
  readonly clock: Clock
  /** Sends a review and gives back the answer's status. */
  readonly send: SendReview
  readonly version?: 'v1' | 'v1beta1'
  /** `--authorization-webhook-cache-authorized-ttl`; upstream's default is 5 minutes. */
  readonly authorizedTtlMs?: number
  /** `--authorization-webhook-cache-unauthorized-ttl`; upstream's default is 30 seconds. */
  readonly unauthorizedTtlMs?: number
  /** What counts when nobody answers: `Deny` lets nobody asked later allow it. Default: they are asked. */
  readonly failurePolicy?: 'NoOpinion' | 'Deny'
  /** Of what is asked at all; nothing is sent about the rest, and there is no opinion of it. */
  readonly conditions?: readonly CompiledExpression[]
}

const AUTHORIZED_TTL_MS = 5 * 60_000
const UNAUTHORIZED_TTL_MS = 30_000
/** Answers kept at most, as upstream. */
const MAX_ANSWERS = 8192
/** Longer questions are asked every time, so that nobody fills memory with them. */
const MAX_KEPT_CHARACTERS = 10_000

export function createWebhookAuthorizer(options: WebhookAuthorizerOptions): Authorizer {
  const { clock, send, version = 'v1' } = options
  const { authorizedTtlMs = AUTHORIZED_TTL_MS, unauthorizedTtlMs = UNAUTHORIZED_TTL_MS } = options
  const answers = new ExpiringCache<Verdict>(clock, MAX_ANSWERS)
  const meter = createWebhookMeter(options)
  const condition = createConditions(options)
  const ask = async (spec: object, key: string): Promise<Verdict> => {
    const done = meter()
    let verdict: Verdict
    try {
      verdict = verdictOf(
        await send({ apiVersion: `authorization.k8s.io/${version}`, kind: 'SubjectAccessReview', spec }),
      )
    } catch (error) {
      done('error')
      return {
        allowed: false,
        denied: options.failurePolicy === 'Deny',
        reason: '',
        error: error instanceof Error ? error.message : String(error),
      }
    }
    done('success')
    if (key.length <= MAX_KEPT_CHARACTERS)
      answers.set(key, verdict, verdict.allowed ? authorizedTtlMs : unauthorizedTtlMs)
    return verdict
  }
  return {
    authorize(user, access) {
      const skipped = condition(() => specOf(user, access, 'v1'))
      if (skipped !== undefined) return skipped
      const spec = specOf(user, access, version)
      const key = JSON.stringify(spec)
      return answers.get(key) ?? ask(spec, key)
    },
    rulesFor: () => ({
      ...NO_RULES,
      incomplete: true,
      error: 'webhook authorizer does not support user rule resolution',
    }),
  }
}

/** The verdict when the conditions keep the webhook from being asked. */
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

/** Begins one question; told how it went. */
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

/** Requirements that the review has no words for are left out: that asks for more than is wanted, never for less. */
function labelRequirements(text: string): object[] {
  const { requirements } = understood<Selector>(() => parseSelector(text)) ?? { requirements: [] }
  return requirements.flatMap(({ key, operator, values }) => {
    const known = LABEL_OPERATORS.get(operator)
    return known === undefined ? [] : [{ key, operator: known, ...(values.length === 0 ? {} : { values }) }]
  })
}

/** A selector that cannot be read narrows nothing. */
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
