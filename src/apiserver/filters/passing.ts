/**
 * What every request passes before anything looks at it: who asks, is there room, may they. Each step tells the meter
 * how it went, and costs no turn of the event loop when its answer is there at once.
 */
import type { Exchange } from '#lib/http/exchange.ts'
import { unauthorizedError } from '#meta/status-errors.ts'

import type { AuditTrail } from '../audit/trail.ts'
import { forbiddenAccess } from '../authorizers/authorizer.ts'
import type { Entering, Fairness, Place, Refusal } from '../fairness/fairness.ts'
import type { RequestMeter } from '../metrics/requests.ts'
import type { User } from '../registry/resource.ts'
import type { RequestInfo } from '../request-info.ts'
import { anonymous, type Authenticate, authenticated, type Authorize, type Decision } from './access.ts'
import type { Inflight } from './inflight.ts'

export interface PassingOptions {
  readonly authenticate: Authenticate
  readonly authorize: Authorize
  /** `--anonymous-auth`; false: who shows no credentials is turned away. */
  readonly allowsAnonymous?: boolean
  /** Where they are allowed; absent: everywhere. */
  readonly anonymousPaths?: readonly string[]
  /** Who is next. */
  readonly fairness?: Pick<Fairness, 'enter'>
  /** How many run at once, without it. */
  readonly inflight?: Inflight
}

/** A request on its way through. */
export interface Passing {
  readonly user: User
  readonly info: RequestInfo
  readonly audit: AuditTrail | undefined
  readonly meter: RequestMeter
  /** Of the answer. */
  readonly headers: string[]
}

/** Throws, or rejects with, StatusError 401. */
export function identify(
  options: PassingOptions,
  exchange: Exchange,
  { path, meter }: { readonly path: string; readonly meter: RequestMeter },
): User | Promise<User> {
  const { authenticate, allowsAnonymous = true, anonymousPaths } = options
  const settle = (user: User | undefined): User => {
    if (user === undefined && (!allowsAnonymous || anonymousPaths?.includes(path) === false)) {
      meter.identified('failure', '')
      throw unauthorizedError('Unauthorized')
    }
    const known = user === undefined ? anonymous : authenticated(user)
    meter.identified('success', known.name)
    return known
  }
  const refused = (error: unknown): never => {
    meter.identified('error', '')
    throw error
  }
  let found
  try {
    found = authenticate(exchange)
  } catch (error) {
    return refused(error)
  }
  return found instanceof Promise ? found.then(settle, refused) : settle(found)
}

export async function received(audit: AuditTrail, user: User, meter: RequestMeter): Promise<AuditTrail | undefined> {
  const trail = await audit.received(user)
  meter.passed('audit')
  return trail
}

/** A place among the running requests; a promise of one only when there is none now and there may be. */
export function takePlace(
  { inflight, fairness }: PassingOptions,
  { user, info, meter, headers }: Passing,
  asking: Pick<Entering, 'query' | 'waitMs' | 'signal'>,
): Place | Refusal | Promise<Place | Refusal> {
  const settle = (place: Place | Refusal): Place | Refusal => {
    if ('retryAfterSeconds' in place) meter.terminated(429)
    else meter.passed('priorityandfairness')
    return place
  }
  if (fairness !== undefined) {
    const place = fairness.enter({ user, info, headers, ...asking }) ?? NOWHERE
    return place instanceof Promise ? place.then(settle) : settle(place)
  }
  const leave = inflight === undefined ? nothing : inflight.enter(user, info)
  return settle(leave === undefined ? { retryAfterSeconds: 1 } : { leave })
}

function nothing(): void {}

const NOWHERE: Place = { leave: nothing }

/** Throws, or rejects with, StatusError 403. */
export function permit({ authorize }: PassingOptions, { user, info, audit, meter }: Passing): void | Promise<void> {
  const settle = ({ allowed, denied, reason }: Decision): void => {
    meter.judged(allowed ? 'allowed' : denied === true ? 'denied' : 'no-opinion')
    if (!allowed) throw forbiddenAccess(user, info, reason)
  }
  const failed = (error: unknown): never => {
    meter.judged('error')
    throw error
  }
  let decision
  try {
    decision = audit === undefined ? authorize(user, info) : audit.authorizing(authorize, user, info)
  } catch (error) {
    return failed(error)
  }
  return decision instanceof Promise ? decision.then(settle, failed) : settle(decision)
}
