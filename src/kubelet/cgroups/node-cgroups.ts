/**
 * The cgroups above those of pods: all of them together have what is allocatable, a class of them the shares that its pods ask
 * for; and what is kept for the machine and for Kubernetes holds where it was asked for.
 */
import type { Pod } from '#apis/core/v1.ts'
import { type Clock, every, sleep } from '#lib/clock.ts'
import type { Logger } from '#lib/log.ts'
import { quantityMilliValue } from '#meta/quantity.ts'
import { podRequests, qosClassOf } from '#model/pod-resources.ts'

import { enforceableOf, type Reserved } from '../allocatable.ts'
import { ALLOCATABLE_ENFORCED, enforcementFailed, type Note, reservedEnforced } from '../kubelet-notes.ts'
import { cgroupOfPods, HUGE_PAGES } from '../pods/linux-resources.ts'
import type { PodFacts } from '../pods/pod-of-node.ts'
import { filesOfAmounts, filesOfShares } from './cgroup-files.ts'
import { type CgroupTree, cgroupText } from './cgroup-tree.ts'
import { NO_CGROUPS, type PodCgroups, SHARED_CLASSES } from './pod-cgroups.ts'

export interface NodeCgroups {
  /** Rejects when what is kept for others cannot be; the limit of pods is tried again until it holds. */
  start(around: Around): Promise<void>
  /** Classes have the shares of the pods that are there. */
  share(pods: Iterable<Pod>): Promise<void>
}

interface Around {
  readonly pods: () => Iterable<Pod>
  /** About the node. */
  readonly note: (said: Note) => void
  readonly signal: AbortSignal
}

const NO_NODE_CGROUPS: NodeCgroups = {
  start: async () => undefined,
  share: async () => undefined,
}

/** All that a kubelet makes. */
export interface Cgroups {
  readonly pods: PodCgroups
  readonly node: NodeCgroups
}

export const NO_CGROUPS_AT_ALL: Cgroups = { pods: NO_CGROUPS, node: NO_NODE_CGROUPS }

/** As a KubeletConfiguration says it. */
export interface Enforced {
  readonly enforceNodeAllocatable?: readonly string[]
  readonly systemReservedCgroup?: string
  readonly kubeReservedCgroup?: string
}

export interface NodeCgroupsOptions {
  readonly tree: CgroupTree
  readonly facts: Pick<PodFacts, 'cgroupDriver' | 'cgroupRoot'>
  /** Of the machine, with `pid`: as many processes as there can be. */
  readonly capacity: Readonly<Record<string, string>>
  readonly reserved: Reserved
  readonly enforced: Enforced
  readonly clock: Clock
  readonly log: Logger
}

const MINUTE_MS = 60_000

export function createNodeCgroups(options: NodeCgroupsOptions): NodeCgroups {
  const { tree, facts, clock, log } = options
  const share = (pods: Iterable<Pod>): Promise<void> => clock.during(shareOut(options, pods))
  return {
    share,
    async start({ pods, note, signal }) {
      await clock.during(makeAll(tree, facts))
      await share(pods())
      const timer = every(clock, MINUTE_MS, () => {
        void share(pods()).catch((error: unknown) => log.error(error, 'Failed to update QoS cgroup configuration'))
      })
      signal.addEventListener('abort', () => timer.cancel(), { once: true })
      void limitPods(options, note, signal).catch((error: unknown) => {
        if (!signal.aborted) throw error
      })
      for (const kept of keptFor(options)) await clock.during(keep(tree, kept, note))
    },
  }
}

/** A pod that comes counts before it runs. One that leaves does with the next that comes, or in a minute. */
export function sharingCgroups({ pods: own, node }: Cgroups, pods: () => Iterable<Pod>, log: Logger): PodCgroups {
  return {
    ...own,
    ensure: async (pod, hasOwnCpus) => {
      await node
        .share(pods())
        .catch((error: unknown) => log.error(error, 'Failed to update QoS cgroups while syncing pod'))
      await own.ensure(pod, hasOwnCpus)
    },
  }
}

async function makeAll(tree: CgroupTree, facts: NodeCgroupsOptions['facts']): Promise<void> {
  for (const name of SHARED_CLASSES) await tree.make(cgroupOfPods([name], facts))
}

async function shareOut({ tree, facts }: NodeCgroupsOptions, pods: Iterable<Pod>): Promise<void> {
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
    const asked = qosClassOf(pod) === 'Burstable' ? podRequests(pod).get('cpu') : undefined
    if (asked !== undefined) sum += quantityMilliValue(asked)
  }
  return sum
}

const pageSizes = (capacity: object): string[] =>
  Object.keys(capacity).flatMap((name) => (name.startsWith(HUGE_PAGES) ? name.slice(HUGE_PAGES.length) : []))

/** More may be in use now than is allowed from now on: until pods have been evicted, it is tried again. */
async function limitPods(options: NodeCgroupsOptions, note: Around['note'], signal: AbortSignal): Promise<void> {
  const { tree, facts, capacity, reserved, enforced, clock } = options
  const isEnforced = enforced.enforceNodeAllocatable?.includes('pods') ?? true
  const amounts = isEnforced ? enforceableOf(capacity, reserved) : capacity
  const top = cgroupOfPods([], facts)
  const files = filesOfAmounts(amounts, tree.version, pageSizes(capacity))
  for (;;) {
    try {
      for (const file of files) await clock.during(tree.write(top, file))
      return note(ALLOCATABLE_ENFORCED)
    } catch (error) {
      note(enforcementFailed(`update Node Allocatable Limits ${cgroupText(top)}`, error))
    }
    await sleep(clock, MINUTE_MS, signal)
  }
}

interface Kept {
  /** `System Reserved Compressible`. */
  readonly title: string
  readonly who: 'system' | 'kube'
  readonly cgroup: string
  readonly files: ReturnType<typeof filesOfAmounts> | undefined
}

/** In upstream's order. */
const KEPT = [
  ['system-reserved', 'System Reserved', false],
  ['kube-reserved', 'Kube Reserved', false],
  ['system-reserved-compressible', 'System Reserved Compressible', true],
  ['kube-reserved-compressible', 'Kube Reserved Compressible', true],
] as const

function keptFor({ tree: { version }, capacity, reserved, enforced }: NodeCgroupsOptions): Kept[] {
  const { systemReserved, kubeReserved } = reserved
  const { systemReservedCgroup = '', kubeReservedCgroup = '' } = enforced
  return KEPT.filter(([key]) => enforced.enforceNodeAllocatable?.includes(key)).map(([key, title, isOnlyShares]) => {
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
  })
}

/** Somebody else has made it. */
async function keep(tree: CgroupTree, { title, who, cgroup, files }: Kept, note: Around['note']): Promise<void> {
  try {
    if (files === undefined) throw new Error(`${cgroupText(cgroup)} cgroup is not configured properly`)
    await tree.expect(cgroup)
    for (const file of files) await tree.write(cgroup, file)
  } catch (cause) {
    const said = enforcementFailed(`enforce ${title} Cgroup Limits on "${cgroup}"`, cause)
    note(said)
    throw new Error(said.message, { cause })
  }
  note(reservedEnforced(who, cgroup))
}
