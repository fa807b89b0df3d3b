/** Fetches the signing keys of an OpenID provider on demand, with a rate limit. */
import type { Clock } from '#lib/clock.ts'
import type { HttpClient } from '#lib/http/client.ts'
import { parseKeySet, type VerifyingKey } from '#lib/jwt/key.ts'

/** The JSON document at an address. Rejects if there is none. */
export type FetchJson = (url: string) => Promise<unknown>

export interface ProviderKeysOptions {
  readonly clock: Clock
  readonly fetchJson: FetchJson
  readonly issuerUrl: string
  /** The address of the discovery document; OpenID's standard path by default. */
  readonly discoveryUrl?: string
}

export interface ProviderKeys {
  /** All keys, fetched again if `kid` is not among them. Rejects if the provider cannot be reached. */
  for(kid: string | undefined): Promise<readonly VerifyingKey[]>
}

/** Limits fetches, because tokens with invented key IDs must not make the server flood the provider. */
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
      // Earlier keys stay in use while the provider is unreachable.
      if (keys.length === 0) throw failure ?? new Error('The provider has no keys')
      return keys
    },
  }
}

/** The address of the key set. A document of another issuer is rejected. */
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

/** Fetches documents by HTTP. The client has the authorities. */
export function createJsonFetcher(client: HttpClient): FetchJson {
  return async (url) => {
    const response = await client.request({ url, headers: { accept: 'application/json' }, timeoutMs: FETCH_TIMEOUT_MS })
    const text = await response.text(MAX_DOCUMENT_BYTES)
    if (response.status !== 200) throw new Error(`"${url}" answered ${response.status}`)
    return JSON.parse(text) as unknown
  }
}
