/** What pods and containers ask for, in the terms of the kernel. Pure. */
import type { Container, EphemeralContainer, Pod } from '#apis/core/v1.ts'
import type { Input } from '#lib/protobuf/message.ts'
import { parseQuantity, type Quantity, quantityMilliValue, quantityValue } from '#meta/quantity.ts'
import { type Amounts, amountsOf, podLimits, podRequests, qosClassOf } from '#model/pod-resources.ts'
import type { ResourceList } from '#model/resource-lists.ts'

import type { LinuxContainerResources } from '../cri/sandbox-messages.ts'
import type { PodFacts } from './pod-of-node.ts'

/** In which a limit of processors is used up. */
export const PERIOD_US = 100_000
const MIN_QUOTA_US = 1000
const MIN_SHARES = 2
const MAX_SHARES = 262_144
/** Pods of this priority and above are the node's own. */
const NODE_CRITICAL_PRIORITY = 2_000_001_000

export function cpuShares(milliCpu: number): number {
  if (milliCpu === 0) return MIN_SHARES
  return Math.min(Math.max(Math.trunc((milliCpu * 1024) / 1000), MIN_SHARES), MAX_SHARES)
}

/** 0 for no limit. */
export function cpuQuota(milliCpu: number, periodUs: number = PERIOD_US): number {
  return milliCpu === 0 ? 0 : Math.max(Math.trunc((milliCpu * periodUs) / 1000), MIN_QUOTA_US)
}

export interface Enforcement extends Pick<PodFacts, 'cfsPeriodUs' | 'killsContainersWhole'> {
  /** It has processors of its own, and may use them up: limits do not bind it. */
  readonly hasOwnCpus?: boolean
}

/** As the kernel says that there is no limit. */
const NO_QUOTA = -1

/** Who has a limit and no request of CPU requests as much. */
function resourcesOf(
  requests: Amounts,
  limits: Amounts,
  { cfsPeriodUs: periodUs = PERIOD_US, hasOwnCpus = false, killsContainersWhole = false }: Enforcement,
): Input<LinuxContainerResources> {
  const limit = milli(limits.get('cpu'))
  const asked = requests.has('cpu') ? milli(requests.get('cpu')) : limit
  const memory = limits.get('memory')
  return {
    ...(periodUs > 0 && { cpuPeriod: periodUs, cpuQuota: hasOwnCpus ? NO_QUOTA : cpuQuota(limit, periodUs) }),
    cpuShares: cpuShares(asked),
    memoryLimitInBytes: memory === undefined ? 0 : quantityValue(memory),
    ...(killsContainersWhole && { unified: new Map([['memory.oom.group', '1']]) }),
  }
}

const milli = (quantity: Quantity | undefined): number => (quantity === undefined ? 0 : quantityMilliValue(quantity))

/** Sums of the pod: a sandbox is told so that it can make room. */
export function sandboxResources(
  pod: Pick<Pod, 'spec' | 'status'>,
  enforcement: Enforcement,
): Input<LinuxContainerResources> {
  const options = { excludeOverhead: true }
  return resourcesOf(podRequests(pod, options), podLimits(pod, options), enforcement)
}

export function overheadResources(
  { spec: { overhead } }: Pick<Pod, 'spec'>,
  enforcement: Enforcement,
): Input<LinuxContainerResources> {
  if (overhead === undefined) return {}
  const amounts = amountsOf(overhead)
  return resourcesOf(amounts, amounts, enforcement)
}

export function containerResources(
  pod: Pick<Pod, 'spec' | 'status'>,
  container: Container | EphemeralContainer,
  facts: Pick<PodFacts, 'memoryBytes'> & Partial<Pick<PodFacts, 'forbidsSwap'>> & Enforcement,
): Input<LinuxContainerResources> {
  const { requests, limits } = container.resources ?? {}
  const own = resourcesOf(amountsOf(requests), amountsOf(withPodLevel(limits, pod)), facts)
  const hugePages = Object.entries({ ...pod.spec.resources?.limits, ...limits }).flatMap(([name, amount]) =>
    name.startsWith(HUGE_PAGES)
      ? { pageSize: pageSizeText(name.slice(HUGE_PAGES.length)), limit: quantityValue(parseQuantity(amount)) }
      : [],
  )
  const asked = new Set(hugePages.map(({ pageSize }) => pageSize))
  const none = PAGE_SIZES.filter((pageSize) => !asked.has(pageSize)).map((pageSize) => ({ pageSize, limit: 0 }))
  return {
    ...own,
    oomScoreAdj: oomScoreAdj(pod, container, facts.memoryBytes),
    // Nobody swaps: the limit of both together is that of memory. Without one, only cgroups of version 2 can say so.
    memorySwapLimitInBytes: own.memoryLimitInBytes,
    ...(facts.forbidsSwap === true && { unified: new Map([...(own.unified ?? []), ['memory.swap.max', '0']]) }),
    hugepageLimits: [...none, ...hugePages],
  }
}

/** Limits of the pod bind containers that have none. */
function withPodLevel(limits: ResourceList | undefined, { spec }: Pick<Pod, 'spec'>): ResourceList | undefined {
  const { cpu, memory } = spec.resources?.limits ?? {}
  if (cpu === undefined && memory === undefined) return limits
  return { ...(cpu !== undefined && { cpu }), ...(memory !== undefined && { memory }), ...limits }
}

export const HUGE_PAGES = 'hugepages-'
const PAGE_SIZES = ['2MB', '1GB']

/** `2Mi` as the kernel spells it: `2MB`. */
export const pageSizeText = (size: string): string => size.replace('i', 'B')

/** Who is killed first when memory runs out: from -997 to 1000. */
export function oomScoreAdj(
  pod: Pick<Pod, 'spec' | 'status'>,
  container: Container | EphemeralContainer,
  memoryBytes: number,
): number {
  if ((pod.spec.priority ?? 0) >= NODE_CRITICAL_PRIORITY) return -997
  const qos = qosClassOf(pod)
  if (qos === 'Guaranteed') return -997
  if (qos === 'BestEffort') return 1000
  const { memory } = container.resources?.requests ?? {}
  const asked = memory === undefined ? 0 : quantityValue(parseQuantity(memory))
  return Math.min(Math.max(1000 - Math.trunc((1000 * asked) / memoryBytes), 3), 999)
}

/** Where the cgroups of a pod are, as the runtime wants it said. */
export function cgroupParent(pod: Pod, facts: Driver): string {
  const qos = qosClassOf(pod).toLowerCase()
  return cgroupOfPods([...(qos === 'guaranteed' ? [] : [qos]), `pod${pod.metadata.uid ?? ''}`], facts)
}

type Driver = Pick<PodFacts, 'cgroupDriver' | 'cgroupRoot'>

/** The cgroup of all pods, or what is below it, as the driver names it. */
export function cgroupOfPods(below: readonly string[], { cgroupDriver, cgroupRoot = '' }: Driver): string {
  const parts = [...cgroupRoot.split('/').filter((part) => part !== ''), 'kubepods', ...below]
  if (cgroupDriver === 'cgroupfs') return `/${parts.join('/')}`
  const escaped = parts.map((part) => part.replaceAll('-', '_'))
  return `/${escaped.map((_, at) => `${escaped.slice(0, at + 1).join('-')}.slice`).join('/')}`
}

/** The cgroup of a container or sandbox in that of its pod, as containerd makes it. */
export function containerCgroup(parent: string, id: string, { cgroupDriver }: Pick<PodFacts, 'cgroupDriver'>): string {
  return `${parent}/${cgroupDriver === 'systemd' ? `cri-containerd-${id}.scope` : id}`
}
