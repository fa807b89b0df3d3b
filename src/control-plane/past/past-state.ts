/**
 * The state of the cluster at a revision, as an API server would show it: the kinds, objects and access rules of that time,
 * with the present handlers. Its store is another one, so nothing that happens here reaches the cluster.
 */
import { startServing } from '#apiextensions/serving.ts'
import { createReader } from '#apiserver/apiserver.ts'
import { followRbac } from '#apiserver/auth/rbac-follower.ts'
import { admitAll } from '#apiserver/registry/admission.ts'
import type { Registry } from '#apiserver/registry/registry.ts'
import type { Authorizer } from '#auth/authorizer.ts'
import { createAuthorizer } from '#auth/authorizers/index.ts'
import { RbacIndex } from '#auth/authorizers/rbac/rbac.ts'
import type { Answer, Call } from '#component/requests/call.ts'
import type { LongHistory } from '#history/long-history.ts'
import { createVirtualClock } from '#lib/clock.ts'
import { createSeededRandom } from '#lib/random.ts'
import { createServerMeters } from '#model/metrics/families.ts'
import { versionInfo } from '#model/version.ts'
import { type Revision, StorageError } from '#storage/backend.ts'
import type { AtRest } from '#storage/encryption/at-rest.ts'
import { prepareValues } from '#storage/encryption/prepared-backend.ts'

import type { Environment } from '../environment.ts'
import { addStoredKinds } from '../kinds.ts'
import { createRegistry } from '../registry.ts'
import { createServiceParts } from '../service-parts.ts'
import { playingClock, standingClock } from './past-clock.ts'
import { forPastStates } from './past-values.ts'
import { play } from './play.ts'

export interface PastPlan {
  readonly revision: Revision
  /** The time of the moment; absent: that of the last change. */
  readonly timeMs?: number | undefined
  /** The changes after the revision follow at this pace. Undefined: the state stands still. */
  readonly speed?: number | undefined
}

export interface PastParts {
  readonly history: LongHistory
  readonly atRest: AtRest
  readonly serverAddress: string
}

export interface PastState extends AsyncDisposable {
  readonly registry: Registry
  /** RBAC by the roles and bindings of that time. */
  readonly authorizer: Authorizer
  /** Resolves if the changes after the moment can no longer be played. */
  readonly stopped: Promise<void>
  /** Undefined: there was no such path. */
  answer(call: Call): Promise<Answer> | Answer | undefined
}

/** Fails with StorageError `compacted` if the history does not have the revision. */
export async function openPast(
  environment: Environment,
  { history, atRest, serverAddress }: PastParts,
  { revision, speed, timeMs = history.timeOf(revision) ?? environment.clock.now() }: PastPlan,
): Promise<PastState> {
  await using opening = new AsyncDisposableStack()
  const { log } = environment
  const random = createSeededRandom(revision)
  // Leases of the store must not end here.
  const fork = await history.stateAt({ revision, clock: createVirtualClock(timeMs), random })
  opening.defer(() => fork.close())
  // Lists at older revisions would pass the access rules of this one.
  await fork.compact(revision)
  const clock =
    speed === undefined ? standingClock(environment.clock, timeMs) : playingClock(environment.clock, timeMs, speed)
  const own = { ...environment, clock, random, closing: opening, metrics: createServerMeters() }
  const registry = createRegistry(own, {
    backend: prepareValues(fork, atRest),
    atRest: forPastStates(atRest),
    admission: () => admitAll,
  })
  const roles = new RbacIndex()
  const authorizer = createAuthorizer(['RBAC'], { rbac: roles })
  await addStoredKinds(own, registry, { authorizer, roles }, createServiceParts(own, registry))
  await registry.services.cache.start()
  const rbac = followRbac(registry, roles)
  opening.defer(() => rbac.close())
  const onError = (error: unknown): void => log.error(error, 'Failed to serve a CustomResourceDefinition of the past')
  // A conversion webhook of that time may be gone, so none is called: objects show their stored fields in every version.
  const custom = startServing({ registry, converterOf: () => undefined, onError })
  opening.defer(() => custom?.close())
  await Promise.all([rbac.ready, custom?.ready])
  const stopped = Promise.withResolvers<void>()
  if (speed !== undefined) {
    const stop = new AbortController()
    opening.defer(() => stop.abort())
    const playing = play({ from: history, into: fork, revision, clock, speed, signal: stop.signal })
    playing.catch((error: unknown) => {
      if (stop.signal.aborted) return
      const isDropped = error instanceof StorageError && error.code === 'compacted'
      if (!isDropped) log.error(error, 'Failed to play the changes after a moment', { revision })
      stopped.resolve()
    })
  }
  const answer = createReader({ registry, serverAddress, versionInfo: versionInfo(environment.version) })
  const closing = opening.move()
  return { registry, authorizer, stopped: stopped.promise, answer, [Symbol.asyncDispose]: () => closing.disposeAsync() }
}
