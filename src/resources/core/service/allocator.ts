/**
 * Allocates cluster IPs and node ports of Services. Addresses come before ports, both before the Service is written;
 * allocations of a failed write are released. The repair loop releases allocations that a crash left.
 */
import type { Service, ServiceSpec } from '#apis/core/v1.ts'
import type { ServiceCIDR } from '#apis/networking/v1.ts'
import type { Finish, WriteContext } from '#apiserver/registry/resource.ts'
import { type Cidr, parseCidr } from '#lib/net/cidr.ts'
import type { Random } from '#lib/random.ts'
import { deepCopy } from '#meta/object.ts'
import { failure, internalError, invalidError } from '#meta/status-errors.ts'
import { fieldPath } from '#meta/validation/field-path.ts'
import { clusterIpsOf, requestedNodePorts, type IpFamily, isHeadless, needsClusterIp } from '#model/services.ts'

import type { ServiceAllocator } from './allocation.ts'
import { isSettled, settleFamilies } from './families.ts'
import { type AddressBook, AddressError, createIpPool, type IpPool, planRanges, type ServiceRange } from './ip-pool.ts'
import { completeSpec } from './linked-fields.ts'
import type { ServiceMeter } from './metrics.ts'
import {
  allocatePorts,
  asksForPorts,
  DEFAULT_PORT_RANGE,
  type PortLedger,
  type PortPlan,
  type PortRange,
  type PortRefusal,
} from './node-ports.ts'

export interface ServiceAllocatorOptions {
  readonly book: AddressBook
  readonly ports: PortLedger
  readonly random: Random
  /** `--service-cluster-ip-range`: one CIDR, or one of each family; the first is the default. */
  readonly serviceCidrs: readonly Cidr[]
  /** The current ServiceCIDR objects. */
  readonly rangeObjects?: () => readonly ServiceCIDR[]
  /** `--service-node-port-range`. */
  readonly portRange?: PortRange
  readonly meter?: ServiceMeter
  /** Called for a failed release. */
  readonly report?: (message: string, error: unknown) => void
}

/** The defaults of a local cluster, as in upstream's local-up. */
export const DEFAULT_SERVICE_CIDRS: readonly Cidr[] = [parseCidr('10.0.0.0/24')].filter((cidr) => cidr !== undefined)

export function createServiceAllocator(options: ServiceAllocatorOptions): ServiceAllocator {
  const { book, ports, random, serviceCidrs, rangeObjects = () => [], portRange = DEFAULT_PORT_RANGE } = options
  const all = [...new Set(serviceCidrs.map(({ family }): IpFamily => `IPv${family}`))]
  const primaryFamily = all[0] ?? 'IPv4'
  const { meter } = options
  const ranges = (): ServiceRange[] => planRanges(rangeObjects(), serviceCidrs)
  const plain = createIpPool({ book, random, ranges })
  const pool = meter?.pool(plain, ranges) ?? plain
  const back = createReturns(pool, options)

  const takePorts = async (next: Service, old: ServiceSpec | undefined, dryRun: boolean): Promise<PortPlan> => {
    if (!asksForPorts(next.spec) && requestedNodePorts(old ?? {}).size === 0) return NO_PORTS
    // Another attempt starts with the requested ports.
    const wanted = deepCopy(next.spec)
    const plan = await ports.change((taken) => {
      next.spec = deepCopy(wanted)
      return allocatePorts(taken, { next: next.spec, old, range: portRange, random, dryRun })
    })
    if (!dryRun) meter?.ports(plan, wanted)
    if (plan.refusal !== undefined) throw portError(next, plan.refusal)
    return plan
  }

  return {
    primaryFamily,
    async allocate(next, stored, context) {
      const { dryRun, isEnabled } = context
      const old = stored === undefined ? undefined : completeSpec(stored.spec, primaryFamily)
      const cluster = { primary: primaryFamily, all, strict: isEnabled('StrictIPCIDRValidation') }
      const errors = settleFamilies(next.spec, old, cluster)
      if (errors.length > 0) throw invalidError(SERVICE, next.metadata.name ?? '', errors)
      const ips = planIps(next.spec, old)
      const taken: string[] = []
      try {
        await takeIps(pool, next, { indexes: ips.indexes, taken, context })
        const plan = await takePorts(next, old, dryRun)
        return finishWith(back, dryRun, { taken: [taken, plan.taken], released: [ips.released, plan.released] })
      } catch (error) {
        if (!dryRun) await back.ips(taken)
        throw error
      }
    },
    async release({ spec }, { dryRun }) {
      if (dryRun) return
      await back.ips(clusterIpsOf(spec))
      await back.ports([...requestedNodePorts(spec)])
    },
  }
}

