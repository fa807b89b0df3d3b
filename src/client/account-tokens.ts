/**
 * Requests ServiceAccount tokens for controllers through the TokenRequest API. It creates a missing account, and renews
 * a token after four fifths of its lifetime.
 */
import type { TokenRequest } from '#apis/authentication/v1.ts'
import { Namespaces, ServiceAccounts } from '#apis/core/v1.ts'
import { sleep } from '#lib/clock.ts'
import { isAlreadyExists, isNotFound } from '#meta/status.ts'
import { epochMsOf } from '#meta/time.ts'

import { type ApiClient, pathOf } from './api-client.ts'

const LIFE_SECONDS = 3600
const MIN_LIFE_MS = 600_000
const USED_SHARE = 0.8
/** Pauses between retries, as upstream. */
const RETRY_MS: readonly number[] = [500, 1000, 2000]

/**
 * Returns a function that resolves to the current token of an account in the namespace, for
 * `ApiClientOptions.bearerToken`.
 */
export function createAccountTokens(client: ApiClient, namespace: string): (account: string) => () => Promise<string> {
  return (name) => {
    let token: { readonly text: string; readonly renewAtMs: number } | undefined
    let asking: Promise<string> | undefined
    const ask = async (): Promise<string> => {
      const { status } = await withRetries(client, { namespace, name })
      const lifeMs = Math.max(MIN_LIFE_MS, epochMsOf(status.expirationTimestamp ?? '') - client.clock.now())
      token = { text: status.token, renewAtMs: client.clock.now() + lifeMs * USED_SHARE }
      return status.token
    }
    return () => {
      if (token !== undefined && client.clock.now() < token.renewAtMs) return Promise.resolve(token.text)
      asking ??= ask().finally(() => (asking = undefined))
      return asking
    }
  }
}

interface Account {
  readonly namespace: string
  readonly name: string
}

async function withRetries(client: ApiClient, account: Account): Promise<TokenRequest> {
  for (const pauseMs of RETRY_MS) {
    try {
      return await request(client, account)
    } catch {
      await sleep(client.clock, pauseMs)
    }
  }
  return request(client, account).catch((cause: Error) => {
    const text = `failed to get token for ${account.namespace}/${account.name}: ${cause.message}`
    throw new Error(text, { cause })
  })
}

async function request(client: ApiClient, account: Account): Promise<TokenRequest> {
  await ensure(client, account)
  const body = {
    kind: 'TokenRequest',
    apiVersion: 'authentication.k8s.io/v1',
    spec: { expirationSeconds: LIFE_SECONDS },
  }
  const path = pathOf(ServiceAccounts, { ...account, subresource: 'token' })
  const answer = await client.ask({ method: 'POST', path, body })
  return JSON.parse(await answer.text(MAX_BYTES)) as TokenRequest
}

const MAX_BYTES = 1 << 20

async function ensure(client: ApiClient, account: Account): Promise<void> {
  try {
    await client.get(ServiceAccounts, account)
    return
  } catch (error) {
    if (!isNotFound(error)) throw error
  }
  // An error here shows in the next request.
  await client.create(Namespaces, { metadata: { name: account.namespace } }).catch(() => undefined)
  await client.create(ServiceAccounts, { metadata: { ...account } }).catch((error: unknown) => {
    if (!isAlreadyExists(error)) throw error
  })
}
