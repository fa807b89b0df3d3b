/**
 * Verifies a token of the management server against the tokens and users that the cluster stores, without network
 * access.
 */
import { isUserOfServer, foreignGroup } from '../caller.ts'
import { sha256Of } from './kinds.ts'
import { hashOfSecret, isSameHash, NO_HASH, splitToken } from './token-text.ts'

export interface TokenRecord {
  readonly userName: string
  readonly enabled: boolean
  /** RFC 3339. */
  readonly expiresAt: string
  /** With its algorithm: `sha256:<hex>`. */
  readonly hash: string
}

export interface UserRecord {
  readonly enabled: boolean
  readonly groups: readonly string[]
}

export interface AuthRecords {
  token(name: string): TokenRecord | undefined
  user(name: string): UserRecord | undefined
}

export interface AuthenticatedUser {
  readonly username: string
  readonly groups: readonly string[]
}

export type Verdict = AuthenticatedUser | { readonly refused: string }

/** The reason is for the log only: clients must not learn which part of a token is wrong. */
export function verifyToken(records: AuthRecords, text: string, nowMs: number): Verdict {
  const parts = splitToken(text)
  if (parts === undefined) return { refused: 'the text is no token of the management server' }
  const token = records.token(parts.name)
  const stored = token === undefined ? NO_HASH : sha256Of(token.hash)
  if (stored === undefined) return { refused: 'the hash of the token is of an unknown algorithm' }
  const isRight = isSameHash(hashOfSecret(parts.secret), stored)
  if (token === undefined) return { refused: 'the token is unknown' }
  if (!isRight) return { refused: 'the secret is wrong' }
  return refusalOfToken(token, nowMs) ?? userOf(token, records)
}

function refusalOfToken({ enabled, expiresAt }: TokenRecord, nowMs: number): Verdict | undefined {
  if (!enabled) return { refused: 'the token is disabled' }
  // NaN, the end of an unreadable time, is not later.
  return Date.parse(expiresAt) > nowMs ? undefined : { refused: 'the token has expired' }
}

/** Objects of a cluster can be changed by others, so the names are checked as the agent checks them. */
function userOf({ userName }: TokenRecord, records: AuthRecords): Verdict {
  const user = records.user(userName)
  if (user === undefined) return { refused: 'the user has no role in the cluster' }
  if (!user.enabled) return { refused: 'the user is disabled' }
  if (!isUserOfServer(userName) || foreignGroup(user.groups) !== undefined)
    return { refused: 'the user or a group is not one of the management server' }
  return { username: userName, groups: user.groups }
}

/** All records, for a file. */
export interface RecordLists {
  readonly tokens: ReadonlyMap<string, TokenRecord>
  readonly users: ReadonlyMap<string, UserRecord>
}

const FORMAT = 1

export function writeRecords({ tokens, users }: RecordLists): string {
  const sorted = <T>(records: ReadonlyMap<string, T>): object =>
    Object.fromEntries([...records].toSorted(([a], [b]) => (a < b ? -1 : 1)))
  return `${JSON.stringify({ format: FORMAT, tokens: sorted(tokens), users: sorted(users) })}\n`
}

/** Throws Error if the text was not made by `writeRecords`. */
export function readRecords(text: string): AuthRecords {
  const { format, tokens, users } = JSON.parse(text) as Record<string, unknown>
  if (format !== FORMAT) throw new Error('the format of the file is unknown')
  const [tokensByName, usersByName] = [mapOf<TokenRecord>(tokens, isToken), mapOf<UserRecord>(users, isUser)]
  return { token: (name) => tokensByName.get(name), user: (name) => usersByName.get(name) }
}

function mapOf<T>(value: unknown, isRecord: (value: Fields) => boolean): ReadonlyMap<string, T> {
  if (!isObject(value)) throw new Error('the file has no records')
  const entries = Object.entries(value)
  if (!entries.every(([, record]) => isObject(record) && isRecord(record))) throw new Error('a record is malformed')
  return new Map(entries as [string, T][])
}

type Fields = Readonly<Record<string, unknown>>

function isObject(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function isToken({ userName, enabled, expiresAt, hash }: Fields): boolean {
  const texts = [userName, expiresAt, hash]
  return typeof enabled === 'boolean' && texts.every((text) => typeof text === 'string')
}

function isUser({ enabled, groups }: Fields): boolean {
  return typeof enabled === 'boolean' && Array.isArray(groups) && groups.every((group) => typeof group === 'string')
}
