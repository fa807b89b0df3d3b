/** Converts requests and limits to Linux resource settings of pods and containers. Pure. */
import type { Container, EphemeralContainer, Pod } from '#apis/core/v1.ts'
import type { LinuxContainerResources } from '#apis/wire/cri.ts'
import type { Input } from '#lib/protobuf/message.ts'
import { parseQuantity, type Quantity, quantityMilliValue, quantityValue } from '#meta/quantity.ts'
import { type Amounts, amountsOf, podLimits, podRequests, qosClassOf } from '#model/pod-resources.ts'
import type { ResourceList } from '#model/resource-lists.ts'

import type { PodFacts } from './pod-of-node.ts'

/** Default CFS period. */
export const PERIOD_US = 100_000
const MIN_QUOTA_US = 1000
const MIN_SHARES = 2
const MAX_SHARES = 262_144
/** Pods with this priority or higher are critical to the node. */
const NODE_CRITICAL_PRIORITY = 2_000_001_000

export function cpuShares(milliCpu: number): number {
  if (milliCpu === 0) return MIN_SHARES
  return Math.min(Math.max(Math.trunc((milliCpu * 1024) / 1000), MIN_SHARES), MAX_SHARES)
}

/** 0 means no limit. */
export function cpuQuota(milliCpu: number, periodUs: number = PERIOD_US): number {
  return milliCpu === 0 ? 0 : Math.max(Math.trunc((milliCpu * periodUs) / 1000), MIN_QUOTA_US)
}

export interface Enforcement extends Pick<PodFacts, 'cfsPeriodUs' | 'killsContainersWhole'> {
  /** It has exclusive CPUs, so no CPU quota applies. */
  readonly hasExclusiveCpus?: boolean
}

/** The kernel's value for no quota. */
const NO_QUOTA = -1

/** Without a CPU request, the limit is the request. */
function resourcesOf(
  requests: Amounts,
  limits: Amounts,
  { cfsPeriodUs: periodUs = PERIOD_US, hasExclusiveCpus = false, killsContainersWhole = false }: Enforcement,
): Input<LinuxContainerResources> {
  const limit = milli(limits.get('cpu'))
  const requested = requests.has('cpu') ? milli(requests.get('cpu')) : limit
  const memory = limits.get('memory')
  return {
    ...(periodUs > 0 && { cpuPeriod: periodUs, cpuQuota: hasExclusiveCpus ? NO_QUOTA : cpuQuota(limit, periodUs) }),
    cpuShares: cpuShares(requested),
    memoryLimitInBytes: memory === undefined ? 0 : quantityValue(memory),
    ...(killsContainersWhole && { unified: new Map([['memory.oom.group', '1']]) }),
  }
}

const milli = (quantity: Quantity | undefined): number => (quantity === undefined ? 0 : quantityMilliValue(quantity))

/** Resources summed over the pod, for runtimes that size the sandbox. */
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
  const requested = new Set(hugePages.map(({ pageSize }) => pageSize))
  const none = PAGE_SIZES.filter((pageSize) => !requested.has(pageSize)).map((pageSize) => ({ pageSize, limit: 0 }))
  return {
    ...own,
    oomScoreAdj: oomScoreAdj(pod, container, facts.memoryBytes),
    // Containers do not swap: the limit of memory plus swap equals the memory limit. Without a memory limit, only
    // cgroup v2 can forbid swap.
    memorySwapLimitInBytes: own.memoryLimitInBytes,
    ...(facts.forbidsSwap === true && { unified: new Map([...(own.unified ?? []), ['memory.swap.max', '0']]) }),
    hugepageLimits: [...none, ...hugePages],
  }
}

/** Pod-level limits apply to containers without a limit. */
function withPodLevel(limits: ResourceList | undefined, { spec }: Pick<Pod, 'spec'>): ResourceList | undefined {
  const { cpu, memory } = spec.resources?.limits ?? {}
  if (cpu === undefined && memory === undefined) return limits
  return { ...(cpu !== undefined && { cpu }), ...(memory !== undefined && { memory }), ...limits }
}

export const HUGE_PAGES = 'hugepages-'
const PAGE_SIZES = ['2MB', '1GB']

/** The kernel's spelling of a page size: `2Mi` becomes `2MB`. */
export const pageSizeText = (size: string): string => size.replace('i', 'B')

/** OOM score adjustment, from -997 to 1000. Higher scores are killed first. */
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
  const requested = memory === undefined ? 0 : quantityValue(parseQuantity(memory))
  return Math.min(Math.max(1000 - Math.trunc((1000 * requested) / memoryBytes), 3), 999)
}

/** The cgroup parent of a pod in the form that the runtime expects. */
export function cgroupParent(pod: Pod, facts: CgroupNaming): string {
  const qos = qosClassOf(pod).toLowerCase()
  return cgroupOfPods([...(qos === 'guaranteed' ? [] : [qos]), `pod${pod.metadata.uid ?? ''}`], facts)
}

type CgroupNaming = Pick<PodFacts, 'cgroupDriver' | 'cgroupRoot'>

/** The cgroup of all pods, or a path below it, in the driver's naming. */
export function cgroupOfPods(below: readonly string[], { cgroupDriver, cgroupRoot = '' }: CgroupNaming): string {
  const parts = [...cgroupRoot.split('/').filter((part) => part !== ''), 'kubepods', ...below]
  if (cgroupDriver === 'cgroupfs') return `/${parts.join('/')}`
  const escaped = parts.map((part) => part.replaceAll('-', '_'))
  return `/${escaped.map((_, at) => `${escaped.slice(0, at + 1).join('-')}.slice`).join('/')}`
}

/** The cgroup of a container or sandbox below its pod's, as containerd creates it. */
export function containerCgroup(parent: string, id: string, { cgroupDriver }: Pick<PodFacts, 'cgroupDriver'>): string {
  return `${parent}/${cgroupDriver === 'systemd' ? `cri-containerd-${id}.scope` : id}`
}
