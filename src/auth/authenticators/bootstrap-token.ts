/**
 * Authenticates bootstrap tokens, with which nodes join: `<id>.<secret>`, each a Secret in kube-system. Every invalid
 * token gets the same error as an unknown one.
 */
import { timingSafeEqual } from 'node:crypto'

import { type Secret, Secrets } from '#apis/core/v1.ts'
import type { Clock } from '#lib/clock.ts'
import { compareText } from '#lib/go/text.ts'
import { epochMsOf } from '#meta/time.ts'

import { forAudiences, type TokenAuthenticator } from '../authenticator.ts'
import type { LiveObjects } from '../live-objects.ts'
import type { User } from '../user.ts'

export interface BootstrapTokenOptions {
  readonly clock: Clock
  readonly objects: LiveObjects
  readonly apiAudiences: readonly string[]
}

const NAMESPACE = 'kube-system'
const TYPE = 'bootstrap.kubernetes.io/token'
const GROUP = 'system:bootstrappers'
const EXTRA_GROUP = /^system:bootstrappers:[a-z0-9:-]{0,255}[a-z0-9]$/

export function createBootstrapTokenAuthenticator(options: BootstrapTokenOptions): TokenAuthenticator {
  const { clock, objects, apiAudiences } = options
  return (token, audiences) => {
    const [, id, secret] = /^([a-z0-9]{6})\.([a-z0-9]{16})$/.exec(token) ?? []
    if (id === undefined || secret === undefined) return undefined
    const live = objects.peek(Secrets, NAMESPACE, `bootstrap-token-${id}`)
    const user = live === undefined ? undefined : userOf(live.object, [id, secret], clock.now())
    return user === undefined ? undefined : forAudiences(user, audiences, apiAudiences)
  }
}

function userOf(secret: Secret, [id, key]: readonly [string, string], nowMs: number): User | undefined {
  if (secret.metadata.deletionTimestamp !== undefined || secret.type !== TYPE) return undefined
  const value = (name: string): string => Buffer.from(secret.data?.[name] ?? '', 'base64').toString()
  const isUsable =
    isSame(value('token-secret'), key) &&
    value('token-id') === id &&
    !hasExpired(value('expiration'), nowMs) &&
    value('usage-bootstrap-authentication') === 'true'
  const groups = isUsable ? groupsOf(value('auth-extra-groups')) : undefined
  return groups === undefined ? undefined : { name: `system:bootstrap:${id}`, uid: '', groups, extra: {} }
}

function isSame(a: string, b: string): boolean {
  const [left, right] = [Buffer.from(a), Buffer.from(b)]
  return left.length === right.length && timingSafeEqual(left, right)
}

/** An unreadable time counts as past. */
function hasExpired(expiration: string, nowMs: number): boolean {
  if (expiration === '') return false
  try {
    return epochMsOf(expiration) <= nowMs
  } catch {
    return true
  }
}

/** One group without the required prefix invalidates the token. */
function groupsOf(extra: string): string[] | undefined {
  const names = extra === '' ? [] : extra.split(',')
  if (!names.every((name) => EXTRA_GROUP.test(name))) return undefined
  return [...new Set([GROUP, ...names])].sort(compareText)
}
