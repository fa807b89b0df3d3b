/** Metrics of Service addresses and ports. `static` allocations request a certain value, `dynamic` ones any value. */
import type { ServiceSpec } from '#apis/core/v1.ts'
import type { Clock } from '#lib/clock.ts'
import { planIpBands } from '#lib/net/cidr-allocator.ts'
import { contains, formatCidr, type Ip, parseIp } from '#lib/net/cidr.ts'
import type { ServerMeters } from '#model/metrics/families.ts'
import { requestedNodePorts } from '#model/services.ts'

import type { IpPool, ServiceRange, Terms } from './ip-pool.ts'
import type { PortLedger, PortPlan, PortRange } from './node-ports.ts'

type Ranges = () => readonly ServiceRange[]

export interface ServiceMeter {
  /** Wraps the pool and counts allocations and failures, without dry runs. */
  pool(pool: IpPool, ranges: Ranges): IpPool
  /** Counts the result of the ports in `wanted`. */
  ports(plan: PortPlan, wanted: ServiceSpec): void
}

export function createServiceMeter(meters: ServerMeters, clock: Clock): ServiceMeter {
  const taken = meters.family('kube_apiserver_clusterip_allocator_allocation_total')
  const failed = meters.family('kube_apiserver_clusterip_allocator_allocation_errors_total')
  const duration = meters.family('kube_apiserver_clusterip_allocator_allocation_duration_seconds')
  const count = async (scope: string, of: () => ServiceRange[], take: () => Promise<string>): Promise<string> => {
    const begunMs = clock.elapsed()
    try {
      const address = await take()
      const cidr = nameOf(of().find((range) => holds(range, parseIp(address))))
      taken.labels(cidr, scope).inc()
      duration.labels(cidr).observe((clock.elapsed() - begunMs) / 1000)
      return address
    } catch (error) {
      for (const range of of()) failed.labels(nameOf(range), scope).inc()
      throw error
    }
  }
  return {
    pool: (pool, ranges) => ({
      ...pool,
      take(text, service, terms: Terms) {
        const take = (): Promise<string> => pool.take(text, service, terms)
        const ip = parseIp(text, { sloppy: true })
        return terms.dryRun ? take() : count('static', () => ranges().filter((range) => holds(range, ip)), take)
      },
      takeAny(family, service, terms) {
        const take = (): Promise<string> => pool.takeAny(family, service, terms)
        const ofFamily = (): ServiceRange[] => ranges().filter(({ cidr }) => `IPv${cidr.family}` === family)
        return terms.dryRun ? take() : count('dynamic', ofFamily, take)
      },
    }),
    ports({ taken: ports, refusal }, wanted) {
      const [total, errors] = [
        meters.family('kube_apiserver_nodeport_allocator_allocation_total'),
        meters.family('kube_apiserver_nodeport_allocator_allocation_errors_total'),
      ]
      const requested = requestedNodePorts(wanted)
      for (const port of ports) total.labels(requested.has(port) ? 'static' : 'dynamic').inc()
      if (refusal !== undefined) errors.labels('field' in refusal ? 'static' : 'dynamic').inc()
    },
  }
}

function holds({ cidr, ready }: ServiceRange, ip: Ip | undefined): boolean {
  return ready && ip !== undefined && contains(cidr, ip)
}

function nameOf(range: ServiceRange | undefined): string {
  return range === undefined ? '' : formatCidr(range.cidr)
}

/** Allocated and free addresses are counted on each scrape. */
export function registerAddresses(meters: ServerMeters, ranges: Ranges, names: () => readonly string[]): void {
  const taken = (range: ServiceRange): number =>
    names().filter((name) => holds({ ...range, ready: true }, parseIp(name))).length
  meters.collect('kube_apiserver_clusterip_allocator_allocated_ips', (emit) => {
    for (const range of ranges()) emit(taken(range), nameOf(range))
  })
  meters.collect('kube_apiserver_clusterip_allocator_available_ips', (emit) => {
    for (const range of ranges()) {
      const { first, end } = planIpBands(range.cidr)
      emit(Number(end - first) - taken(range), nameOf(range))
    }
  })
}

/** Wraps the ledger and reports allocated and free ports. */
export function measureLedger(ledger: PortLedger, { first, last }: PortRange, meters: ServerMeters): PortLedger {
  const show = ({ size }: ReadonlySet<number>): void => {
    meters.family('kube_apiserver_nodeport_allocator_allocated_ports').labels().set(size)
    meters
      .family('kube_apiserver_nodeport_allocator_available_ports')
      .labels()
      .set(last - first + 1 - size)
  }
  return {
    change: (apply) =>
      ledger.change((taken) => {
        const outcome = apply(taken)
        show(taken)
        return outcome
      }),
    rebuild: (plan) =>
      ledger.rebuild(async (before, isNew) => {
        const rebuilt = await plan(before, isNew)
        show(rebuilt.taken)
        return rebuilt
      }),
  }
}
