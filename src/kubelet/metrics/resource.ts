/** `/metrics/resource`: what a node, its pods and their containers use, for those who scale by it. Pure. */
import type { Measure, MeasuredNode } from '../node-stats.ts'

interface Family {
  readonly name: string
  readonly type: 'counter' | 'gauge'
  readonly help: string
  readonly of: 'container' | 'pod' | 'node'
  /** Undefined: nobody counts it. */
  readonly value: (measure: Measure) => number | undefined
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
  {
    name: `${of}_swap_usage_bytes`,
    type: 'gauge',
    help: `[ALPHA] Current amount of the ${of} swap usage in bytes. Reported only on non-windows systems`,
    of,
    value: ({ swap }) => swap?.usageBytes,
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
    const samples = rowsOf(family.of, node).flatMap(([labels, measure]) => {
      const value = family.value(measure)
      return value === undefined ? [] : [`${family.name}${labels} ${value} ${Math.trunc(nowMs)}`]
    })
    if (samples.length === 0) continue
    lines.push(`# HELP ${family.name} ${family.help}`, `# TYPE ${family.name} ${family.type}`, ...samples)
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
