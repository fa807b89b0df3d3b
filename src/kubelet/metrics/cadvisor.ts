/**
 * `/metrics/cadvisor`: what containers use, with the names and labels that dashboards look for. The runtime's figures stand behind
 * it, so what a runtime does not count is not there. Pure.
 */
import type { Pod } from '#apis/core/v1.ts'
import { formatFloat, renderLabels } from '#lib/metrics-text.ts'
import { parseQuantity, quantityMilliValue, quantityValue } from '#meta/quantity.ts'

import type { ContainerStats, PodSandboxStats, UInt64Value } from '../cri/stats-messages.ts'
import { cgroupParent, cpuQuota, cpuShares, PERIOD_US } from '../pods/linux-resources.ts'
import type { PodFacts, PodOfNode } from '../pods/pod-of-node.ts'
import { LABELS } from '../pods/sandbox-config.ts'

export interface CadvisorView {
  readonly pods: readonly PodOfNode[]
  readonly containers: readonly ContainerStats[]
  readonly sandboxes: readonly PodSandboxStats[]
  readonly facts: Pick<PodFacts, 'cgroupDriver' | 'cgroupRoot' | 'memoryBytes' | 'cfsPeriodUs'>
  readonly cpus: number
  readonly nowMs: number
}

type Labels = readonly (readonly [name: string, value: string])[]

interface Row {
  readonly labels: Labels
  readonly value: number
}

/** A container of a pod, and what the runtime says of it. */
interface Seen {
  readonly labels: Labels
  readonly stats: ContainerStats
  readonly startedMs: number | undefined
  readonly limits: Readonly<Record<string, string>>
  readonly requests: Readonly<Record<string, string>>
}

interface Family {
  readonly name: string
  readonly type: 'counter' | 'gauge'
  readonly help: string
  readonly rows: (seen: readonly Seen[], view: CadvisorView) => Row[]
}

const numberOf = (value: UInt64Value | undefined): number | undefined =>
  value === undefined ? undefined : Number(value.value)

/** One row for each container of which it is known. */
function each(read: (seen: Seen) => number | undefined, more: Labels = []): (seen: readonly Seen[]) => Row[] {
  return (all) =>
    all.flatMap((seen) => {
      const value = read(seen)
      return value === undefined ? [] : [{ labels: withMore(seen.labels, more), value }]
    })
}

const withMore = (labels: Labels, more: Labels): Labels => [...labels, ...more].toSorted(([a], [b]) => (a < b ? -1 : 1))

const amount = (text: string | undefined, read: (quantity: ReturnType<typeof parseQuantity>) => number): number =>
  text === undefined ? 0 : read(parseQuantity(text))

/** Of the interfaces of pods. */
function network(direction: 'rx' | 'tx', what: 'Bytes' | 'Errors'): Family['rows'] {
  return (_, { pods, sandboxes, facts }) =>
    pods.flatMap(({ pod, sandboxId }) => {
      const { network: used } = sandboxes.find(({ attributes }) => attributes?.id === sandboxId)?.linux ?? {}
      const all = used === undefined ? [] : [used.defaultInterface, ...used.interfaces]
      const own = labelsOf(pod, { id: cgroupParent(pod, facts), name: sandboxId ?? '' })
      return all.flatMap((each) => {
        const value = each === undefined ? undefined : numberOf(each[`${direction}${what}`])
        return each === undefined || value === undefined
          ? []
          : [{ labels: withMore(own, [['interface', each.name]]), value }]
      })
    })
}