const SERVICE = { group: '', kind: 'Service' }

const NO_PORTS: PortPlan = { taken: [], released: [] }

/** Releases, and never throws: the store would treat an error as a failed write and release everything. */
interface Returns {
  ips(ips: readonly string[]): Promise<void>
  ports(given: readonly number[]): Promise<void>
}

function createReturns(pool: IpPool, { ports, report }: ServiceAllocatorOptions): Returns {
  const calmly = async (what: string, work: () => Promise<unknown>): Promise<void> => {
    try {
      await work()
    } catch (error) {
      report?.(`Failed to release ${what}; the repair will release it`, error)
    }
  }
  return {
    ips: async (ips) => {
      for (const ip of ips) await calmly(`the cluster IP ${ip}`, () => pool.giveBack(ip))
    },
    ports: async (given) => {
      if (given.length === 0) return
      await calmly(`the node ports ${given.join(', ')}`, () =>
        ports.change((taken) => {
          for (const port of given) taken.delete(port)
        }),
      )
    },
  }
}

type Allocations = readonly [ips: readonly string[], ports: readonly number[]]

function finishWith(
  back: Returns,
  dryRun: boolean,
  { taken, released }: { readonly taken: Allocations; readonly released: Allocations },
): Finish {
  return async (written) => {
    if (dryRun) return
    const [ips, ports] = written ? released : taken
    await back.ips(ips)
    await back.ports(ports)
  }
}

interface IpPlan {
  /** The indexes of families that get an address. */
  readonly indexes: readonly number[]
  /** Addresses that the Service no longer has. */
  readonly released: readonly string[]
}

const NOTHING: IpPlan = { indexes: [], released: [] }

/** An update adds or removes all addresses or the second. */
export function planIps(next: ServiceSpec, old: ServiceSpec | undefined): IpPlan {
  const before = old === undefined || !needsClusterIp(old) ? undefined : old
  if (!needsClusterIp(next)) return { indexes: [], released: before === undefined ? [] : clusterIpsOf(before) }
  // A change between headless and not is rejected later, so nothing is allocated here.
  if (isHeadless(next)) return NOTHING
  if (before === undefined) return { indexes: [...(next.ipFamilies ?? []).keys()], released: [] }
  return isHeadless(before) || isSettled(next, before) ? NOTHING : planSecondIp(next, before)
}

function planSecondIp({ ipFamilies = [] }: ServiceSpec, old: ServiceSpec): IpPlan {
  const before = old.ipFamilies?.length ?? 0
  if (before === 1 && ipFamilies.length === 2) return { indexes: [1], released: [] }
  return before === 2 && ipFamilies.length === 1 ? { indexes: [], released: clusterIpsOf(old).slice(1) } : NOTHING
}

interface IpRequest {
  readonly indexes: readonly number[]
  /** Collects allocations, even if it ends with an error. */
  readonly taken: string[]
  readonly context: WriteContext
}

/** An empty address at an index requests any. */
async function takeIps(pool: IpPool, service: Service, { indexes, taken, context }: IpRequest): Promise<void> {
  const { spec, metadata } = service
  if (indexes.length === 0) return
  const ips = [...(spec.clusterIPs ?? [])]
  for (const at of indexes) ips[at] ??= ''
  spec.clusterIPs = ips
  for (const at of indexes) {
    const wanted = ips[at] ?? ''
    const family = (spec.ipFamilies?.[at] ?? 'IPv4') as IpFamily
    try {
      const ip = await (wanted === '' ? pool.takeAny(family, service, context) : pool.take(wanted, service, context))
      taken.push(ip)
      ips[at] = wanted === '' ? ip : wanted
    } catch (error) {
      throw error instanceof AddressError ? addressError(error, metadata.name ?? '', wanted, ips) : error
    }
  }
  if (ips[0] !== undefined) spec.clusterIP = ips[0]
}

function addressError(error: AddressError, name: string, wanted: string, ips: readonly string[]): Error {
  const { code, message } = error
  if (wanted === '' && code === 'full') {
    return internalError(new Error(`failed to allocate a serviceIP for Service "${name}": ${message}`))
  }
  const what = wanted === '' ? 'failed to allocate IP' : `failed to allocate IP ${wanted}`
  return invalidError(SERVICE, name, [fieldPath('spec.clusterIPs').invalid(ips, `${what}: ${message}`)])
}

function portError({ metadata }: Service, refusal: PortRefusal): Error {
  if ('field' in refusal) return invalidError(SERVICE, metadata.name ?? '', [refusal.field])
  return refusal.internal ? internalError(new Error(refusal.failure)) : failure({ code: 500, message: refusal.failure })
}
