/** Reads the settings of the CPU, memory and topology managers from KubeletConfiguration. Pure. */
import { durationMs } from '#lib/go/duration.ts'
import { parseQuantity, quantityMilliValue } from '#meta/quantity.ts'

import type { KubeletConfiguration } from '../configuration/configuration.ts'
import { parseCpuSet } from '../configuration/cpu-set.ts'
import type { Reserved } from '../node/allocatable.ts'
import { pickCpus } from './cpu-picking.ts'
import type { Cpu } from './cpu-topology.ts'
import type { TopologyPolicy } from './hints.ts'
import type { MemoryReservations } from './memory-reservations.ts'

export interface TopologySettings {
  readonly cpuPolicy: 'none' | 'static'
  readonly isFullCoresOnly: boolean
  readonly isStrict: boolean
  /** Reserved CPUs by number; if empty, as many as are reserved. */
  readonly reservedCpus: ReadonlySet<number>
  /** CPU quotas also apply to containers with exclusive CPUs. */
  readonly keepsCpuQuota: boolean
  /** `None` or `Static`; other values are rejected at start. */
  readonly memoryPolicy: string
  readonly reservedMemory: MemoryReservations
  readonly topologyPolicy: TopologyPolicy
  readonly scope: 'container' | 'pod'
  readonly reconcileMs: number
}

export const NO_TOPOLOGY: TopologySettings = {
  cpuPolicy: 'none',
  isFullCoresOnly: false,
  isStrict: false,
  reservedCpus: new Set(),
  keepsCpuQuota: false,
  memoryPolicy: 'None',
  reservedMemory: [],
  topologyPolicy: 'none',
  scope: 'container',
  reconcileMs: 10_000,
}

type Fields = Pick<
  KubeletConfiguration,
  | 'cpuManagerPolicy'
  | 'cpuManagerPolicyOptions'
  | 'cpuManagerReconcilePeriod'
  | 'memoryManagerPolicy'
  | 'reservedMemory'
  | 'reservedSystemCPUs'
  | 'topologyManagerPolicy'
  | 'topologyManagerScope'
>

export function topologySettings(configuration: Fields, isEnabled: (gate: string) => boolean): TopologySettings {
  const { cpuManagerPolicyOptions: options = {}, reservedSystemCPUs = '' } = configuration
  const reserved = parseCpuSet(reservedSystemCPUs)
  return {
    cpuPolicy: configuration.cpuManagerPolicy === 'static' ? 'static' : 'none',
    isFullCoresOnly: options['full-pcpus-only'] === 'true',
    isStrict: options['strict-cpu-reservation'] === 'true',
    reservedCpus: typeof reserved === 'string' ? new Set() : reserved,
    keepsCpuQuota: !isEnabled('DisableCPUQuotaWithExclusiveCPUs'),
    memoryPolicy: configuration.memoryManagerPolicy,
    reservedMemory: configuration.reservedMemory ?? [],
    topologyPolicy: configuration.topologyManagerPolicy as TopologyPolicy,
    scope: configuration.topologyManagerScope === 'pod' ? 'pod' : 'container',
    reconcileMs: durationMs(configuration.cpuManagerReconcilePeriod),
  }
}

/** Throws when no CPU is reserved for the system. */
export function reservedCpus(
  { cpuPolicy, reservedCpus: named }: TopologySettings,
  cpus: readonly Cpu[],
  { systemReserved = {}, kubeReserved = {} }: Reserved,
): ReadonlySet<number> {
  if (cpuPolicy === 'none') return new Set()
  if (named.size > 0) return named
  const amounts = [systemReserved['cpu'], kubeReserved['cpu']].filter((text) => text !== undefined)
  const milli = amounts.reduce((sum, text) => sum + quantityMilliValue(parseQuantity(text)), 0)
  if (milli === 0) {
    const why = 'the static policy requires systemreserved.cpu + kubereserved.cpu to be greater than zero'
    throw new Error(`[cpumanager] unable to determine reserved CPU resources for static policy: ${why}`)
  }
  return pickCpus(cpus, new Set(cpus.map(({ id }) => id)), Math.ceil(milli / 1000))
}
