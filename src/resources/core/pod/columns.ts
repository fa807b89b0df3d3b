/** The table columns of pods, with the state of a pod in one word. */
import type { Container, ContainerStatus, Pod, PodSpec } from '#apis/core/v1.ts'
import { ageColumn, nameColumn } from '#apiserver/registry/columns.ts'
import type { Column } from '#apiserver/registry/resource.ts'
import { humanDuration } from '#meta/duration.ts'
import type { TableRowCondition } from '#meta/table.ts'
import { epochMsOf } from '#meta/time.ts'
import { isSidecar } from '#model/pod-spec/walk.ts'
import { isReady, isTerminal } from '#model/pods.ts'

export const podColumns: readonly Column<Pod>[] = [
  nameColumn,
  {
    name: 'Ready',
    value: (pod) => {
      const { ready, total } = summarize(pod)
      return `${ready}/${total}`
    },
  },
  { name: 'Status', value: (pod) => summarize(pod).reason },
  { name: 'Restarts', value: restartsText },
  ageColumn,
  { name: 'IP', wide: true, value: ({ status }) => status.podIPs?.[0]?.ip || '<none>' },
  { name: 'Node', wide: true, value: ({ spec }) => spec.nodeName || '<none>' },
  { name: 'Nominated Node', wide: true, value: ({ status }) => status.nominatedNodeName || '<none>' },
  { name: 'Readiness Gates', wide: true, value: gatesText },
]

export function podRowConditions({ status }: Pod): TableRowCondition[] {
  const row = (reason: string, message: string): TableRowCondition[] => [
    { type: 'Completed', status: 'True', reason, message },
  ]
  if (status.phase === 'Succeeded') return row('Succeeded', 'The pod has completed successfully.')
  return status.phase === 'Failed' ? row('Failed', 'The pod failed.') : []
}

function restartsText(pod: Pod, nowMs: number): string {
  const { restarts, lastRestartMs } = summarize(pod)
  if (restarts === 0 || lastRestartMs === undefined) return String(restarts)
  return `${restarts} (${humanDuration(nowMs - lastRestartMs)} ago)`
}

function gatesText({ spec, status }: Pod): string {
  const { readinessGates: gates = [] } = spec
  if (gates.length === 0) return '<none>'
  const met = gates.filter(
    ({ conditionType }) => status.conditions?.find(({ type }) => type === conditionType)?.status === 'True',
  )
  return `${met.length}/${gates.length}`
}

interface Summary {
  reason: string
  ready: number
  total: number
  restarts: number
  lastRestartMs: number | undefined
}

function summarize(pod: Pod): Summary {
  const { spec, status, metadata } = pod
  const start = startingReason(pod)
  const init = summarizeInit(spec, status.initContainerStatuses)
  const initialized = status.conditions?.find(({ type }) => type === 'Initialized')?.status === 'True'
  const summary: Summary = {
    reason: init.reason ?? start,
    ready: init.ready,
    total: (spec.containers ?? []).length + (spec.initContainers ?? []).filter(isSidecar).length,
    restarts: init.restarts,
    lastRestartMs: init.lastRestartMs,
  }
  if (init.reason === undefined || initialized) addRunning(summary, pod, init.sidecars)
  if (metadata.deletionTimestamp !== undefined) {
    if (status.reason === 'NodeLost') summary.reason = 'Unknown'
    else if (!isTerminal(pod)) summary.reason = 'Terminating'
  }
  return summary
}

function startingReason({ status }: Pod): string {
  const gated = status.conditions?.some(({ type, reason }) => type === 'PodScheduled' && reason === 'SchedulingGated')
  return gated ? 'SchedulingGated' : ((status.reason || status.phase) ?? '')
}

interface InitSummary extends Restarts {
  /** Undefined if all are done. */
  readonly reason: string | undefined
  readonly ready: number
  /** The sidecars only. */
  readonly sidecars: Restarts
}

interface Restarts {
  restarts: number
  lastRestartMs: number | undefined
}

/** The first incomplete init container determines the status. */
function summarizeInit(spec: PodSpec, statuses: readonly ContainerStatus[] = []): InitSummary {
  const { initContainers = [] } = spec
  const containers = new Map(initContainers.map((one) => [one.name, one]))
  const all: Restarts = { restarts: 0, lastRestartMs: undefined }
  const sidecars: Restarts = { restarts: 0, lastRestartMs: undefined }
  let ready = 0
  for (const [at, status] of statuses.entries()) {
    const container: Container | undefined = containers.get(status.name)
    const sidecar = container !== undefined && isSidecar(container)
    countRestarts(all, status)
    if (sidecar) countRestarts(sidecars, status)
    if (status.state.terminated?.exitCode === 0) continue
    if (sidecar && status.started === true) {
      if (status.ready) ready++
      continue
    }
    return { ...all, reason: initReason(status, at, initContainers.length), ready, sidecars }
  }
  return { ...all, reason: undefined, ready, sidecars }
}

function countRestarts(sum: Restarts, { restartCount, lastState }: ContainerStatus): void {
  sum.restarts += restartCount
  const finished = lastState.terminated?.finishedAt
  if (finished == null) return
  sum.lastRestartMs = Math.max(epochMsOf(finished), sum.lastRestartMs ?? -Infinity)
}

function initReason({ state }: ContainerStatus, at: number, total: number): string {
  if (state.terminated !== undefined) return `Init:${endReason(state.terminated)}`
  const { reason = '' } = state.waiting ?? {}
  return reason !== '' && reason !== 'PodInitializing' ? `Init:${reason}` : `Init:${at}/${total}`
}

function endReason({ reason = '', signal = 0, exitCode }: NonNullable<ContainerStatus['state']['terminated']>): string {
  if (reason !== '') return reason
  return signal === 0 ? `ExitCode:${exitCode}` : `Signal:${signal}`
}

/** The status from regular containers; the reason of the first container wins. */
function addRunning(summary: Summary, pod: Pod, sidecars: Restarts): void {
  const counted: Restarts = { ...sidecars }
  let running = false
  let failure = ''
  for (const status of (pod.status.containerStatuses ?? []).toReversed()) {
    countRestarts(counted, status)
    const { terminated } = status.state
    const reason = stateReason(status)
    if (reason !== '') summary.reason = reason
    else if (status.ready && status.state.running !== undefined) {
      running = true
      summary.ready++
    }
    if (terminated !== undefined && terminated.exitCode !== 0) failure = summary.reason
  }
  Object.assign(summary, counted)
  if (summary.reason !== 'Completed') return
  if (running && isReady(pod)) summary.reason = 'Running'
  else if (failure !== '') summary.reason = failure
  else if (running) summary.reason = 'NotReady'
}

/** The waiting or termination reason; empty while it runs. */
function stateReason({ state: { waiting, terminated } }: ContainerStatus): string {
  const { reason = '' } = waiting ?? {}
  return reason === '' && terminated !== undefined ? endReason(terminated) : reason
}
