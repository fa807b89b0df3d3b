/**
 * Checks whether the server of an APIService is available: its Service has endpoints, and the server answers a
 * discovery request. The condition Available records the result; requests are proxied only while it is true. Checks run
 * after changes, every half minute, and with backoff after a failure. Follows upstream's
 * kube-aggregator/pkg/controllers/status, v1.36.
 */
import { type APIService, type APIServiceCondition, APIServices } from '#apis/apiregistration/v1.ts'
import type { ServiceDirectory } from '#apiserver/connect/service-directory.ts'
import { hasEndpoint } from '#apiserver/connect/service-endpoint.ts'
import type { Registry } from '#apiserver/registry/registry.ts'
import { createItemBackoff } from '#lib/backoff.ts'
import { goQuote } from '#lib/go/text.ts'
import { type Requeue, WorkQueue } from '#lib/work-queue.ts'
import { deepCopy } from '#meta/object.ts'
import { isNotFound } from '#meta/status.ts'
import { timeOf } from '#meta/time.ts'

import type { FrontProxy } from './front-proxy.ts'
import type { Remote, Roster } from './roster.ts'

export type Verdict = Required<Pick<APIServiceCondition, 'status' | 'reason' | 'message'>>

export interface AvailabilityOptions {
  readonly registry: Registry
  readonly roster: Pick<Roster, 'get' | 'remote'>
  readonly directory: ServiceDirectory
  readonly frontProxy: FrontProxy
  readonly onError: (error: unknown) => void
}

export interface Availability {
  /** Schedules a check of an APIService. */
  readonly look: (name: string) => void
  /** Resolves when nothing is written any more. */
  close(): Promise<void>
}

const WORKERS = 5
const RECHECK_MS = 30_000
const BACKOFF = { baseMs: 5, capMs: 30_000 }

/** A failed check of the other server: it is retried, and is no error of this server. */
class CheckFailed extends Error {
  override readonly name = 'CheckFailed'
}

export function startAvailability(options: AvailabilityOptions): Availability {
  const { clock } = options.registry.services
  const queue = new WorkQueue<string>({ clock, rateLimiter: createItemBackoff(BACKOFF) })
  const ended = new AbortController()
  const running = queue.run({
    workers: WORKERS,
    signal: ended.signal,
    handle: (name) => sync(options, name),
    onError(error) {
      if (!(error instanceof CheckFailed) && !ended.signal.aborted) options.onError(error)
    },
  })
  return {
    look: (name) => queue.add(name),
    close() {
      ended.abort()
      return running
    },
  }
}

async function sync(options: AvailabilityOptions, name: string): Promise<Requeue | void> {
  const { roster, directory, frontProxy, registry } = options
  const object = roster.get(name)
  const remote = roster.remote(name)
  if (remote === undefined) frontProxy.forget(name)
  if (object === undefined) {
    registry.services.metrics.family('aggregator_unavailable_apiservice').remove(name)
    return
  }
  if (remote === undefined) return say(options, object, LOCAL)
  const obstacle = findObstacle(remote, directory)
  if (obstacle !== undefined) return say(options, object, obstacle)
  const failure = await checkDiscovery(remote, frontProxy)
  if (failure === undefined) {
    await say(options, object, PASSED)
    return { requeueAfterMs: RECHECK_MS }
  }
  await say(options, object, { status: 'False', reason: 'FailedDiscoveryCheck', message: failure })
  throw new CheckFailed(failure)
}

const PASSED: Verdict = { status: 'True', reason: 'Passed', message: 'all checks passed' }
const LOCAL: Verdict = { status: 'True', reason: 'Local', message: 'Local APIServices are always available' }

