/**
 * Coordinated leader election (gate CoordinatedLeaderElection): the server picks the leader among the LeaseCandidates
 * of a lease. One of several servers does so, elected by a separate lease.
 */

import { type Lease, Leases } from '#apis/coordination/v1.ts'
import { type LeaseCandidate, LeaseCandidates } from '#apis/coordination/v1beta1.ts'
import type { ApiServer } from '#apiserver/apiserver.ts'
import type { Registry } from '#apiserver/registry/registry.ts'
import { SYSTEM_USER } from '#apiserver/registry/writer.ts'
import { ApiClient } from '#client/api-client.ts'
import { Informer } from '#client/informer.ts'
import { lead, LeadershipLost } from '#client/leader-election.ts'
import { every, sleep } from '#lib/clock.ts'
import type { Logger } from '#lib/log/log.ts'
import { type Random, uuid } from '#lib/random.ts'
import { type Requeue, WorkQueue } from '#lib/work-queue.ts'
import { objectKey } from '#meta/object.ts'
import { isNotFound } from '#meta/status.ts'
import { epochMsOf, microTimeOf } from '#meta/time.ts'
import { userAgent } from '#model/version.ts'

import type { Environment } from '../environment.ts'
import { isCandidateExpired } from './candidates.ts'
import { type Elected, planElection, planLease, planNewLease } from './plan.ts'

const NAME = 'leader-election-controller'
/** Upstream's period for checking that a leader renews. */
const REQUEUE: Requeue = { requeueAfterMs: 5000 }
const CLEANUP_MS = 30 * 60_000

/** Elects leaders until the server closes, if the gate is enabled. */
export function startCoordinatedElection(
  environment: Environment,
  registry: Registry,
  server: Pick<ApiServer, 'clientAs'>,
): void {
  const { settings, clock, random, host, log, closing, isEnabled } = environment
  if (!isEnabled('CoordinatedLeaderElection')) return
  const { group, version, plural: resource } = LeaseCandidates
  if (registry.find({ group, version, resource }) === undefined) {
    log.info('CoordinatedLeaderElection has no effect because the LeaseCandidate API is disabled', {
      groupVersion: `${group}/${version}`,
      remedy: 'Enable it with --runtime-config=coordination.k8s.io/v1beta1=true',
    })
    return
  }
  const client = new ApiClient({ transport: server.clientAs(SYSTEM_USER), clock, userAgent: userAgent(NAME) })
  const stop = new AbortController()
  const retryPeriodMs = settings['coordinated-leadership-retry-period']
  const options = {
    client,
    random,
    namespace: 'kube-system',
    name: NAME,
    identity: `${host}_${uuid(random)}`,
    leaseDurationMs: settings['coordinated-leadership-lease-duration'],
    renewDeadlineMs: settings['coordinated-leadership-renew-deadline'],
    retryPeriodMs,
    onError: (error: unknown) => log.error(error, 'Error retrieving lease lock', { lock: `kube-system/${NAME}` }),
  }
  const running = (async () => {
    while (!stop.signal.aborted) {
      await lead(options, stop.signal, (signal) => electLeaders({ client, random, log }, signal)).catch(onLost(log))
      await sleep(clock, retryPeriodMs, stop.signal).catch(() => undefined)
    }
  })()
  closing.defer(async () => {
    stop.abort()
    await running
  })
}

function onLost(log: Logger): (error: unknown) => void {
  return (error) => {
    if (error instanceof LeadershipLost) log.info('leaderelection lost', { lock: `kube-system/${NAME}` })
    else log.error(error, 'Failed to run coordinated leader election')
  }
}

interface Tools {
  readonly client: ApiClient
  readonly random: Random
  readonly log: Logger
}