const FAMILIES: readonly Family[] = [
  {
    name: 'container_cpu_usage_seconds_total',
    type: 'counter',
    help: 'Cumulative cpu time consumed in seconds.',
    rows: each(({ stats }) => scaled(numberOf(stats.cpu?.usageCoreNanoSeconds), 1e-9), [['cpu', 'total']]),
  },
  {
    name: 'container_fs_usage_bytes',
    type: 'gauge',
    help: 'Number of bytes that are consumed by the container on this filesystem.',
    rows: each(({ stats }) => numberOf(stats.writableLayer?.usedBytes), [['device', '']]),
  },
  {
    name: 'container_last_seen',
    type: 'gauge',
    help: 'Last time a container was seen by the exporter',
    rows: (seen, { nowMs }) => seen.map(({ labels }) => ({ labels, value: Math.trunc(nowMs / 1000) })),
  },
  {
    name: 'container_memory_rss',
    type: 'gauge',
    help: 'Size of RSS in bytes.',
    rows: each(({ stats }) => numberOf(stats.memory?.rssBytes)),
  },
  {
    name: 'container_memory_usage_bytes',
    type: 'gauge',
    help: 'Current memory usage in bytes, including all memory regardless of when it was accessed',
    rows: each(({ stats }) => numberOf(stats.memory?.usageBytes)),
  },
  {
    name: 'container_memory_working_set_bytes',
    type: 'gauge',
    help: 'Current working set in bytes.',
    rows: each(({ stats }) => numberOf(stats.memory?.workingSetBytes)),
  },
  {
    name: 'container_network_receive_bytes_total',
    type: 'counter',
    help: 'Cumulative count of bytes received',
    rows: network('rx', 'Bytes'),
  },
  {
    name: 'container_network_receive_errors_total',
    type: 'counter',
    help: 'Cumulative count of errors encountered while receiving',
    rows: network('rx', 'Errors'),
  },
  {
    name: 'container_network_transmit_bytes_total',
    type: 'counter',
    help: 'Cumulative count of bytes transmitted',
    rows: network('tx', 'Bytes'),
  },
  {
    name: 'container_network_transmit_errors_total',
    type: 'counter',
    help: 'Cumulative count of errors encountered while transmitting',
    rows: network('tx', 'Errors'),
  },
  {
    name: 'container_spec_cpu_period',
    type: 'gauge',
    help: 'CPU period of the container.',
    rows: (seen, { facts }) => each(() => facts.cfsPeriodUs ?? PERIOD_US)(seen),
  },
  {
    name: 'container_spec_cpu_quota',
    type: 'gauge',
    help: 'CPU quota of the container.',
    rows: (seen, { facts: { cfsPeriodUs } }) =>
      each(({ limits }) => cpuQuota(amount(limits['cpu'], quantityMilliValue), cfsPeriodUs) || undefined)(seen),
  },
  {
    name: 'container_spec_cpu_shares',
    type: 'gauge',
    help: 'CPU share of the container.',
    rows: each(({ limits, requests }) => cpuShares(amount(requests['cpu'] ?? limits['cpu'], quantityMilliValue))),
  },
  {
    name: 'container_spec_memory_limit_bytes',
    type: 'gauge',
    help: 'Memory limit for the container.',
    rows: each(({ limits }) => amount(limits['memory'], quantityValue)),
  },
  {
    name: 'container_start_time_seconds',
    type: 'gauge',
    help: 'Start time of the container since unix epoch in seconds.',
    rows: each(({ startedMs }) => scaled(startedMs, 1e-3)),
  },
  {
    name: 'machine_cpu_cores',
    type: 'gauge',
    help: 'Number of logical CPU cores.',
    rows: (_, { cpus }) => [{ labels: [], value: cpus }],
  },
  {
    name: 'machine_memory_bytes',
    type: 'gauge',
    help: 'Amount of memory installed on the machine.',
    rows: (_, { facts }) => [{ labels: [], value: facts.memoryBytes }],
  },
]

const scaled = (value: number | undefined, factor: number): number | undefined =>
  value === undefined ? undefined : value * factor

interface Identity {
  readonly id: string
  /** As the runtime names it. */
  readonly name: string
  readonly container?: string
  readonly image?: string
}

const labelsOf = ({ metadata }: Pod, { id, name, container = '', image = '' }: Identity): Labels => [
  ['container', container],
  ['id', id],
  ['image', image],
  ['name', name],
  ['namespace', metadata.namespace ?? ''],
  ['pod', metadata.name ?? ''],
]

const labelText = (labels: Labels): string => (labels.length === 0 ? '' : `{${renderLabels(labels)}}`)

/** In Prometheus' text format. */
export function cadvisorMetrics(view: CadvisorView): string {
  const seen = seenIn(view)
  const families = FAMILIES.map(({ name, type, help, rows }) => {
    const lines = rows(seen, view).map(({ labels, value }) => `${name}${labelText(labels)} ${formatFloat(value)}\n`)
    return lines.length === 0 ? '' : `# HELP ${name} ${help}\n# TYPE ${name} ${type}\n${lines.join('')}`
  })
  return families.join('')
}

function seenIn({ pods, containers, facts }: CadvisorView): Seen[] {
  const byUid = new Map(pods.map((view) => [view.pod.metadata.uid, view]))
  return containers.flatMap((stats): Seen[] => {
    const view = byUid.get(stats.attributes?.labels.get(LABELS.podUid) ?? '')
    return view === undefined ? [] : [seenOf(view, stats, facts)]
  })
}

function seenOf({ pod, containers }: PodOfNode, stats: ContainerStats, facts: CadvisorView['facts']): Seen {
  const container = stats.attributes?.labels.get(LABELS.containerName) ?? ''
  const name = stats.attributes?.id ?? ''
  const record = containers.get(container)?.record
  const { image = '', resources } = record?.spec ?? {}
  return {
    labels: labelsOf(pod, { id: `${cgroupParent(pod, facts)}/${name}`, name, container, image }),
    stats,
    startedMs: record?.run?.startedMs,
    limits: resources?.limits ?? {},
    requests: resources?.requests ?? {},
  }
}
