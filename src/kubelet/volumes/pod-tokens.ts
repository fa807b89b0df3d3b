/**
 * Requests service account tokens bound to pods. The volumes of a pod share them, and they are renewed before they
 * expire.
 */
import type { TokenRequest } from '#apis/authentication/v1.ts'
import { type Pod, ServiceAccounts } from '#apis/core/v1.ts'
import { type ApiClient, pathOf } from '#client/api-client.ts'
import { goQuote } from '#lib/go/text.ts'
import type { Random } from '#lib/random.ts'
import { epochMsOf } from '#meta/time.ts'

export interface TokenOptions {
  readonly pod: Pod
  readonly audience: string
  readonly expirationSeconds: number | undefined
}

const MAX_LIFE_MS = 24 * 3_600_000
const MAX_JITTER_MS = 10_000
/** Remaining fraction of the lifetime at which a token is renewed. */
const LEFT_SHARE = 0.2

interface CachedToken {
  readonly token: string
  readonly expirationTimestamp: string
  readonly issuedMs: number
  readonly endsMs: number
}

export interface PodTokensOptions {
  readonly client: ApiClient
  readonly random: Random
  readonly onError: (error: unknown) => void
}

export class PodTokens {
  readonly #options: PodTokensOptions
  /** By pod, then by audience and lifetime. */
  readonly #cached = new Map<string, Map<string, CachedToken>>()

  constructor(options: PodTokensOptions) {
    this.#options = options
  }

  async get(request: TokenOptions): Promise<string> {
    return (await this.status(request)).token
  }

  /** Returns a valid token, an older one if the renewal fails. */
  async status(request: TokenOptions): Promise<Pick<CachedToken, 'token' | 'expirationTimestamp'>> {
    const { uid = '' } = request.pod.metadata
    const key = `${request.audience}/${request.expirationSeconds ?? ''}`
    const cached = this.#cached.get(uid)?.get(key)
    const nowMs = this.#options.client.clock.now()
    if (cached !== undefined && !isDue(cached, nowMs, this.#options.random.float() * MAX_JITTER_MS)) return cached
    try {
      const fresh = await this.#request(request)
      const ofPod = this.#cached.get(uid) ?? new Map<string, CachedToken>()
      this.#cached.set(uid, ofPod.set(key, fresh))
      return fresh
    } catch (error) {
      const { message } = error as Error
      if (cached === undefined) throw new Error(`failed to fetch token: ${message}`, { cause: error })
      if (nowMs > cached.endsMs) {
        const which = `${goQuote(request.pod.spec.serviceAccountName ?? '')}/${goQuote(request.pod.metadata.namespace ?? '')}`
        throw new Error(`token ${which} expired and refresh failed: ${message}`, { cause: error })
      }
      this.#options.onError(error)
      return cached
    }
  }

  forget(uid: string): void {
    this.#cached.delete(uid)
  }

  async #request({ pod, audience, expirationSeconds }: TokenOptions): Promise<CachedToken> {
    const { client } = this.#options
    const { namespace = '', name = '', uid = '' } = pod.metadata
    const body = {
      kind: 'TokenRequest',
      apiVersion: 'authentication.k8s.io/v1',
      metadata: {},
      spec: {
        audiences: audience === '' ? null : [audience],
        expirationSeconds,
        boundObjectRef: { kind: 'Pod', apiVersion: 'v1', name, uid },
      },
    }
    const account = { namespace, name: pod.spec.serviceAccountName ?? '' }
    const path = pathOf(ServiceAccounts, { ...account, subresource: 'token' })
    const about = { resource: { group: '', resource: 'serviceaccounts' }, name: account.name }
    const answer = await client.ask({ method: 'POST', path, body, about })
    const { spec, status } = JSON.parse(await answer.text(MAX_BYTES)) as TokenRequest
    const endsMs = epochMsOf(status.expirationTimestamp ?? '')
    const { token } = status
    return {
      token,
      expirationTimestamp: status.expirationTimestamp ?? '',
      endsMs,
      issuedMs: endsMs - (spec.expirationSeconds ?? 0) * 1000,
    }
  }
}

const MAX_BYTES = 1 << 20

function isDue({ issuedMs, endsMs }: CachedToken, nowMs: number, jitterMs: number): boolean {
  return nowMs > issuedMs + MAX_LIFE_MS - jitterMs || nowMs > endsMs - (endsMs - issuedMs) * LEFT_SHARE - jitterMs
}
