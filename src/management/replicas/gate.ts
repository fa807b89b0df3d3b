/**
 * Decides for each request whether this replica serves it, forwards it to the leader, or responds with 503 because it
 * cannot reach the datastore.
 */
import { forward } from '#component/forwarding/forward.ts'
import type { Clock } from '#lib/clock.ts'
import { failure } from '#meta/status-errors.ts'
import type { StatusError } from '#meta/status.ts'

import type { InterceptedRequest } from '../port/port.ts'
import { needsLeader } from './leader-routes.ts'
import type { Leadership } from './leadership.ts'
import { AUDIT_ID, CLIENT_ADDRESS } from './peer-protocol.ts'
import type { Peers } from './peers.ts'
import type { Replicas } from './replicas.ts'

type Gate = (request: InterceptedRequest) => Promise<boolean>

export interface GateOptions {
  readonly clock: Clock
  readonly isCurrent: () => boolean
  readonly leadership: Leadership
  readonly peers: Pick<Peers, 'port'>
}

/** The host is only a name: the stream leads to the leader. */
const URL = 'http://leader'
const RETRY_SECONDS = 2

/** Served in any case: health pages, the page of the console, and what never changes. */
const ALWAYS: ReadonlySet<string> = new Set(['/livez', '/healthz', '/readyz', '/ping', '/metrics', '/', '/ui/*'])

/** Resolves to true if the leader has answered the request. Throws StatusError 503 if no replica can serve it. */
export function createGate({ clock, isCurrent, leadership, peers }: GateOptions): Gate {
  return async ({ exchange, route, address, auditId }) => {
    if (ALWAYS.has(route.path)) return false
    if (!isCurrent()) throw unavailable('this replica of the server does not reach the datastore')
    if (!needsLeader(route) || leadership.leads) return false
    const { leader } = leadership
    const client = leader === undefined ? undefined : peers.port(leader)
    if (client === undefined) throw unavailable('no replica of the server leads at the moment')
    const { authorization } = exchange.headers
    const headers = {
      host: exchange.authority,
      ...(authorization !== undefined && { authorization }),
      [CLIENT_ADDRESS]: address,
      [AUDIT_ID]: auditId,
    }
    const isWithheld = (name: string): boolean => name === CLIENT_ADDRESS || name === AUDIT_ID
    try {
      await forward(exchange, { client, clock, url: URL, path: exchange.path, headers, isWithheld })
    } catch (error) {
      if (exchange.isAnswered || exchange.signal.aborted) throw error
      // The leader may have done it: clients that repeat requests must not repeat this one by themselves.
      const message = `the leader of the replicas has not answered: ${(error as Error).message}`
      throw failure({ code: 503, reason: 'ServiceUnavailable', message })
    }
    return true
  }
}

/** For requests that another replica has passed on: they are never passed on again. */
export function refuseUnlessLeading({ leadership, isCurrent }: Pick<Replicas, 'leadership' | 'isCurrent'>): Gate {
  return () => {
    if (!leadership.leads || !isCurrent()) throw unavailable('this replica of the server no longer leads')
    return Promise.resolve(false)
  }
}

function unavailable(message: string): StatusError {
  const details = { retryAfterSeconds: RETRY_SECONDS }
  return failure({ code: 503, reason: 'ServiceUnavailable', message, details })
}
