/**
 * Repairs what Services hold, at the start and from then on every few minutes, in each server of a cluster: whatever is
 * found twice is put right once, because every step of a repair is harmless when somebody else has done it.
 */
import { type Service, Services } from '#apis/core/v1.ts'
import type { Kind } from '#apis/kinds.ts'
import { IPAddresses, ServiceCIDRs } from '#apis/networking/v1.ts'
import { createEventRecorder } from '#apiserver/bootstrap/event-recorder.ts'
import type { Registry } from '#apiserver/registry/registry.ts'
import type { Cidr } from '#lib/cidr.ts'
import { type Rounds, startRounds } from '#lib/rounds.ts'
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
  /** Named in events. */
  readonly hostname: string
  readonly onError: (error: unknown) => void
}

/** Upstream's `repairLoopInterval`. */
const INTERVAL_MS = 180_000

/**
 * Resolves after the first round, which makes the ledger of ports: no Service can take one before. Throws when that
 * round fails; what fails later is told to `onError`, and tried again in the next round.
 */
export async function startServiceRepair(options: ServiceRepairOptions): Promise<Rounds> {
  const { registry, onError } = options
  const [ports, ips] = [createPortRound(options), createIpRound(options)]
  await ports()
  await ips()
  return startRounds({ clock: registry.services.clock, periodMs: INTERVAL_MS, onError }, async () => {
    // What is wrong with the ones must not keep the others from being repaired.
    await ports().catch(onError)
    await ips()
  })
}

/** Notes become Warning events. The names are upstream's. */
function createTeller(
  { registry, hostname, onError }: ServiceRepairOptions,
  controller: 'ipallocator-repair-controller' | 'portallocator-repair-controller',
): (note: RepairNote) => void {
  const record = createEventRecorder(registry, { controller, hostname, onError })
  return ({ about, ...note }) => record({ ...note, regarding: about, type: 'Warning' })
}

function createPortRound(options: ServiceRepairOptions): () => Promise<void> {
  const { registry, ports, portRange } = options
  const tell = createTeller(options, 'portallocator-repair-controller')
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

/** All lists are read at one moment: a Service has its address in every state that the store was ever in. */
function createIpRound(options: ServiceRepairOptions): () => Promise<void> {
  const { registry, book, serviceCidrs } = options
  const { cache, clock } = registry.services
  const tell = createTeller(options, 'ipallocator-repair-controller')
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
