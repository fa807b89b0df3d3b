/** `/metrics/resource`: usage of the node, its pods and containers, for autoscaling. Pure. */
import type { Measure, MeasuredNode } from '../machine/node-stats.ts'

interface ResourceFamily {
  readonly name: string
  readonly type: 'counter' | 'gauge'
  readonly help: string
  readonly of: 'container' | 'pod' | 'node'
  /** Undefined: not measured. */
  readonly value: (measure: Measure) => number | undefined
}

const seconds = ({ cpuNanoSeconds }: Measure): number => cpuNanoSeconds / 1e9
const bytes = ({ memoryBytes }: Measure): number => memoryBytes

const FAMILIES: readonly ResourceFamily[] = (['container', 'node', 'pod'] as const).flatMap((of): ResourceFamily[] => [
  {
    name: `${of}_cpu_usage_seconds_total`,
    type: 'counter',
    help: `[STABLE] CPU time of the ${of}, in seconds`,
    of,
    value: seconds,
  },
  {
    name: `${of}_memory_working_set_bytes`,
    type: 'gauge',
    help: `[STABLE] Memory of the ${of} that cannot be reclaimed easily`,
    of,
    value: bytes,
  },
  {
    name: `${of}_swap_usage_bytes`,
    type: 'gauge',
    help: `[ALPHA] Swap that the ${of} uses; not on Windows`,
    of,
    value: ({ swap }) => swap?.usageBytes,
  },
])
const START_TIME: ResourceFamily = {
  name: 'container_start_time_seconds',
  type: 'gauge',
  help: '[STABLE] Time of the start of the container, in seconds since 1970',
  of: 'container',
  value: ({ startedMs }) => startedMs / 1000,
}

/** In Prometheus' text format with timestamps. */
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
  const help = '[STABLE] 1 if the usage of containers could not be read, 0 otherwise'
  lines.push(`# HELP resource_scrape_error ${help}`, '# TYPE resource_scrape_error gauge', 'resource_scrape_error 0')
  return `${lines.join('\n')}\n`
}

function rowsOf(
  of: ResourceFamily['of'],
  { all, pods }: MeasuredNode,
): (readonly [labels: string, measure: Measure])[] {
  if (of === 'node') return [['', all]]
  return pods.flatMap(({ pod: { metadata }, containers, all: sum }) => {
    const labels = `namespace="${metadata.namespace}",pod="${metadata.name}"`
    if (of === 'pod') return [[`{${labels}}`, sum] as const]
    return containers.map((own) => [`{container="${own.name}",${labels}}`, own] as const)
  })
}
