/** Webhook tokens: somebody else knows whose they are, asked by a TokenReview. Answers are kept, a no as long as a yes. */
import type { Clock } from '#lib/clock.ts'

import { ExpiringCache } from '../credentials/expiring-cache.ts'
import type { SendReview } from '../credentials/review-webhook.ts'
import type { User } from '../registry/resource.ts'
import { CredentialError, intersect, type TokenAuthenticator, type TokenIdentity, tokenKey } from './authenticator.ts'

export interface WebhookTokenOptions {
  readonly clock: Clock
  readonly send: SendReview
  readonly version?: 'v1' | 'v1beta1'
  readonly apiAudiences: readonly string[]
  /** `--authentication-token-webhook-cache-ttl`. */
  readonly ttlMs?: number
}

const TTL_MS = 2 * 60_000
const MAX_ANSWERS = 16_384

type Outcome = TokenIdentity | 'unknown'

export function createWebhookTokenAuthenticator(options: WebhookTokenOptions): TokenAuthenticator {
  const { clock, ttlMs = TTL_MS } = options
  const answers = new ExpiringCache<Outcome>(clock, MAX_ANSWERS)
  /** Questions on their way, so that a hundred requests with one new token ask once. */
  const asked = new Map<string, Promise<Outcome>>()
  const ask = async (key: string, token: string, audiences: readonly string[]): Promise<Outcome> => {
    const outcome = await review(options, token, audiences)
    answers.set(key, outcome, ttlMs)
    return outcome
  }
  return async (token, audiences) => {
    const key = JSON.stringify([tokenKey(token), audiences])
    let outcome = answers.get(key)
    if (outcome === undefined) {
      const pending = asked.get(key) ?? ask(key, token, audiences).finally(() => asked.delete(key))
      asked.set(key, pending)
      outcome = await pending
    }
    return outcome === 'unknown' ? undefined : outcome
  }
}

async function review(
  { send, version = 'v1', apiAudiences }: WebhookTokenOptions,
  token: string,
  audiences: readonly string[],
): Promise<Outcome> {
  const spec = { token, ...(audiences.length === 0 ? {} : { audiences }) }
  const status = await send({ apiVersion: `authentication.k8s.io/${version}`, kind: 'TokenReview', spec })
  const given = strings(status['audiences'])
  const good = intersect(audiences, given.length === 0 ? apiAudiences : given)
  if (audiences.length > 0 && good.length === 0) return 'unknown'
  if (status['authenticated'] === true) return { user: userOf(status['user']), audiences: good }
  const { error } = status
  if (typeof error === 'string' && error !== '') throw new CredentialError(error)
  return 'unknown'
}

function userOf(found: unknown): User {
  const { username, uid, groups, extra } = isRecord(found) ? found : {}
  return {
    name: text(username),
    uid: text(uid),
    groups: strings(groups),
    extra: Object.fromEntries(Object.entries(isRecord(extra) ? extra : {}).map(([key, list]) => [key, strings(list)])),
  }
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function text(value: unknown): string {
  return typeof value === 'string' ? value : ''
}

function strings(value: unknown): string[] {
  return Array.isArray(value) ? value.filter((one) => typeof one === 'string') : []
}
