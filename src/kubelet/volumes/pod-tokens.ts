/** Tokens of service accounts, bound to pods: shared by the volumes of a pod, and asked for anew before they end. */
import type { TokenRequest } from '#apis/authentication/v1.ts'
import { ServiceAccounts } from '#apis/core/v1.ts'
import { type ApiClient, pathOf } from '#client/api-client.ts'
import { goQuote } from '#lib/go-text.ts'
import type { Random } from '#lib/random.ts'
import { epochMsOf } from '#meta/time.ts'

import type { TokenAsk } from './volume-plugin.ts'

const MAX_LIFE_MS = 24 * 3_600_000
const MAX_JITTER_MS = 10_000
/** Of its life may be left when a token is renewed. */
const LEFT_SHARE = 0.2

interface Held {
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
  /** By pod, then by what was asked for. */
  readonly #held = new Map<string, Map<string, Held>>()

  constructor(options: PodTokensOptions) {
    this.#options = options
  }

  async get(ask: TokenAsk): Promise<string> {
    return (await this.status(ask)).token
  }

  /** Of one that has not ended, be it an old one when there is no new one to be had. */
  async status(ask: TokenAsk): Promise<Pick<Held, 'token' | 'expirationTimestamp'>> {
    const { uid = '' } = ask.pod.metadata
    const key = `${ask.audience}/${ask.expirationSeconds ?? ''}`
    const held = this.#held.get(uid)?.get(key)
    const nowMs = this.#options.client.clock.now()
    if (held !== undefined && !isDue(held, nowMs, this.#options.random.float() * MAX_JITTER_MS)) return held
    try {
      const fresh = await this.#request(ask)
      const ofPod = this.#held.get(uid) ?? new Map<string, Held>()
      this.#held.set(uid, ofPod.set(key, fresh))
      return fresh
    } catch (error) {
      const { message } = error as Error
      if (held === undefined) throw new Error(`failed to fetch token: ${message}`, { cause: error })
      if (nowMs > held.endsMs) {
        const which = `${goQuote(ask.pod.spec.serviceAccountName ?? '')}/${goQuote(ask.pod.metadata.namespace ?? '')}`
        throw new Error(`token ${which} expired and refresh failed: ${message}`, { cause: error })
      }
      this.#options.onError(error)
      return held
    }
  }

  forget(uid: string): void {
    this.#held.delete(uid)
  }

  async #request({ pod, audience, expirationSeconds }: TokenAsk): Promise<Held> {
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

function isDue({ issuedMs, endsMs }: Held, nowMs: number, jitterMs: number): boolean {
  return nowMs > issuedMs + MAX_LIFE_MS - jitterMs || nowMs > endsMs - (endsMs - issuedMs) * LEFT_SHARE - jitterMs
}
