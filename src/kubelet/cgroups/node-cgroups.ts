/**
 * Maintains the cgroups above the pods: the limit of all pods, the CPU shares of each QoS class, and reserved cgroups
 * if configured.
 */
import type { Pod } from '#apis/core/v1.ts'
import { type Clock, every, sleep } from '#lib/clock.ts'
import type { Logger } from '#lib/log/log.ts'
import { quantityMilliValue } from '#meta/quantity.ts'
import { podRequests, qosClassOf } from '#model/pod-resources.ts'

import { enforceableOf, type Reserved } from '../node/allocatable.ts'
import { ALLOCATABLE_ENFORCED, enforcementFailed, type EventSpec, reservedEnforced } from '../pod/events.ts'
import { cgroupOfPods, HUGE_PAGES } from '../pod/linux-resources.ts'
import type { PodFacts } from '../pod/pod-of-node.ts'
import { filesOfAmounts, filesOfShares } from './cgroup-files.ts'
import { cgroupText, type CgroupTree } from './cgroup-tree.ts'
import { NO_CGROUPS, type PodCgroups, SHARED_CLASSES } from './pod-cgroups.ts'

export interface NodeCgroups {
  /** Rejects when a reserved cgroup cannot be limited; the limit of pods is retried until it succeeds. */
  start(context: NodeCgroupsContext): Promise<void>
  /** Sets the CPU shares of the QoS classes from the pods. */
  share(pods: Iterable<Pod>): Promise<void>
}

interface NodeCgroupsContext {
  readonly pods: () => Iterable<Pod>
  /** Records an event about the node. */
  readonly recordEvent: (event: EventSpec) => void
  readonly signal: AbortSignal
}

const NO_NODE_CGROUPS: NodeCgroups = {
  start: async () => undefined,
  share: async () => undefined,
}

/** All cgroups of a kubelet. */
export interface Cgroups {
  readonly pods: PodCgroups
  readonly node: NodeCgroups
}

export const NO_CGROUPS_AT_ALL: Cgroups = { pods: NO_CGROUPS, node: NO_NODE_CGROUPS }

/** Fields of KubeletConfiguration. */
export interface Enforced {
  readonly enforceNodeAllocatable?: readonly string[]
  readonly systemReservedCgroup?: string
  readonly kubeReservedCgroup?: string
}

export interface NodeCgroupsOptions {
  readonly tree: CgroupTree
  readonly facts: Pick<PodFacts, 'cgroupDriver' | 'cgroupRoot'>
  /** Capacity of the machine, and `pid` for the maximum number of processes. */
  readonly capacity: Readonly<Record<string, string>>
  readonly reserved: Reserved
  readonly enforced: Enforced
  readonly clock: Clock
  readonly log: Logger
}

const MINUTE_MS = 60_000

export function createNodeCgroups(options: NodeCgroupsOptions): NodeCgroups {
  const { tree, facts, clock, log } = options
  const share = (pods: Iterable<Pod>): Promise<void> => clock.during(applyShares(options, pods))
  return {
    share,
    async start({ pods, recordEvent, signal }) {
      await clock.during(makeAll(tree, facts))
      await share(pods())
      const timer = every(clock, MINUTE_MS, () => {
        void share(pods()).catch((error: unknown) => log.error(error, 'Failed to update QoS cgroup configuration'))
      })
      signal.addEventListener('abort', () => timer.cancel(), { once: true })
      void limitPods(options, recordEvent, signal).catch((error: unknown) => {
        if (!signal.aborted) throw error
      })
      for (const reservedCgroup of reservedCgroups(options))
        await clock.during(limitReserved(tree, reservedCgroup, recordEvent))
    },
  }
}

/** A new pod counts before it runs. A removed one counts until the next pod, or for a minute. */
export function sharingCgroups({ pods: own, node }: Cgroups, pods: () => Iterable<Pod>, log: Logger): PodCgroups {
  return {
    ...own,
    ensure: async (pod, hasExclusiveCpus) => {
      await node
        .share(pods())
        .catch((error: unknown) => log.error(error, 'Failed to update QoS cgroups while syncing pod'))
      await own.ensure(pod, hasExclusiveCpus)
    },
  }
}