/** The checks without a request to the server; undefined if they pass. */
export function findObstacle({ service }: Remote, directory: ServiceDirectory): Verdict | undefined {
  const { namespace, name, port } = service
  const place = `service/${name} in ${goQuote(namespace)}`
  const no = (reason: string, message: string): Verdict => ({ status: 'False', reason, message })
  const found = directory.service(namespace, name)
  if (found === undefined) return no('ServiceNotFound', `${place} is not present`)
  if (found.spec?.type !== 'ClusterIP') return undefined
  const servicePort = found.spec.ports?.find((one) => one.port === port)
  if (servicePort === undefined) return no('ServicePortError', `${place} is not listening on port ${port}`)
  const slices = directory.slices(namespace, name)
  if (slices.length === 0) return no('EndpointsNotFound', `cannot find endpointslices for ${place}`)
  if (hasEndpoint(slices, servicePort)) return undefined
  const lack = `have no addresses with port name ${goQuote(servicePort.name ?? '')}`
  return no('MissingEndpoints', `endpointslices for ${place} ${lack}`)
}

/** A Service may have several servers: one that answers is enough. */
const ATTEMPTS = 5
const TIMEOUT_MS = 5000

/** Undefined if it answers; otherwise the last error. */
async function checkDiscovery(remote: Remote, frontProxy: FrontProxy): Promise<string | undefined> {
  let last = ''
  const attempts = Array.from({ length: ATTEMPTS }, async () => {
    const failure = await attempt(remote, frontProxy)
    if (failure === undefined) return
    last = failure
    throw new CheckFailed(failure)
  })
  return Promise.any(attempts).then(
    () => undefined,
    () => last,
  )
}

async function attempt(remote: Remote, frontProxy: FrontProxy): Promise<string | undefined> {
  const path = rootOf(remote)
  let place = path
  try {
    const url = frontProxy.locate(remote)
    place = `${url}${path}`
    const request = { path, accept: '', user: 'system:kube-aggregator', groups: ['system:masters'] }
    const { status } = await frontProxy.ask(remote, url, { ...request, timeoutMs: TIMEOUT_MS, limitBytes: 0 })
    if (status >= 200 && status < 300) return undefined
    return `failing or missing response from ${place}: bad status from ${place}: ${status}`
  } catch (error) {
    const { message } = error as Error
    return place === path ? message : `failing or missing response from ${place}: ${message}`
  }
}

/** The discovery path of a group version. */
export function rootOf({ group, version }: Pick<Remote, 'group' | 'version'>): string {
  return group === '' ? `/api/${version}` : `/apis/${group}/${version}`
}

async function say({ registry }: AvailabilityOptions, object: APIService, verdict: Verdict): Promise<void> {
  const { metadata } = object
  const { name = '' } = metadata
  const { clock, metrics } = registry.services
  metrics
    .family('aggregator_unavailable_apiservice')
    .labels(name)
    .set(verdict.status === 'True' ? 0 : 1)
  if (planCondition(object, verdict, clock.now()) === undefined) return
  const wasAvailable = conditionOf(object)?.status === 'True'
  try {
    await registry.writer.updateStatus(
      APIServices,
      { name },
      (live) => planCondition(live, verdict, clock.now()) ?? live,
    )
  } catch (error) {
    if (isNotFound(error)) return
    throw error
  }
  if (!wasAvailable || verdict.status === 'True') return
  metrics.family('aggregator_unavailable_apiservice_total').labels(name, verdict.reason).inc()
}

function conditionOf({ status }: APIService): APIServiceCondition | undefined {
  return status?.conditions?.find(({ type }) => type === 'Available')
}

/** The updated APIService; undefined if the condition is unchanged. Does not modify its argument. */
export function planCondition(object: APIService, verdict: Verdict, nowMs: number): APIService | undefined {
  const current = conditionOf(object)
  const { status, reason, message } = verdict
  if (current?.status === status && current.reason === reason && current.message === message) return undefined
  const lastTransitionTime = current?.status === status ? (current.lastTransitionTime ?? timeOf(nowMs)) : timeOf(nowMs)
  const condition: APIServiceCondition = { type: 'Available', status, lastTransitionTime, reason, message }
  const next = deepCopy(object)
  const conditions = next.status?.conditions ?? []
  const at = conditions.findIndex(({ type }) => type === 'Available')
  next.status = { conditions: at < 0 ? [...conditions, condition] : conditions.with(at, condition) }
  return next
}
