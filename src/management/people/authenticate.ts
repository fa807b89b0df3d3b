/**
 * Authenticates requests by a token in `Authorization` (Bearer, or Basic with the token as password), in a WebSocket
 * subprotocol, or in the session cookie. It refuses requests with several credentials or with a wrong one.
 */
import { TOKEN_PROTOCOL } from '#auth/credentials/protocol-token.ts'
import { splitToken } from '#cluster-agent/api-auth/token-text.ts'
import { cookieProblem } from '#component/console/csrf.ts'
import type { Exchange } from '#lib/http/exchange.ts'
import { forbiddenError, unauthorizedError } from '#meta/status-errors.ts'

import type { Person } from '../person.ts'
import { sessionCookies } from './sessions.ts'
import type { Tokens } from './tokens.ts'

interface Credential {
  readonly token: string
  readonly type: 'api' | 'session'
}

/**
 * Undefined without credentials. Throws StatusError: 401 for credentials that are wrong or not alone, 403 if the cookie
 * is right but the request did not come from our pages. Asks no API.
 */
export function identify(tokens: Tokens, exchange: Exchange, address: string): Person | undefined {
  const found = credentialsOf(exchange)
  const [credential] = found
  if (credential === undefined) return undefined
  const { token, type } = credential
  const caller = found.length > 1 ? undefined : tokens.verify(token, type, address)
  if (caller === undefined) throw unauthorizedError('Unauthorized')
  const hasCookie = type === 'session'
  const problem = hasCookie ? cookieProblem(exchange, 'https') : undefined
  if (problem !== undefined) throw forbiddenError({ group: '', resource: '' }, '', problem)
  return { ...caller, hasCookie }
}

/** The names of the tokens that a request shows, right or wrong. */
export function tokenNamesOf(exchange: Exchange): readonly string[] {
  return credentialsOf(exchange).flatMap(({ token }) => splitToken(token)?.name ?? [])
}

function credentialsOf({ headers, rawHeaders }: Exchange): readonly Credential[] {
  const { authorization, cookie, 'sec-websocket-protocol': protocols } = headers
  const found: Credential[] = []
  if (authorization !== undefined) {
    // Node keeps the first of several headers.
    for (let count = countHeaders(rawHeaders, 'authorization'); count > 0; count--) {
      found.push({ token: authorizationToken(authorization), type: 'api' })
    }
  }
  if (protocols?.includes(TOKEN_PROTOCOL) === true) {
    for (const token of protocolTokens(protocols)) found.push({ token, type: 'api' })
  }
  if (cookie !== undefined) for (const token of sessionCookies(cookie)) found.push({ token, type: 'session' })
  return found
}

function countHeaders(rawHeaders: readonly string[], name: string): number {
  let count = 0
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const header = rawHeaders[at] ?? ''
    if (header.length === name.length && header.toLowerCase() === name) count++
  }
  return Math.max(count, 1)
}

/** Empty, which is no token, for other schemes. */
function authorizationToken(authorization: string): string {
  const [, scheme = '', value = ''] = /^\s*([A-Za-z]+) +(\S+)\s*$/.exec(authorization) ?? []
  const lower = scheme.toLowerCase()
  if (lower === 'bearer') return value
  if (lower !== 'basic') return ''
  const pair = Buffer.from(value, 'base64').toString()
  return pair.slice(pair.indexOf(':') + 1)
}

function protocolTokens(protocols: string): string[] {
  return protocols.split(',').flatMap((part) => {
    const protocol = part.trim()
    if (!protocol.startsWith(TOKEN_PROTOCOL)) return []
    return [Buffer.from(protocol.slice(TOKEN_PROTOCOL.length), 'base64url').toString()]
  })
}
