/** What a pod, a class of pods or a part of the node is granted as a whole, as the files of its cgroup say it. Pure. */
import type { Pod } from '#apis/core/v1.ts'
import { parseQuantity, quantityMilliValue, quantityValue } from '#meta/quantity.ts'
import { podLimits, podRequests, qosClassOf } from '#model/pod-resources.ts'

import { cpuQuota, cpuShares, type Enforcement, HUGE_PAGES, pageSizeText, PERIOD_US } from '../pods/linux-resources.ts'
import type { PodFacts } from '../pods/pod-of-node.ts'

export interface CgroupFile {
  /** Of version 1, where each has a hierarchy of its own. */
  readonly controller: 'cpu' | 'memory' | 'pids' | 'hugetlb'
  readonly name: string
  readonly value: string
}

/** From shares to weights, as runtimes do it: 2 to 262144 becomes 1 to 10000. */
export const cpuWeight = (shares: number): number => 1 + Math.trunc(((shares - 2) * 9999) / 262_142)

type CgroupFacts = Pick<PodFacts, 'pidsLimit'> & Enforcement

export function filesOf(pod: Pick<Pod, 'spec' | 'status'>, version: 1 | 2, facts: CgroupFacts = {}): CgroupFile[] {
  const { pidsLimit } = facts
  const granted = grantedTo(pod, facts)
  const files = version === 1 ? filesOfOne(granted) : filesOfTwo(granted)
  return pidsLimit === undefined
    ? files
    : [...files, { controller: 'pids', name: 'pids.max', value: String(pidsLimit) }]
}

/** A pod is limited only if all its containers are, or it is as a whole. */
function grantedTo({ spec }: Pick<Pod, 'spec'>, { cfsPeriodUs = PERIOD_US, hasOwnCpus = false }: Enforcement): Granted {
  const of = { spec, status: {} }
  const [requests, limits] = [podRequests(of), podLimits(of)]
  const all = [...(spec.initContainers ?? []), ...spec.containers]
  const isBound = (name: string): boolean =>
    spec.resources?.limits?.[name] !== undefined || all.every(({ resources }) => resources.limits?.[name] !== undefined)
  const [cpu, memory] = [limits.get('cpu'), limits.get('memory')]
  const asked = requests.get('cpu') ?? cpu
  const isBestEffort = qosClassOf(of) === 'BestEffort'
  const isEnforced = cpu !== undefined && isBound('cpu') && cfsPeriodUs > 0 && !hasOwnCpus
  return {
    shares: isBestEffort || asked === undefined ? 2 : cpuShares(quantityMilliValue(asked)),
    quota: isEnforced ? cpuQuota(quantityMilliValue(cpu), cfsPeriodUs) : undefined,
    periodUs: cfsPeriodUs || PERIOD_US,
    bytes: memory !== undefined && isBound('memory') ? quantityValue(memory) : undefined,
  }
}

interface Granted {
  readonly shares: number
  readonly quota: number | undefined
  readonly periodUs: number
  readonly bytes: number | undefined
}

function filesOfOne({ shares, quota, periodUs, bytes }: Granted): CgroupFile[] {
  return [
    { controller: 'cpu', name: 'cpu.shares', value: String(shares) },
    { controller: 'cpu', name: 'cpu.cfs_period_us', value: String(periodUs) },
    { controller: 'cpu', name: 'cpu.cfs_quota_us', value: String(quota ?? -1) },
    { controller: 'memory', name: 'memory.limit_in_bytes', value: String(bytes ?? -1) },
  ]
}

function filesOfTwo({ shares, quota, periodUs, bytes }: Granted): CgroupFile[] {
  return [
    { controller: 'cpu', name: 'cpu.weight', value: String(cpuWeight(shares)) },
    { controller: 'cpu', name: 'cpu.max', value: `${quota ?? 'max'} ${periodUs}` },
    { controller: 'memory', name: 'memory.max', value: String(bytes ?? 'max') },
  ]
}

/** By the names of resources: of what is not there, nothing is said. `sizes`: of huge pages that the machine has. */
export function filesOfAmounts(amounts: Words, version: 1 | 2, sizes: readonly string[]): CgroupFile[] {
  const { memory, pid } = amounts
  const bytes = (text: string): string => String(quantityValue(parseQuantity(text)))
  const most = version === 1 ? 'limit_in_bytes' : 'max'
  return [
    ...(memory === undefined ? [] : [{ controller: 'memory', name: `memory.${most}`, value: bytes(memory) } as const]),
    ...filesOfShares(amounts, version),
    ...(pid === undefined ? [] : [{ controller: 'pids', name: 'pids.max', value: bytes(pid) } as const]),
    ...sizes.map((size) => {
      const name = `hugetlb.${pageSizeText(size)}.${most}`
      return { controller: 'hugetlb', name, value: bytes(amounts[`${HUGE_PAGES}${size}`] ?? '0') } as const
    }),
  ]
}

/** Of processors, which nobody has to give back when another wants them. */
export function filesOfShares({ cpu }: Words, version: 1 | 2): CgroupFile[] {
  if (cpu === undefined) return []
  const shares = cpuShares(quantityMilliValue(parseQuantity(cpu)))
  return version === 1
    ? [{ controller: 'cpu', name: 'cpu.shares', value: String(shares) }]
    : [{ controller: 'cpu', name: 'cpu.weight', value: String(cpuWeight(shares)) }]
}

type Words = Readonly<Record<string, string>>

/** How much a file allows; whatever has no end is Infinity. */
export function allowance(value: string): number {
  const [first = ''] = value.trim().split(' ')
  return first === 'max' || first === '-1' ? Infinity : Number(first)
}
