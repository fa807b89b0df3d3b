/**
 * Authenticates service account tokens that this server signed. Every use checks that the bound pod, node, secret and
 * account still exist. Upstream's pkg/serviceaccount, v1.36.
 */
import type { Secret, ServiceAccount } from '#apis/core/v1.ts'
import type { Clock } from '#lib/clock.ts'
import { ExpiringCache } from '#lib/collections/expiring-cache.ts'
import { JwtError } from '#lib/jwt/error.ts'
import type { VerifyingKey } from '#lib/jwt/key.ts'
import { readUnverified, verifyToken } from '#lib/jwt/token.ts'
import { tokenKey } from '#lib/token-key.ts'
import { epochMsOf } from '#meta/time.ts'
import { createServerMeters, type ServerMeters } from '#model/metrics/families.ts'

import { CredentialError, intersect, type TokenAuthenticator, type TokenIdentity } from '../authenticator.ts'
import { createUseNotes, type MarkUse, refuseInvalidated, remarksOn } from '../credentials/legacy-token.ts'
import { EXTRA, serviceAccountGroups, serviceAccountUser } from '../credentials/service-account-name.ts'
import { type Bond, LEGACY_ISSUER, type Subject, subjectOf } from '../credentials/token-subject.ts'
import type { LiveObject, LiveObjects } from '../live-objects.ts'
import type { User } from '../user.ts'

export interface ServiceAccountTokenOptions {
  readonly metrics?: ServerMeters | undefined
  readonly clock: Clock
  readonly objects: LiveObjects
  /** `--service-account-issuer`: the first issuer signs, all are accepted. */
  readonly issuers: readonly string[]
  /** Returns a new list when keys have changed, otherwise the same list. */
  readonly keys: () => readonly VerifyingKey[]
  readonly apiAudiences: readonly string[]
  /** `--service-account-lookup`: true if tokens of Secrets are looked up too. */
  readonly lookup?: boolean
  /** Labels a Secret with the day of its token's use. */
  readonly markUse?: MarkUse | undefined
}

/** A token with a valid signature. */
interface Verified {
  readonly subject: Subject
  readonly user: User
  readonly audiences: readonly string[]
  readonly expiresAtMs: number
  /** After this time the client should have read a newer token. */
  readonly warnAfterMs: number
  /** The bound objects at the last check. */
  readonly seen: (LiveObject | undefined)[]
  /** The deletion times of bound objects that still wait for removal. */
  readonly deletedAtMs: (number | undefined)[]
}

/** The maximum number of cached tokens: one for every pod of a large cluster. */
const MAX_TOKENS = 32_768
/** The lifetime of a verified signature. Everything else is checked on every use. */
const REMEMBERED_MS = 10 * 60_000
/** The allowed clock skew, also for objects that are being deleted. */
const LEEWAY_MS = 60_000

export function createServiceAccountAuthenticator(options: ServiceAccountTokenOptions): TokenAuthenticator {
  const { clock, keys, apiAudiences, markUse = () => Promise.resolve(), metrics = createServerMeters() } = options
  const use = createUseNotes(clock, markUse)
  let verified = new ExpiringCache<Verified>(clock, MAX_TOKENS)
  let current = keys()
  const count = createUseCounter(metrics)
  const invalidated = metrics.family('serviceaccount_invalid_legacy_auto_token_uses_total').labels()
  return (token, audiences) => {
    // A removed key must not stay valid in cached tokens.
    if (keys() !== current) {
      current = keys()
      verified = new ExpiringCache<Verified>(clock, MAX_TOKENS)
    }
    const key = tokenKey(token)
    let found = verified.get(key)
    if (found === undefined) {
      found = verify(options, token)
      if (found === undefined) return undefined
      verified.set(key, found, REMEMBERED_MS)
    }
    if (clock.now() > found.expiresAtMs) throw new CredentialError('service account token has expired')
    const good = goodAudiences(found.audiences, audiences, apiAudiences)
    const { user } = found
    const settle = (): TokenIdentity => {
      const kept = keptIn(found)
      if (kept !== undefined) refuseInvalidated(...kept, () => invalidated.inc())
      const known = noted(user, found, clock.now())
      count(known.notes)
      return { user: known, audiences: good }
    }
    const noteUse = (): TokenIdentity | Promise<TokenIdentity> => {
      const [secret] = keptIn(found) ?? []
      const noting = secret === undefined ? undefined : use(secret)
      return noting === undefined ? settle() : noting.then(settle)
    }
    return isUnchanged(options, found) ? noteUse() : examine(options, found).then(noteUse)
  }
}

