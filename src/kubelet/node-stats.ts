/** What kubelets tell of the use of their node: `/stats/summary` and `/metrics/resource`. Pure. */
import type { Pod } from '#apis/core/v1.ts'
import { timeOf } from '#meta/time.ts'

/** At one moment. */
export interface Measure {
  readonly startedMs: number
  /** Now. */
  readonly cpuNanoCores: number
  /** Since the start. */
  readonly cpuNanoSeconds: number
  /** The working set. */
  readonly memoryBytes: number
}

export interface MeasuredContainer extends Measure {
  readonly name: string
}

export interface MeasuredPod {
  readonly pod: Pick<Pod, 'metadata'>
  readonly all: Measure
  readonly containers: readonly MeasuredContainer[]
}

export interface MeasuredNode {
  readonly name: string
  /** With everything that runs on it. */
  readonly all: Measure
  readonly capacityBytes: number
  readonly pods: readonly MeasuredPod[]
}

export function sumOfMeasures(parts: readonly Measure[]): Measure {
  const sum = (field: keyof Measure): number => parts.reduce((total, part) => total + part[field], 0)
  return {
    startedMs: Math.min(...parts.map(({ startedMs }) => startedMs)),
    cpuNanoCores: sum('cpuNanoCores'),
    cpuNanoSeconds: sum('cpuNanoSeconds'),
    memoryBytes: sum('memoryBytes'),
  }
}

function cpuAndMemory({ startedMs, cpuNanoCores, cpuNanoSeconds, memoryBytes }: Measure, nowMs: number): Stats {
  const time = timeOf(nowMs)
  return {
    startTime: timeOf(startedMs),
    cpu: { time, usageNanoCores: cpuNanoCores, usageCoreNanoSeconds: cpuNanoSeconds },
    memory: {
      time,
      usageBytes: memoryBytes,
      workingSetBytes: memoryBytes,
      rssBytes: memoryBytes,
      pageFaults: 0,
      majorPageFaults: 0,
    },
  }
}

interface Stats {
  readonly startTime: string
  readonly cpu: object
  readonly memory: object
}

/** As JSON. */
export function statsSummary({ name, all, capacityBytes, pods }: MeasuredNode, nowMs: number): object {
  const { memory, ...rest } = cpuAndMemory(all, nowMs)
  const availableBytes = Math.max(0, capacityBytes - all.memoryBytes)
  return {
    node: { nodeName: name, ...rest, memory: { ...memory, availableBytes } },
    pods: pods.map(({ pod: { metadata }, containers, all: sum }) => ({
      podRef: { name: metadata.name, namespace: metadata.namespace, uid: metadata.uid },
      ...cpuAndMemory(sum, nowMs),
      containers: containers.map((own) => ({ name: own.name, ...cpuAndMemory(own, nowMs) })),
    })),
  }
}

interface Family {
  readonly name: string
  readonly type: 'counter' | 'gauge'
  readonly help: string
  readonly of: 'container' | 'pod' | 'node'
  readonly value: (measure: Measure) => number
}

const seconds = ({ cpuNanoSeconds }: Measure): number => cpuNanoSeconds / 1e9
const bytes = ({ memoryBytes }: Measure): number => memoryBytes

const FAMILIES: readonly Family[] = (['container', 'node', 'pod'] as const).flatMap((of): Family[] => [
  {
    name: `${of}_cpu_usage_seconds_total`,
    type: 'counter',
    help: `[STABLE] Cumulative cpu time consumed by the ${of} in core-seconds`,
    of,
    value: seconds,
  },
  {
    name: `${of}_memory_working_set_bytes`,
    type: 'gauge',
    help: `[STABLE] Current working set of the ${of} in bytes`,
    of,
    value: bytes,
  },
])
const START_TIME: Family = {
  name: 'container_start_time_seconds',
  type: 'gauge',
  help: '[STABLE] Start time of the container since unix epoch in seconds',
  of: 'container',
  value: ({ startedMs }) => startedMs / 1000,
}

/** In Prometheus' text format, each value with its time. */
export function resourceMetrics(node: MeasuredNode, nowMs: number): string {
  const lines: string[] = []
  for (const family of [...FAMILIES, START_TIME].sort((a, b) => (a.name < b.name ? -1 : 1))) {
    lines.push(`# HELP ${family.name} ${family.help}`, `# TYPE ${family.name} ${family.type}`)
    for (const [labels, measure] of rowsOf(family.of, node))
      lines.push(`${family.name}${labels} ${family.value(measure)} ${Math.trunc(nowMs)}`)
  }
  const help = '[STABLE] 1 if there was an error while getting container metrics, 0 otherwise'
  lines.push(`# HELP resource_scrape_error ${help}`, '# TYPE resource_scrape_error gauge', 'resource_scrape_error 0')
  return `${lines.join('\n')}\n`
}

function rowsOf(of: Family['of'], { all, pods }: MeasuredNode): (readonly [labels: string, measure: Measure])[] {
  if (of === 'node') return [['', all]]
  return pods.flatMap(({ pod: { metadata }, containers, all: sum }) => {
    const labels = `namespace="${metadata.namespace}",pod="${metadata.name}"`
    if (of === 'pod') return [[`{${labels}}`, sum] as const]
    return containers.map((own) => [`{container="${own.name}",${labels}}`, own] as const)
  })
}
