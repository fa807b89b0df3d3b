/** What kubelets tell of the use of their node: `/stats/summary` and `/metrics/resource`. Pure. */
import type { Pod } from '#apis/core/v1.ts'
import { timeOf } from '#meta/time.ts'

import { isRunning } from '../container-runs.ts'
import type { ContainerLife } from './container-life.ts'
import { sumOf, type Usage, usageOf } from './usage.ts'

export interface PodUse {
  readonly pod: Pod
  readonly lives: readonly ContainerLife[]
}

export interface NodeUse {
  readonly name: string
  readonly startedMs: number
  readonly memoryBytes: number
  readonly pods: Iterable<PodUse>
}

interface Used extends Usage {
  readonly name: string
  readonly startedMs: number
}

interface PodUsed {
  readonly pod: Pod
  readonly containers: readonly Used[]
  readonly all: Usage
  readonly startedMs: number
}

/** Of the node itself, besides pods. */
const OWN: Usage = { cpuNanoCores: 20_000_000, memoryBytes: 200 * 2 ** 20 }

function usedBy({ pods }: NodeUse): PodUsed[] {
  const used: PodUsed[] = []
  for (const { pod, lives } of pods) {
    const containers = lives.filter(isRunning).map((life): Used => ({
      name: life.spec.name,
      startedMs: life.run?.startedMs ?? 0,
      ...usageOf(pod, life.spec.name),
    }))
    if (containers.length === 0) continue
    const startedMs = Math.min(...containers.map((container) => container.startedMs))
    used.push({ pod, containers, all: sumOf(containers), startedMs })
  }
  return used
}

const coreNanoSeconds = ({ cpuNanoCores }: Usage, startedMs: number, nowMs: number): number =>
  Math.round((cpuNanoCores * Math.max(0, nowMs - startedMs)) / 1000)

function cpuAndMemory(usage: Usage, startedMs: number, nowMs: number): object {
  const time = timeOf(nowMs)
  return {
    startTime: timeOf(startedMs),
    cpu: {
      time,
      usageNanoCores: usage.cpuNanoCores,
      usageCoreNanoSeconds: coreNanoSeconds(usage, startedMs, nowMs),
    },
    memory: {
      time,
      usageBytes: usage.memoryBytes,
      workingSetBytes: usage.memoryBytes,
      rssBytes: usage.memoryBytes,
      pageFaults: 0,
      majorPageFaults: 0,
    },
  }
}

/** As JSON. */
export function statsSummary(node: NodeUse, nowMs: number): object {
  const used = usedBy(node)
  const all = sumOf([OWN, ...used.map((pod) => pod.all)])
  const { memory, ...rest } = cpuAndMemory(all, node.startedMs, nowMs) as { memory: object }
  return {
    node: {
      nodeName: node.name,
      ...rest,
      memory: { ...memory, availableBytes: Math.max(0, node.memoryBytes - all.memoryBytes) },
    },
    pods: used.map(({ pod: { metadata }, containers, all: sum, startedMs }) => ({
      podRef: { name: metadata.name, namespace: metadata.namespace, uid: metadata.uid },
      ...cpuAndMemory(sum, startedMs, nowMs),
      containers: containers.map(({ name, ...own }) => ({ name, ...cpuAndMemory(own, own.startedMs, nowMs) })),
    })),
  }
}

interface Family {
  readonly name: string
  readonly type: 'counter' | 'gauge'
  readonly help: string
  readonly of: 'container' | 'pod' | 'node'
  readonly value: (usage: Usage, startedMs: number, nowMs: number) => number
}

const seconds = (usage: Usage, startedMs: number, nowMs: number): number =>
  coreNanoSeconds(usage, startedMs, nowMs) / 1e9
const bytes = ({ memoryBytes }: Usage): number => memoryBytes

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
  value: (_, startedMs) => startedMs / 1000,
}

/** In Prometheus' text format, each value with its time. */
export function resourceMetrics(node: NodeUse, nowMs: number): string {
  const used = usedBy(node)
  const lines: string[] = []
  for (const family of [...FAMILIES, START_TIME].sort((a, b) => (a.name < b.name ? -1 : 1))) {
    lines.push(`# HELP ${family.name} ${family.help}`, `# TYPE ${family.name} ${family.type}`)
    for (const { labels, usage, startedMs } of rowsOf(family.of, node, used))
      lines.push(`${family.name}${labels} ${family.value(usage, startedMs, nowMs)} ${Math.trunc(nowMs)}`)
  }
  const help = '[STABLE] 1 if there was an error while getting container metrics, 0 otherwise'
  lines.push(`# HELP resource_scrape_error ${help}`, '# TYPE resource_scrape_error gauge', 'resource_scrape_error 0')
  return `${lines.join('\n')}\n`
}

interface Row {
  readonly labels: string
  readonly usage: Usage
  readonly startedMs: number
}

function rowsOf(of: Family['of'], node: NodeUse, used: readonly PodUsed[]): Row[] {
  if (of === 'node')
    return [{ labels: '', usage: sumOf([OWN, ...used.map(({ all }) => all)]), startedMs: node.startedMs }]
  return used.flatMap(({ pod: { metadata }, containers, all, startedMs }) => {
    const labels = `namespace="${metadata.namespace}",pod="${metadata.name}"`
    if (of === 'pod') return { labels: `{${labels}}`, usage: all, startedMs }
    return containers.map((own) => ({
      labels: `{container="${own.name}",${labels}}`,
      usage: own,
      startedMs: own.startedMs,
    }))
  })
}
