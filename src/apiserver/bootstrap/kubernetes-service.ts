/**
 * The service `kubernetes`: how pods reach the API servers. Its address is the first of the service range; its endpoints
 * are the servers that are there, each of which adds and removes only itself. What somebody deletes comes back.
 */
import { type Endpoints, Endpoints as EndpointsKind, type Service, Services } from '#apis/core/v1.ts'
import { type EndpointSlice, EndpointSlices } from '#apis/discovery/v1.ts'
import { formatIp, parseCidr } from '#lib/cidr.ts'
import { type Clock, sleep } from '#lib/clock.ts'
import { type Rounds, startRounds } from '#lib/rounds.ts'
import { isInvalid, isNotFound } from '#meta/status.ts'

import type { Registry } from '../registry/registry.ts'
import type { NewObject } from '../registry/resource.ts'
import { createEndpointLeases, type EndpointLeases } from './endpoint-leases.ts'
import { type OwnEndpoint, planCounted, planLeased, planSlice, planWithout } from './endpoint-plan.ts'
import { ensureServiceRange } from './service-range.ts'

export interface KubernetesServiceOptions {
  /** `--service-cluster-ip-range`; the Service is of the first block. */
  readonly serviceCidr: string
  /** `--advertise-address`; undefined when there is none that pods could reach. */
  readonly advertiseAddress: string | undefined
  /** `--endpoint-reconciler-type`; default: by leases. */
  readonly reconciler?: EndpointReconciler
  readonly onError: (error: unknown) => void
}

/** How servers find each other. */
export interface EndpointReconciler {
  readonly type: 'lease' | 'master-count' | 'none'
  /** `--apiserver-count`, for `master-count`. */
  readonly count: number
}

export interface KubernetesService {
  /**
   * Before the server listens: takes away what a crash has left of this server, and makes the Service when the port is
   * known already.
   */
  prepare(port?: number): Promise<void>
  /** When it listens: Service and endpoints are there when this resolves, and are kept there. */
  publish(port: number): Promise<void>
  /** Removes this server from the endpoints and stops keeping them. Never throws; harmless when repeated. */
  withdraw(): Promise<void>
}

/** Upstream's `DefaultEndpointReconcilerInterval`. */
const INTERVAL_MS = 10_000
/** How long the store may take to hear that we leave; if it does not, our lease ends soon after. */
const WITHDRAW_MS = 3_000
/** Several servers that start together all want the same address: who comes second looks again. */
const RACE_TRIES = 20
const RACE_PAUSE_MS = 50

export function createKubernetesService(registry: Registry, options: KubernetesServiceOptions): KubernetesService {
  const { clock } = registry.services
  const { onError } = options
  const membership = createMembership(registry, options)
  const keepRange = createRangeKeeper(registry, options)
  let rounds: Rounds | undefined
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
      // As upstream: a cluster whose Service cannot be made yet is served all the same, and gets it later.
      await keep(port).catch(onError)
      rounds = startRounds({ clock, periodMs: INTERVAL_MS, onError }, () => keep(port))
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

/** Waits for the work, but not longer; what becomes of it then nobody hears. */
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
  let isTold = false
  return async () => {
    const isOurs = await ensureServiceRange(registry, serviceCidr.split(','))
    if (isOurs || isTold) return
    isTold = true
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
      // Another server has taken the address for this Service, and is about to write it.
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

/** How a server gets into the endpoints and out again. */
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
      // Listed after the Endpoints were read, which are written only as read: no server overlooks another for good.
      const ips = await leases.list()
      if (ips.length === 0 && own !== undefined) throw new Error(NOBODY)
      return planLeased(subsets, ips, own)
    })
  return {
    async forget() {
      if (!(await leases.drop(ip))) return
      // Of the last server nothing is taken away: it is back in a moment.
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

/** Upstream's words. */
const NOBODY =
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

/** `plan` is asked again when somebody else was faster. Endpoints that are not there are made only with `mayCreate`. */
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

/** Follows the Endpoints, read anew at each attempt, so that the slice of a slower server does not stay. */
async function writeSlice({ writer }: Registry): Promise<void> {
  const planned = async (): Promise<ReturnType<typeof planSlice>> =>
    planSlice((await writer.get(EndpointsKind, NAMESPACE, NAME))?.subsets ?? [])
  const current = await writer.get(EndpointSlices, NAMESPACE, NAME)
  // The family of a slice cannot be changed.
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