/** Undefined for a token of another issuer or another format. */
function verify(
  { clock, issuers, keys, lookup = true }: ServiceAccountTokenOptions,
  token: string,
): Verified | undefined {
  const issuer = issuerOf(token)
  if (issuer === undefined || (issuer !== LEGACY_ISSUER && !issuers.includes(issuer))) return undefined
  try {
    const { claims, audiences } = verifyToken(token, { keys: keys(), clock, leewayMs: LEEWAY_MS })
    const subject = subjectOf(claims, token, lookup)
    const expiry = claims['exp']
    return {
      subject,
      user: userOf(subject),
      audiences,
      expiresAtMs: typeof expiry === 'number' ? expiry * 1000 + LEEWAY_MS : Infinity,
      warnAfterMs: warnAfterOf(claims['kubernetes.io']),
      seen: subject.bonds.map(() => undefined),
      deletedAtMs: subject.bonds.map(() => undefined),
    }
  } catch (cause) {
    if (cause instanceof JwtError) throw new CredentialError(refusalText(cause), { cause })
    throw cause
  }
}

function warnAfterOf(own: unknown): number {
  const { warnafter } = (own ?? {}) as { readonly warnafter?: unknown }
  return typeof warnafter === 'number' && warnafter !== 0 ? warnafter * 1000 : Infinity
}

const NOTE = 'authentication.k8s.io/'

/** The counters of token uses by kind. */
function createUseCounter(meters: ServerMeters): (notes: Readonly<Record<string, string>> | undefined) => void {
  const valid = meters.family('serviceaccount_valid_tokens_total').labels()
  const noteworthy = Object.entries({
    'legacy-token': meters.family('serviceaccount_legacy_tokens_total').labels(),
    'legacy-token-autogenerated-secret': meters.family('serviceaccount_legacy_auto_token_uses_total').labels(),
    'legacy-token-manual-secret': meters.family('serviceaccount_legacy_manual_token_uses_total').labels(),
    'stale-token': meters.family('serviceaccount_stale_tokens_total').labels(),
  })
  return (notes) => {
    if (notes === undefined) return valid.inc()
    for (const [name, uses] of noteworthy) if (Object.hasOwn(notes, NOTE + name)) uses.inc()
  }
}

/** Adds audit annotations for legacy tokens and for stale ones. */
function noted(user: User, verified: Verified, nowMs: number): User {
  const { audiences, warnAfterMs } = verified
  if (audiences.length > 0 && nowMs <= warnAfterMs) return user
  const notes: Record<string, string> = {}
  if (audiences.length === 0) notes[`${NOTE}legacy-token`] = user.name
  if (nowMs > warnAfterMs) {
    const late = Math.floor(nowMs / 1000) - warnAfterMs / 1000
    notes[`${NOTE}stale-token`] = `subject: ${user.name}, seconds after warning threshold: ${late}`
  }
  const kept = keptIn(verified)
  if (kept === undefined) return { ...user, notes }
  const remarks = remarksOn(...kept)
  return { ...user, ...remarks, notes: { ...notes, ...remarks.notes } }
}

/** The Secret of a legacy token and its account. Only a look-up knows them. */
function keptIn({ subject, seen }: Verified): [Secret, ServiceAccount] | undefined {
  if (!subject.isLegacy) return undefined
  const [secret, account] = seen
  if (secret === undefined || account === undefined) return undefined
  return [secret.object, account.object]
}

