/**
 * Maintains the Service `kubernetes`, through which pods reach the API servers. Each live server adds and removes only
 * its own address in the endpoints.
 */
import { type Endpoints, Endpoints as EndpointsKind, type Service, Services } from '#apis/core/v1.ts'
import { type EndpointSlice, EndpointSlices } from '#apis/discovery/v1.ts'
import { type Clock, sleep } from '#lib/clock.ts'
import { formatIp, parseCidr } from '#lib/net/cidr.ts'
import { type PeriodicTask, runPeriodically } from '#lib/periodic.ts'
import { isInvalid, isNotFound } from '#meta/status.ts'

import type { Registry } from '../registry/registry.ts'
import type { NewObject } from '../registry/resource.ts'
import { createEndpointLeases, type EndpointLeases } from './endpoint-leases.ts'
import { type OwnEndpoint, planCounted, planLeased, planSlice, planWithout } from './endpoint-plan.ts'
import { ensureServiceRange } from './service-range.ts'

export interface KubernetesServiceOptions {
  /** `--service-cluster-ip-range`; the Service uses the first block. */
  readonly serviceCidr: string
  /** `--advertise-address`; undefined if pods could not reach it. */
  readonly advertiseAddress: string | undefined
  /** `--endpoint-reconciler-type`; default: by leases. */
  readonly reconciler?: EndpointReconciler
  readonly onError: (error: unknown) => void
}

/** The endpoint leases of all servers. */
export interface EndpointReconciler {
  readonly type: 'lease' | 'master-count' | 'none'
  /** `--apiserver-count`, for `master-count`. */
  readonly count: number
}

export interface KubernetesService {
  /**
   * Before the server listens: removes what a crash has left of this server, and creates the Service if the port is
   * already known.
   */
  prepare(port?: number): Promise<void>
  /** After the server listens: resolves when Service and endpoints exist; they are then maintained. */
  publish(port: number): Promise<void>
  /** Removes this server from the endpoints and stops maintaining them. Never throws. Idempotent. */
  withdraw(): Promise<void>
}

/** Upstream's `DefaultEndpointReconcilerInterval`. */
const INTERVAL_MS = 10_000
/** The limit for removing this server on shutdown. If the store does not answer, the lease expires soon after. */
const WITHDRAW_MS = 3_000
/** Retries, because servers that start together compete for the same address. */
const RACE_TRIES = 20
const RACE_PAUSE_MS = 50

export function createKubernetesService(registry: Registry, options: KubernetesServiceOptions): KubernetesService {
  const { clock } = registry.services
  const { onError } = options
  const membership = createMembership(registry, options)
  const keepRange = createRangeKeeper(registry, options)
  let rounds: PeriodicTask | undefined
  let leaving: Promise<void> | undefined
  const keep = async (port: number): Promise<void> => {
    await keepRange()
    await keepService(registry, options, port)
    await membership.join(port)
  }
  return {
    async prepare(port) {
      await keepRange()
      if (port !== undefined) await keepService(registry, options, port)
      await membership.forget()
    },
    async publish(port) {
      // As upstream: a cluster whose Service cannot be created yet is served all the same and gets it later.
      await keep(port).catch(onError)
      rounds = runPeriodically({ clock, periodMs: INTERVAL_MS, onError }, () => keep(port))
    },
    withdraw() {
      leaving ??= within(clock, WITHDRAW_MS, async () => {
        await rounds?.stop()
        await membership.leave()
      }).catch(onError)
      return leaving
    },
  }
}

/** Waits for the work up to a limit and then ignores its result. */
async function within(clock: Clock, limitMs: number, work: () => Promise<void>): Promise<void> {
  const done = new AbortController()
  const limit = sleep(clock, limitMs, done.signal).catch(() => undefined)
  try {
    await Promise.race([work(), limit])
  } finally {
    done.abort()
  }
}

const NAME = 'kubernetes'
const NAMESPACE = 'default'
const WHERE = { name: NAME, namespace: NAMESPACE }

function createRangeKeeper(registry: Registry, options: KubernetesServiceOptions): () => Promise<void> {
  const { serviceCidr, onError } = options
  let isReported = false
  return async () => {
    const isOurs = await ensureServiceRange(registry, serviceCidr.split(','))
    if (isOurs || isReported) return
    isReported = true
    onError(new Error(`The ServiceCIDR "${NAME}" is not "${serviceCidr}"; Services go on with what it says`))
  }
}

async function keepService(registry: Registry, options: KubernetesServiceOptions, port: number): Promise<void> {
  const [block = ''] = options.serviceCidr.split(',')
  const range = parseCidr(block)
  if (range === undefined) throw new Error(`"${block}" is not a block of addresses; correct --service-cluster-ip-range`)
  const clusterIP = formatIp({ family: range.family, value: range.base + 1n })
  for (let tries = RACE_TRIES; ; tries--) {
    try {
      await registry.writer.ensure(Services, serviceObject(clusterIP, range.family, port))
      return
    } catch (error) {
      // Another server has allocated the address for this Service and is about to write it.
      if (!isInvalid(error) || tries === 1) throw error
      await sleep(registry.services.clock, RACE_PAUSE_MS)
    }
  }
}