async function makeAll(tree: CgroupTree, facts: NodeCgroupsOptions['facts']): Promise<void> {
  for (const name of SHARED_CLASSES) await tree.make(cgroupOfPods([name], facts))
}

async function applyShares({ tree, facts }: NodeCgroupsOptions, pods: Iterable<Pod>): Promise<void> {
  const cpu = { burstable: `${burstableMilliCpu(pods)}m`, besteffort: '0' }
  for (const name of SHARED_CLASSES) {
    for (const file of filesOfShares({ cpu: cpu[name] }, tree.version))
      await tree.write(cgroupOfPods([name], facts), file)
  }
}

function burstableMilliCpu(pods: Iterable<Pod>): number {
  let sum = 0
  for (const { spec } of pods) {
    const pod = { spec, status: {} }
    const requested = qosClassOf(pod) === 'Burstable' ? podRequests(pod).get('cpu') : undefined
    if (requested !== undefined) sum += quantityMilliValue(requested)
  }
  return sum
}

const pageSizes = (capacity: object): string[] =>
  Object.keys(capacity).flatMap((name) => (name.startsWith(HUGE_PAGES) ? name.slice(HUGE_PAGES.length) : []))

/** Usage may exceed the new limit until pods are evicted, so it is retried. */
async function limitPods(
  options: NodeCgroupsOptions,
  recordEvent: NodeCgroupsContext['recordEvent'],
  signal: AbortSignal,
): Promise<void> {
  const { tree, facts, capacity, reserved, enforced, clock } = options
  const isEnforced = enforced.enforceNodeAllocatable?.includes('pods') ?? true
  const amounts = isEnforced ? enforceableOf(capacity, reserved) : capacity
  const top = cgroupOfPods([], facts)
  const files = filesOfAmounts(amounts, tree.version, pageSizes(capacity))
  for (;;) {
    try {
      for (const file of files) await clock.during(tree.write(top, file))
      return recordEvent(ALLOCATABLE_ENFORCED)
    } catch (error) {
      recordEvent(enforcementFailed(`update Node Allocatable Limits ${cgroupText(top)}`, error))
    }
    await sleep(clock, MINUTE_MS, signal)
  }
}

interface ReservedCgroup {
  /** `System Reserved Compressible`. */
  readonly title: string
  readonly who: 'system' | 'kube'
  readonly cgroup: string
  readonly files: ReturnType<typeof filesOfAmounts> | undefined
}

/** In upstream's order. */
const RESERVED_CGROUPS = [
  ['system-reserved', 'System Reserved', false],
  ['kube-reserved', 'Kube Reserved', false],
  ['system-reserved-compressible', 'System Reserved Compressible', true],
  ['kube-reserved-compressible', 'Kube Reserved Compressible', true],
] as const

function reservedCgroups({ tree: { version }, capacity, reserved, enforced }: NodeCgroupsOptions): ReservedCgroup[] {
  const { systemReserved, kubeReserved } = reserved
  const { systemReservedCgroup = '', kubeReservedCgroup = '' } = enforced
  return RESERVED_CGROUPS.filter(([key]) => enforced.enforceNodeAllocatable?.includes(key)).map(
    ([key, title, isOnlyShares]) => {
      const isSystem = key.startsWith('system')
      const amounts = isSystem ? systemReserved : kubeReserved
      const files =
        amounts &&
        (isOnlyShares ? filesOfShares(amounts, version) : filesOfAmounts(amounts, version, pageSizes(capacity)))
      return {
        title,
        who: isSystem ? 'system' : 'kube',
        cgroup: isSystem ? systemReservedCgroup : kubeReservedCgroup,
        files,
      }
    },
  )
}

/** Limits a reserved cgroup, which others have created. */
async function limitReserved(
  tree: CgroupTree,
  { title, who, cgroup, files }: ReservedCgroup,
  recordEvent: NodeCgroupsContext['recordEvent'],
): Promise<void> {
  try {
    if (files === undefined) throw new Error(`${cgroupText(cgroup)} cgroup is not configured properly`)
    await tree.expect(cgroup)
    for (const file of files) await tree.write(cgroup, file)
  } catch (cause) {
    const event = enforcementFailed(`enforce ${title} Cgroup Limits on "${cgroup}"`, cause)
    recordEvent(event)
    throw new Error(event.message, { cause })
  }
  recordEvent(reservedEnforced(who, cgroup))
}