/** Runs until the signal is aborted. */
export async function electLeaders({ client, random, log }: Tools, signal: AbortSignal): Promise<void> {
  const onError = (error: unknown): void => log.error(error, 'Failed to watch leases and their candidates')
  const leases = new Informer({ client, random, kind: Leases, onError })
  const candidates = new Informer({ client, random, kind: LeaseCandidates, onError, indexes: { lease: leaseKeyOf } })
  const queue = new WorkQueue<string>({ clock: client.clock })
  const addLease = (lease: Lease): void => {
    const key = objectKey(lease)
    if (candidates.by('lease', key).length > 0) queue.add(key)
  }
  const addCandidate = (candidate: LeaseCandidate): void => {
    if (!isAwaited(candidate)) for (const key of leaseKeyOf(candidate)) queue.add(key)
  }
  leases.listen({ added: addLease, updated: addLease, deleted: addLease })
  candidates.listen({ added: addCandidate, updated: addCandidate, deleted: addCandidate })
  const following = [leases.run(signal), candidates.run(signal)]
  const cleanup = every(client.clock, CLEANUP_MS, () => {
    void deleteExpired(client, candidates).catch((error: unknown) =>
      log.error(error, 'Failed to delete lease candidate'),
    )
  })
  await Promise.race([Promise.all([leases.synced, candidates.synced]), aborted(signal)])
  const fail = (error: unknown, key: string): Requeue => {
    log.error(error, 'Failed to reconcile coordinated leader election', { key })
    return REQUEUE
  }
  const elections = new Elections(client, log, { leases, candidates })
  await queue.run({
    workers: 1,
    signal,
    // A failed election is retried as soon as a running one: there may be no leader meanwhile.
    handle: (key) => elections.step(key).catch((error: unknown) => fail(error, key)),
    onError: fail,
  })
  cleanup.cancel()
  await Promise.all(following)
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve()
    else signal.addEventListener('abort', () => resolve(), { once: true })
  })
}

function leaseKeyOf({ metadata, spec }: LeaseCandidate): readonly string[] {
  return [`${metadata.namespace ?? ''}/${spec.leaseName}`]
}

/** Pinged without an answer: its election is in progress. */
function isAwaited({ spec: { pingTime, renewTime } }: LeaseCandidate): boolean {
  return pingTime !== undefined && (renewTime === undefined || epochMsOf(renewTime) < epochMsOf(pingTime))
}

interface Observed {
  readonly leases: Informer<Lease>
  readonly candidates: Informer<LeaseCandidate>
}

class Elections {
  readonly #client: ApiClient
  readonly #log: Logger
  readonly #observed: Observed

  constructor(client: ApiClient, log: Logger, observed: Observed) {
    this.#client = client
    this.#log = log
    this.#observed = observed
  }

  /** Runs one step of an election; repeats it soon as long as there are candidates. */
  async step(key: string): Promise<Requeue | void> {
    const nowMs = this.#client.clock.now()
    const all = this.#observed.candidates.by('lease', key)
    const candidates = all.filter((candidate) => !isCandidateExpired(candidate, nowMs))
    if (candidates.length === 0) return
    const step = planElection({ lease: this.#observed.leases.get(key), candidates, nowMs })
    if (step.action === 'stall') return this.#log.v(2)?.info('no available candidates', { lease: key })
    if (step.action === 'ping') await this.#ping(step.candidates, nowMs)
    if (step.action === 'elect') await this.#elect(key, step, nowMs)
    return REQUEUE
  }

  async #ping(candidates: readonly LeaseCandidate[], nowMs: number): Promise<void> {
    const pingTime = microTimeOf(nowMs)
    await Promise.all(
      candidates.map((candidate) =>
        this.#client.update(LeaseCandidates, { ...candidate, spec: { ...candidate.spec, pingTime } }),
      ),
    )
  }

  async #elect(key: string, elected: Elected, nowMs: number): Promise<void> {
    // The name of a lease in a candidate is any text; a namespace has no slash.
    const slash = key.indexOf('/')
    const [namespace, name] = [key.slice(0, slash), key.slice(slash + 1)]
    const existing = await this.#client.get(Leases, { namespace, name }).catch((error: unknown) => {
      if (isNotFound(error)) return undefined
      throw error
    })
    const { holder = '' } = elected
    if (existing === undefined) {
      await this.#client.create(Leases, { metadata: { namespace, name }, spec: planNewLease(elected, nowMs) })
      this.#log.info('Created lease', { lease: key, holder })
      return
    }
    const spec = planLease(existing.spec, elected, nowMs)
    if (spec === existing.spec) return
    await this.#client.update(Leases, { ...existing, spec })
    this.#log.info('Updated lease', { lease: key, holder: spec.holderIdentity, preferredHolder: spec.preferredHolder })
  }
}

async function deleteExpired(client: ApiClient, candidates: Informer<LeaseCandidate>): Promise<void> {
  const expired = [...candidates.list()].filter((candidate) => isCandidateExpired(candidate, client.clock.now()))
  for (const { metadata } of expired) {
    const { namespace = '', name = '', uid, resourceVersion } = metadata
    const preconditions = {
      ...(uid !== undefined && { uid }),
      ...(resourceVersion !== undefined && { resourceVersion }),
    }
    await client.delete(LeaseCandidates, { namespace, name }, { preconditions })
  }
}
