/**
 * Reads the parts of an agent's HTTP request: its parameters in a header, its registration token and its credential.
 */
import { createHash, timingSafeEqual } from 'node:crypto'

import { badRequestError, unauthorizedError } from '#meta/status-errors.ts'

import type { RouteCall } from '../port/route.ts'

/** The description that the agent sends. Throws StatusError. */
export function parametersIn({ exchange }: Pick<RouteCall, 'exchange'>): Readonly<Record<string, unknown>> {
  const text = Buffer.from(exchange.headers['x-api-tunnel-params']?.toString() ?? '', 'base64').toString()
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    throw badRequestError('the header X-API-Tunnel-Params is not JSON in base64')
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw badRequestError('the header X-API-Tunnel-Params has no object')
  return value as Readonly<Record<string, unknown>>
}

/** Throws StatusError without a token. */
export function tokenOf({ exchange }: Pick<RouteCall, 'exchange'>): string {
  const token = exchange.headers['x-api-tunnel-token']
  if (typeof token !== 'string' || token === '') throw unauthorizedError('Unauthorized')
  return token
}

const MIN_CREDENTIAL = 32
const MAX_CREDENTIAL = 256

/** The credential that the agent of a machine has made. Throws StatusError. */
export function credentialOf({ exchange }: Pick<RouteCall, 'exchange'>): string {
  const credential = exchange.headers['x-api-tunnel-credential']
  if (typeof credential !== 'string' || credential === '') throw unauthorizedError('Unauthorized')
  checkCredential(credential)
  return credential
}

/** Throws StatusError for a text that can be guessed. */
export function checkCredential(credential: string): void {
  if (credential.length < MIN_CREDENTIAL) throw badRequestError('the credential of the agent is too short')
  if (credential.length > MAX_CREDENTIAL) throw badRequestError('the credential of the agent is too long')
}

export function hashOf(text: string): string {
  return createHash('sha256').update(text).digest('hex')
}

export function isSame(one: string, other: string): boolean {
  return one.length === other.length && timingSafeEqual(Buffer.from(one), Buffer.from(other))
}