function issuerOf(token: string): string | undefined {
  try {
    const { iss } = readUnverified(token).claims
    return typeof iss === 'string' ? iss : undefined
  } catch {
    return undefined
  }
}

function refusalText({ code, message }: JwtError): string {
  if (code === 'expired') return 'service account token has expired'
  if (code === 'signature') return 'invalid signature, no keys found'
  if (code !== 'not-yet-valid') return message
  return message.includes('future')
    ? 'service account token is issued in the future'
    : 'service account token is not valid yet'
}

/** A token without audiences is valid for the API server only. */
function goodAudiences(stated: readonly string[], wanted: readonly string[], own: readonly string[]): string[] {
  const of = stated.length === 0 ? own : stated
  const target = wanted.length === 0 ? own : wanted
  const good = intersect(of, target)
  if (good.length > 0 || own.length === 0) return good
  throw new CredentialError(`token audiences ${quoted(of)} is invalid for the target audiences ${quoted(target)}`)
}

function quoted(texts: readonly string[]): string {
  return `[${texts.map((text) => JSON.stringify(text)).join(' ')}]`
}

function isUnchanged(
  { objects, clock }: ServiceAccountTokenOptions,
  { subject, seen, deletedAtMs }: Verified,
): boolean {
  const { bonds } = subject
  for (let at = 0; at < bonds.length; at++) {
    const { kind, namespace, name } = bonds[at] as Bond
    const before = seen[at]
    if (before === undefined || objects.peek(kind, namespace, name) !== before) return false
    const deletedAt = deletedAtMs[at]
    if (deletedAt !== undefined && clock.now() > deletedAt) return false
  }
  return true
}

/** Checks every bound object. Throws CredentialError for the first that is gone or replaced. */
async function examine(options: ServiceAccountTokenOptions, verified: Verified): Promise<void> {
  const { objects, clock } = options
  for (const [at, bond] of verified.subject.bonds.entries()) {
    const { kind, namespace, name } = bond
    const cached = objects.peek(kind, namespace, name)
    // The cache may not have a new object yet, so a refusal is based on the newest state.
    const live = cached?.object.metadata.uid === bond.uid ? cached : await objects.get(kind, namespace, name)
    const problem = live === undefined ? bond.whenMissing : findProblem(bond, live, clock.now())
    if (problem !== undefined) throw new CredentialError(problem)
    verified.seen[at] = live
    const { deletionTimestamp } = live?.object.metadata ?? {}
    verified.deletedAtMs[at] = deletionTimestamp === undefined ? undefined : epochMsOf(deletionTimestamp) + LEEWAY_MS
  }
}

function findProblem(bond: Bond, { object }: LiveObject, nowMs: number): string | undefined {
  const { uid = '', deletionTimestamp } = object.metadata
  if (bond.uid !== undefined && uid !== bond.uid) return bond.whenOther(uid)
  const graceMs = bond.diesAtOnce === true ? -Infinity : LEEWAY_MS
  if (deletionTimestamp !== undefined && nowMs > epochMsOf(deletionTimestamp) + graceMs) return bond.whenDeleted
  return bond.check?.(object)
}

function userOf({ namespace, name, uid, pod, node, tokenId }: Subject): User {
  return {
    name: serviceAccountUser({ namespace, name }),
    uid,
    groups: [...serviceAccountGroups(namespace), 'system:authenticated'],
    extra: {
      ...(tokenId === '' ? {} : { [EXTRA.credentialId]: [`JTI=${tokenId}`] }),
      ...(node === undefined ? {} : { [EXTRA.nodeName]: [node.name] }),
      ...(node === undefined || node.uid === '' ? {} : { [EXTRA.nodeUid]: [node.uid] }),
      ...(pod === undefined ? {} : { [EXTRA.podName]: [pod.name], [EXTRA.podUid]: [pod.uid] }),
    },
  }
}
