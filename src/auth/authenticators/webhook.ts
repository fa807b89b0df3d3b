/** Authenticates tokens by webhook: sends a TokenReview for each new token and caches every answer. */
import type { Clock } from '#lib/clock.ts'
import { ExpiringCache } from '#lib/collections/expiring-cache.ts'
import { tokenKey } from '#lib/token-key.ts'

import { CredentialError, intersect, type TokenAuthenticator, type TokenIdentity } from '../authenticator.ts'
import type { SendReview } from '../credentials/review-webhook.ts'
import type { User } from '../user.ts'

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
  return async (token, audiences) => {
    const key = JSON.stringify([tokenKey(token), audiences])
    const outcome = await answers.getOrFetch(
      key,
      () => review(options, token, audiences),
      () => ttlMs,
    )
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
