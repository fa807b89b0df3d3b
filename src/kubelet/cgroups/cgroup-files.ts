/** Computes the cgroup settings of a pod, a QoS class or a reserved part of the node. Pure. */
import type { Pod } from '#apis/core/v1.ts'
import { parseQuantity, quantityMilliValue, quantityValue } from '#meta/quantity.ts'
import { podLimits, podRequests, qosClassOf } from '#model/pod-resources.ts'

import { cpuQuota, cpuShares, type Enforcement, HUGE_PAGES, pageSizeText, PERIOD_US } from '../pod/linux-resources.ts'
import type { PodFacts } from '../pod/pod-of-node.ts'

export interface CgroupFile {
  /** The controller, which has its own hierarchy in version 1. */
  readonly controller: 'cpu' | 'memory' | 'pids' | 'hugetlb'
  readonly name: string
  readonly value: string
  /** The corresponding systemd properties. */
  readonly properties: readonly SliceProperty[]
}

export type SliceProperty = readonly [name: string, value: bigint]

const MIN_SHARES = 2
const MAX_SHARES = 262_144

/**
 * Converts shares to weights so that minimum, default and maximum match: 2, 1024 and 262144 become 1, 100 and 10000.
 */
export function cpuWeight(shares: number): number {
  if (shares <= MIN_SHARES) return 1
  if (shares >= MAX_SHARES) return 10_000
  const bits = Math.log2(shares)
  return Math.ceil(10 ** ((bits * bits + 125 * bits) / 612 - 7 / 34))
}

/** systemd's value for no limit. */
const NO_LIMIT = 2n ** 64n - 1n
/** systemd rounds CPU quotas up to this step. */
const QUOTA_STEP_US = 10_000

function quotaProperties(quota: number | undefined, periodUs: number): SliceProperty[] {
  const perSecondUs = quota === undefined ? undefined : (quota * 1_000_000) / periodUs
  const steps = perSecondUs === undefined ? undefined : Math.ceil(perSecondUs / QUOTA_STEP_US)
  return [
    ['CPUQuotaPerSecUSec', steps === undefined ? NO_LIMIT : BigInt(steps * QUOTA_STEP_US)],
    ['CPUQuotaPeriodUSec', BigInt(periodUs)],
  ]
}

/** CPU shares, which are relative weights. */
function fileOfShares(shares: number, version: 1 | 2): CgroupFile {
  const [name, value, property] =
    version === 1
      ? (['cpu.shares', shares, 'CPUShares'] as const)
      : (['cpu.weight', cpuWeight(shares), 'CPUWeight'] as const)
  return { controller: 'cpu', name, value: String(value), properties: [[property, BigInt(value)]] }
}

/** Undefined means no limit. */
function fileOfMemory(bytes: number | undefined, version: 1 | 2): CgroupFile {
  const [name, none, property] =
    version === 1
      ? (['memory.limit_in_bytes', '-1', 'MemoryLimit'] as const)
      : (['memory.max', 'max', 'MemoryMax'] as const)
  const limit = bytes === undefined ? NO_LIMIT : BigInt(bytes)
  return { controller: 'memory', name, value: String(bytes ?? none), properties: [[property, limit]] }
}

function fileOfProcesses(most: number): CgroupFile {
  return { controller: 'pids', name: 'pids.max', value: String(most), properties: [['TasksMax', BigInt(most)]] }
}

type CgroupFacts = Pick<PodFacts, 'pidsLimit'> & Enforcement

export function filesOf(pod: Pick<Pod, 'spec' | 'status'>, version: 1 | 2, facts: CgroupFacts = {}): CgroupFile[] {
  const { pidsLimit } = facts
  const granted = grantedTo(pod, facts)
  const files = [
    fileOfShares(granted.shares, version),
    ...quotaFiles(granted, version),
    fileOfMemory(granted.bytes, version),
  ]
  return pidsLimit === undefined ? files : [...files, fileOfProcesses(pidsLimit)]
}

/** A pod has a limit only if all its containers have one, or the pod itself. */
function grantedTo(
  { spec }: Pick<Pod, 'spec'>,
  { cfsPeriodUs = PERIOD_US, hasExclusiveCpus = false }: Enforcement,
): Granted {
  const of = { spec, status: {} }
  const [requests, limits] = [podRequests(of), podLimits(of)]
  const all = [...(spec.initContainers ?? []), ...spec.containers]
  const isBound = (name: string): boolean =>
    spec.resources?.limits?.[name] !== undefined || all.every(({ resources }) => resources.limits?.[name] !== undefined)
  const [cpu, memory] = [limits.get('cpu'), limits.get('memory')]
  const requested = requests.get('cpu') ?? cpu
  const isBestEffort = qosClassOf(of) === 'BestEffort'
  const isEnforced = cpu !== undefined && isBound('cpu') && cfsPeriodUs > 0 && !hasExclusiveCpus
  return {
    shares: isBestEffort || requested === undefined ? 2 : cpuShares(quantityMilliValue(requested)),
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

function quotaFiles({ quota, periodUs }: Granted, version: 1 | 2): CgroupFile[] {
  const properties = quotaProperties(quota, periodUs)
  if (version === 2) return [{ controller: 'cpu', name: 'cpu.max', value: `${quota ?? 'max'} ${periodUs}`, properties }]
  return [
    { controller: 'cpu', name: 'cpu.cfs_period_us', value: String(periodUs), properties: [] },
    { controller: 'cpu', name: 'cpu.cfs_quota_us', value: String(quota ?? -1), properties },
  ]
}

/** `amounts` is by resource name; missing ones get no setting. `sizes` are the huge page sizes of the machine. */
export function filesOfAmounts(amounts: ResourceTexts, version: 1 | 2, sizes: readonly string[]): CgroupFile[] {
  const { memory, pid } = amounts
  const value = (text: string): number => quantityValue(parseQuantity(text))
  const most = version === 1 ? 'limit_in_bytes' : 'max'
  return [
    ...(memory === undefined ? [] : [fileOfMemory(value(memory), version)]),
    ...filesOfShares(amounts, version),
    ...(pid === undefined ? [] : [fileOfProcesses(value(pid))]),
    ...sizes.map((size) => {
      const name = `hugetlb.${pageSizeText(size)}.${most}`
      const bytes = value(amounts[`${HUGE_PAGES}${size}`] ?? '0')
      return { controller: 'hugetlb', name, value: String(bytes), properties: [] } as const
    }),
  ]
}

export function filesOfShares({ cpu }: ResourceTexts, version: 1 | 2): CgroupFile[] {
  return cpu === undefined ? [] : [fileOfShares(cpuShares(quantityMilliValue(parseQuantity(cpu))), version)]
}

type ResourceTexts = Readonly<Record<string, string>>

/** The limit in a file; Infinity for no limit. */
export function allowance(value: string): number {
  const [first = ''] = value.trim().split(' ')
  return first === 'max' || first === '-1' ? Infinity : Number(first)
}
