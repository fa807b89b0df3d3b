/** The keys of an OpenID provider: found by discovery, fetched when needed, at most so often. */
import type { Clock } from '#lib/clock.ts'
import type { HttpClient } from '#lib/http/client.ts'
import { parseKeySet, type VerifyingKey } from '#lib/jwt/key.ts'

/** The JSON document at an address. Rejects when there is none. */
export type FetchJson = (url: string) => Promise<unknown>

export interface ProviderKeysOptions {
  readonly clock: Clock
  readonly fetchJson: FetchJson
  readonly issuerUrl: string
  /** Where its discovery document is; default: where OpenID says. */
  readonly discoveryUrl?: string
}

export interface ProviderKeys {
  /** All keys, fetched anew when `kid` is not among them. Rejects when the provider cannot be reached. */
  for(kid: string | undefined): Promise<readonly VerifyingKey[]>
}

/** Tokens with made-up key identifiers must not make us flood the provider. */
const REFRESH_MS = 10_000

export function createProviderKeys(options: ProviderKeysOptions): ProviderKeys {
  const { clock, fetchJson } = options
  let keys: readonly VerifyingKey[] = []
  let triedAtMs = -Infinity
  let failure: Error | undefined
  let fetching: Promise<void> | undefined
  const refresh = async (): Promise<void> => {
    try {
      keys = parseKeySet(await fetchJson(await discover(options)))
      failure = undefined
    } catch (error) {
      failure = error instanceof Error ? error : new Error(String(error))
    }
  }
  return {
    async for(kid) {
      const isKnown = keys.some((key) => key.kid === kid)
      if (!isKnown && clock.elapsed() - triedAtMs >= REFRESH_MS) {
        triedAtMs = clock.elapsed()
        fetching = refresh()
      }
      if (!isKnown) await fetching
      // Keys from before serve on while the provider is away.
      if (keys.length === 0) throw failure ?? new Error('The provider has no keys')
      return keys
    },
  }
}

/** The address of the key set. A document of another issuer is not believed. */
async function discover({ fetchJson, issuerUrl, discoveryUrl }: ProviderKeysOptions): Promise<string> {
  const usual = `${issuerUrl.replace(/\/$/, '')}/.well-known/openid-configuration`
  const found = await fetchJson(discoveryUrl ?? usual)
  const { issuer, jwks_uri: address } = (found ?? {}) as { readonly issuer?: unknown; readonly jwks_uri?: unknown }
  if (issuer !== issuerUrl) throw new Error(`The provider calls itself ${JSON.stringify(issuer)}, not "${issuerUrl}"`)
  if (typeof address !== 'string' || !address.startsWith('https://')) {
    throw new Error('The provider names no https address for its keys')
  }
  return address
}

const MAX_DOCUMENT_BYTES = 1 << 20
const FETCH_TIMEOUT_MS = 30_000

/** Documents by HTTP. The client brings the authorities. */
export function createJsonFetcher(client: HttpClient): FetchJson {
  return async (url) => {
    const response = await client.request({ url, headers: { accept: 'application/json' }, timeoutMs: FETCH_TIMEOUT_MS })
    const text = await response.text(MAX_DOCUMENT_BYTES)
    if (response.status !== 200) throw new Error(`"${url}" answered ${response.status}`)
    return JSON.parse(text) as unknown
  }
}