function serviceObject(clusterIP: string, family: 4 | 6, targetPort: number): NewObject<Service> {
  return {
    metadata: { name: NAME, namespace: NAMESPACE, labels: { component: 'apiserver', provider: 'kubernetes' } },
    spec: {
      type: 'ClusterIP',
      clusterIP,
      clusterIPs: [clusterIP],
      ipFamilies: [`IPv${family}`],
      ipFamilyPolicy: 'SingleStack',
      sessionAffinity: 'None',
      ports: [{ name: 'https', protocol: 'TCP', port: 443, targetPort }],
    },
    status: { loadBalancer: {} },
  }
}

/** Adds a server to the endpoints and removes it. */
interface Membership {
  /** Removes what a crash has left of this server. */
  forget(): Promise<void>
  join(port: number): Promise<void>
  leave(): Promise<void>
}

const NO_MEMBERSHIP: Membership = {
  forget: () => Promise.resolve(),
  join: () => Promise.resolve(),
  leave: () => Promise.resolve(),
}

function createMembership(
  registry: Registry,
  { advertiseAddress: ip, reconciler = { type: 'lease', count: 1 } }: KubernetesServiceOptions,
): Membership {
  if (ip === undefined || reconciler.type === 'none') return NO_MEMBERSHIP
  const { backend, atRest } = registry.services
  return reconciler.type === 'lease'
    ? leasedMembership(registry, ip, createEndpointLeases(backend, atRest))
    : countedMembership(registry, ip, reconciler.count)
}

function leasedMembership(registry: Registry, ip: string, leases: EndpointLeases): Membership {
  const reconcile = (own?: OwnEndpoint): Promise<void> =>
    writeEndpoints(registry, own !== undefined, async (subsets) => {
      // Listed after the Endpoints were read, and the write requires that version: no server can be missed for good.
      const ips = await leases.list()
      if (ips.length === 0 && own !== undefined) throw new Error(NO_API_SERVER)
      return planLeased(subsets, ips, own)
    })
  return {
    async forget() {
      if (!(await leases.drop(ip))) return
      // The last server's endpoint stays: it is back in a moment.
      if ((await leases.list()).length > 0) await reconcile()
    },
    async join(port) {
      await leases.renew(ip)
      await reconcile({ ip, ports: portsOf(port) })
    },
    async leave() {
      await leases.release()
      await reconcile()
    },
  }
}

/** Upstream's text. */
const NO_API_SERVER =
  'no API server IP addresses were listed in storage, refusing to erase all endpoints for the kubernetes Service'

function countedMembership(registry: Registry, ip: string, count: number): Membership {
  const remove = (): Promise<void> =>
    writeEndpoints(registry, false, (subsets) => Promise.resolve(planWithout(subsets, ip)))
  return {
    forget: remove,
    join: (port) =>
      writeEndpoints(registry, true, (subsets) =>
        Promise.resolve(planCounted(subsets, { ip, ports: portsOf(port) }, count)),
      ),
    leave: remove,
  }
}

function portsOf(port: number): OwnEndpoint['ports'] {
  return [{ name: 'https', port, protocol: 'TCP' }]
}

type Subsets = NonNullable<Endpoints['subsets']>

/** `plan` runs again after a conflict. Missing Endpoints are created only with `mayCreate`. */
async function writeEndpoints(
  registry: Registry,
  mayCreate: boolean,
  plan: (subsets: Subsets) => Promise<Subsets>,
): Promise<void> {
  const change = async (endpoints: Endpoints): Promise<Endpoints> => {
    const { metadata, subsets = [] } = endpoints
    const labels = { ...metadata.labels, 'endpointslice.kubernetes.io/skip-mirror': 'true' }
    return { ...endpoints, metadata: { ...metadata, ...WHERE, labels }, subsets: await plan(subsets) }
  }
  try {
    await registry.writer.update(EndpointsKind, WHERE, change, { creates: mayCreate })
  } catch (error) {
    if (mayCreate || !isNotFound(error)) throw error
    return
  }
  await writeSlice(registry)
}

/** Derived from the Endpoints, read again at each attempt, so that an outdated slice does not stay. */
async function writeSlice({ writer }: Registry): Promise<void> {
  const planned = async (): Promise<ReturnType<typeof planSlice>> =>
    planSlice((await writer.get(EndpointsKind, NAMESPACE, NAME))?.subsets ?? [])
  const current = await writer.get(EndpointSlices, NAMESPACE, NAME)
  // The address family of a slice is immutable.
  if (current !== undefined && current.addressType !== (await planned()).addressType) {
    await writer.delete(EndpointSlices, WHERE)
  }
  const change = async (slice: EndpointSlice): Promise<EndpointSlice> => ({
    ...slice,
    metadata: { ...slice.metadata, ...WHERE, labels: { 'kubernetes.io/service-name': NAME } },
    ...(await planned()),
  })
  await writer.update(EndpointSlices, WHERE, change, { creates: true })
}
