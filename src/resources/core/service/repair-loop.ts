/**
 * Repairs Service allocations at the start and then every few minutes, in each server of a cluster. Every step is
 * idempotent, so that servers do not interfere.
 */
import { type Service, Services } from '#apis/core/v1.ts'
import type { Kind } from '#apis/kinds.ts'
import { IPAddresses, ServiceCIDRs } from '#apis/networking/v1.ts'
import { createEventRecorder } from '#apiserver/bootstrap/event-recorder.ts'
import type { Registry } from '#apiserver/registry/registry.ts'
import type { Cidr } from '#lib/net/cidr.ts'
import { type PeriodicTask, runPeriodically } from '#lib/periodic.ts'
import type { KubeObject } from '#meta/object.ts'

import { type AddressBook, planRanges } from './ip-pool.ts'
import type { PortLedger, PortRange } from './node-ports.ts'
import { applyIpRepair, applyPortRepair, planIpRepair, type RepairNote } from './repair.ts'

export interface ServiceRepairOptions {
  readonly registry: Registry
  readonly book: AddressBook
  readonly ports: PortLedger
  readonly portRange: PortRange
  /** `--service-cluster-ip-range`. */
  readonly serviceCidrs: readonly Cidr[]
  /** The reporter of events. */
  readonly hostname: string
  readonly onError: (error: unknown) => void
}

/** Upstream's `repairLoopInterval`. */
const INTERVAL_MS = 180_000

/**
 * Resolves after the first round, which creates the ledger of ports: no Service can allocate one before. Throws if that
 * round fails; later failures go to `onError` and are retried.
 */
export async function startServiceRepair(options: ServiceRepairOptions): Promise<PeriodicTask> {
  const { registry, onError } = options
  const [ports, ips] = [createPortRound(options), createIpRound(options)]
  await ports()
  await ips()
  return runPeriodically({ clock: registry.services.clock, periodMs: INTERVAL_MS, onError }, async () => {
    // A failure of addresses must not block the repair of ports.
    await ports().catch(onError)
    await ips()
  })
}

/** Notes become Warning events with upstream's names. */
function createReporter(
  { registry, hostname, onError }: ServiceRepairOptions,
  controller: 'ipallocator-repair-controller' | 'portallocator-repair-controller',
): (note: RepairNote) => void {
  const record = createEventRecorder(registry, { controller, hostname, onError })
  return ({ about, ...note }) => record({ ...note, regarding: about, type: 'Warning' })
}

function createPortRound(options: ServiceRepairOptions): () => Promise<void> {
  const { registry, ports, portRange } = options
  const tell = createReporter(options, 'portallocator-repair-controller')
  let leaks: ReadonlyMap<number, number> = new Map()
  const services = (): Promise<readonly Service[]> => registry.list(Services, '')
  const failures = registry.services.metrics.family('apiserver_nodeport_repair_reconcile_errors_total').labels()
  return async () => {
    const repairing = applyPortRepair(ports, services, { range: portRange, leaks })
    const repair = await repairing.catch((error: unknown) => {
      failures.inc()
      throw error
    })
    leaks = repair.leaks
    for (const note of repair.notes) tell(note)
  }
}

/** Reads all lists at one revision: a Service has its address in every revision. */
function createIpRound(options: ServiceRepairOptions): () => Promise<void> {
  const { registry, book, serviceCidrs } = options
  const { cache, clock } = registry.services
  const tell = createReporter(options, 'ipallocator-repair-controller')
  return async () => {
    await cache.fresh()
    const ranges = planRanges(listNow(registry, ServiceCIDRs), serviceCidrs)
    const repairs = planIpRepair({
      services: listNow(registry, Services),
      addresses: listNow(registry, IPAddresses),
      ranges: ranges.map(({ cidr }) => cidr),
      nowMs: clock.now(),
    })
    await applyIpRepair(repairs, book, tell)
  }
}

function listNow<T extends KubeObject>(registry: Registry, kind: Kind<T>): readonly T[] {
  return (
    registry
      .storeOf(kind)
      ?.collection.entries()
      .map(({ object }) => object as T) ?? []
  )
}
