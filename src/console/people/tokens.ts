/** The API tokens and sessions of the user, and the requests that change them and the user's password. */
import { RequestError, send, sendForJson } from '../api/request.ts'

export interface OwnToken {
  readonly name: string
  readonly type: 'session' | 'api'
  readonly description?: string
  /** The token works for this cluster only. */
  readonly cluster?: string
  readonly readOnly: boolean
  readonly createdAt?: string
  readonly expiresAt: string
  readonly lastUsedAt?: string
  readonly lastAddress?: string
  /** This page uses it. */
  readonly isCurrent: boolean
}

/** The newest first. */
export async function loadTokens(type: OwnToken['type'], signal?: AbortSignal): Promise<readonly OwnToken[]> {
  const { items } = await sendForJson<{ items: readonly OwnToken[] }>('/v3/tokens', { signal })
  return items
    .filter((one) => one.type === type)
    .toSorted((a, b) => ((a.createdAt ?? '') > (b.createdAt ?? '') ? -1 : 1))
}

export interface TokenPlan {
  readonly description?: string
  readonly cluster?: string
  readonly readOnly?: boolean
  readonly ttlSeconds?: number
}

/** The longest life that the server permits. */
export const MAX_DAYS = 90
const DAY_SECONDS = 24 * 3600

/** Days as seconds. Throws RequestError for anything but a number of days. */
export function lifetimeOf(text: string): number {
  const days = /^\d{1,3}$/.test(text.trim()) ? Number(text) : 0
  if (days >= 1 && days <= MAX_DAYS) return days * DAY_SECONDS
  throw new RequestError({ code: 400, message: `Write a number of days from 1 to ${MAX_DAYS}` })
}

/** Returns the text of the token, which the server shows only once. */
export async function createToken(plan: TokenPlan): Promise<string> {
  const { token } = await sendForJson<{ token: string }>('/v3/tokens', { method: 'POST', body: plan })
  return token
}

export async function deleteToken(name: string): Promise<void> {
  await send(`/v3/tokens/${encodeURIComponent(name)}`, { method: 'DELETE' })
}

/** All other sessions of the user end. */
export async function changePassword(current: string, password: string): Promise<void> {
  await send('/v3/me/password', { method: 'POST', body: { current, password } })
}

/** With `everywhere`, all sessions of the user end. API tokens stay. */
export async function logOut(everywhere: boolean): Promise<void> {
  await send('/v3/logout', { method: 'POST', body: everywhere ? { everywhere } : {} })
}
