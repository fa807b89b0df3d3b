/** Computes the status of a pod from the records of its containers. Pure. */
import type {
  Container,
  ContainerState,
  ContainerStateTerminated,
  ContainerStatus,
  Pod,
  PodCondition,
  PodSpec,
  PodStatus,
  ResourceRequirements,
  VolumeMountStatus,
} from '#apis/core/v1.ts'
import { compareText } from '#lib/go/text.ts'
import { quantityText } from '#meta/quantity.ts'
import { timeOf } from '#meta/time.ts'
import { type Amounts, podLimits, podRequests } from '#model/pod-resources.ts'
import { allMayRestart, isTerminalPhase } from '#model/pods.ts'

import { type ContainerRecord, isRunning, type Run, type RunEnd } from './container-runs.ts'
import { conditionsFor, conditionsOfOthers } from './pod-conditions.ts'
import { type Phase, phaseOf } from './pod-phase.ts'

export interface PodView {
  readonly records: readonly ContainerRecord[]
  /** The sandbox exists, so containers can start. */
  readonly hasSandbox: boolean
  /** No container is restarted: the pod is deleted or has failed as a whole. */
  readonly isEnding: boolean
  readonly hostIps: readonly string[]
  /** Empty until the pod has a network. */
  readonly podIps: readonly string[]
  readonly startTime: string
  /** Why the pod failed as a whole, whatever its containers' states. */
  readonly verdict?: { readonly reason: string; readonly message: string } | undefined
  /** Extra conditions, which come first. */
  readonly conditions?: readonly PodCondition[]
  /** All containers are being restarted in place; undefined if the node does not support it. */
  readonly isRestartingAll?: boolean
}

/** `before` is the current status. Conditions of other writers and transition times are kept. */
export function podStatusOf(
  pod: Pick<Pod, 'metadata' | 'spec'>,
  before: PodStatus,
  view: PodView,
  nowMs: number,
): PodStatus {
  const { spec, metadata } = pod
  const statuses = new Map(view.records.map((record) => [record.spec.name, containerStatusOf(record, spec)]))
  if (isOver(view)) for (const record of lostOf(spec, view.records)) markLost(record, statuses)
  const phase = decidePhase(spec, before, view, statuses)
  const of = (roles: readonly string[]): ContainerStatus[] =>
    view.records
      .filter(({ role }) => roles.includes(role))
      .map(({ spec: { name } }) => statuses.get(name) as ContainerStatus)
  const inits = of(['init', 'sidecar'])
  const ephemeral = of(['ephemeral']).sort(byName)
  const conditions = conditionsFor({
    spec,
    generation: metadata.generation,
    phase,
    statuses,
    hasSandbox: view.hasSandbox,
    before: before.conditions ?? [],
    first: view.conditions ?? [],
    isRestartingAll: allMayRestart(spec) ? view.isRestartingAll : undefined,
    nowMs,
  })
  return {
    ...(metadata.generation !== undefined && { observedGeneration: metadata.generation }),
    phase,
    conditions,
    ...(view.verdict ?? (phase === before.phase ? reasonOf(before) : {})),
    ...addressesOf(view, spec),
    startTime: view.startTime,
    ...(inits.length > 0 && { initContainerStatuses: inits }),
    containerStatuses: of(['main']).sort(byName),
    ...(ephemeral.length > 0 && { ephemeralContainerStatuses: ephemeral }),
    ...podAmounts(spec, view.records),
  }
}

/** The status of a pod that admission rejected. Like upstream's kubelet, it has none of the kubelet's conditions. */
export function rejectedStatusOf(
  { metadata: { generation } }: Pick<Pod, 'metadata'>,
  before: PodStatus,
  { startTime, verdict }: Pick<PodView, 'startTime' | 'verdict'>,
): PodStatus {
  return {
    ...before,
    ...(generation !== undefined && { observedGeneration: generation }),
    phase: 'Failed',
    conditions: conditionsOfOthers(before.conditions),
    ...verdict,
    startTime,
  }
}

const byName = (a: ContainerStatus, b: ContainerStatus): number => compareText(a.name, b.name)

function decidePhase(
  spec: PodSpec,
  before: PodStatus,
  view: PodView,
  statuses: ReadonlyMap<string, ContainerStatus>,
): Phase {
  // A terminal phase never changes.
  if (isTerminalPhase(before.phase)) return before.phase as Phase
  const { records, isEnding, verdict } = view
  if (verdict !== undefined) return 'Failed'
  const wasInitialized = records.some(({ role, run }) => role === 'main' && run !== undefined)
  const phase = phaseOf({ spec, statuses, isEnding, wasInitialized })
  return isOver(view) && !isTerminalPhase(phase) ? 'Failed' : phase
}

/** The pod is ending and no container runs. */
function isOver({ isEnding, records }: PodView): boolean {
  return isEnding && !records.some(isRunning)
}

/** Containers that count as failed when the pod is over: all but those whose turn had not come. */
function lostOf({ initContainers = [] }: PodSpec, records: readonly ContainerRecord[]): ContainerRecord[] {
  const inits = records.filter(({ role }) => role === 'init' || role === 'sidecar')
  const mains = records.filter(({ role }) => role === 'main')
  const hasBegun = ({ run }: ContainerRecord): boolean => run !== undefined
  const isInitialized = initContainers.length === 0 || mains.some(hasBegun) || inits.at(-1)?.run?.end?.exitCode === 0
  return [...inits.slice(0, Math.max(1, inits.findLastIndex(hasBegun) + 1)), ...(isInitialized ? mains : [])]
}

const LOST: ContainerState = {
  terminated: {
    exitCode: 137,
    finishedAt: null,
    message: 'The container could not be located when the pod was terminated',
    reason: 'ContainerStatusUnknown',
    startedAt: null,
  },
}

/** The container no longer waits for a restart. */
function markLost({ spec: { name }, run, lastRun }: ContainerRecord, statuses: Map<string, ContainerStatus>): void {
  const status = statuses.get(name)
  if (status === undefined) return
  statuses.set(name, { ...status, state: run === undefined ? LOST : ended(run), lastState: ended(lastRun) })
}

function reasonOf({ reason, message }: PodStatus): Pick<PodStatus, 'reason' | 'message'> {
  return { ...(reason !== undefined && { reason }), ...(message !== undefined && { message }) }
}

function addressesOf({ hostIps, podIps }: PodView, { hostNetwork }: PodSpec): Partial<PodStatus> {
  const own = hostNetwork === true ? hostIps : podIps
  const [hostIP, podIP] = [hostIps[0], own[0]]
  return {
    ...(hostIP !== undefined && { hostIP, hostIPs: hostIps.map((ip) => ({ ip })) }),
    ...(podIP !== undefined && { podIP, podIPs: own.map((ip) => ({ ip })) }),
  }
}

/** Allocated resources and actual resources, summed over containers. */
function podAmounts(
  spec: PodSpec,
  records: readonly ContainerRecord[],
): Pick<PodStatus, 'allocatedResources' | 'resources'> {
  const granted = listOf(podRequests({ spec, status: {} }))
  const pod = { spec: withActual(spec, records), status: {} }
  const requests = listOf(podRequests(pod))
  const limits = listOf(podLimits(pod))
  if (granted === undefined && requests === undefined && limits === undefined) return {}
  const resources: ResourceRequirements = { ...(limits && { limits }), ...(requests && { requests }) }
  return { ...(granted && { allocatedResources: granted }), resources }
}

function withActual(spec: PodSpec, records: readonly ContainerRecord[]): PodSpec {
  const known = new Map(records.map(({ spec: { name }, actual }) => [name, actual]))
  if (![...known.values()].some((actual) => actual !== undefined)) return spec
  const actual = (container: Container): Container => ({
    ...container,
    resources: known.get(container.name) ?? container.resources,
  })
  const { initContainers, containers } = spec
  return {
    ...spec,
    ...(initContainers !== undefined && { initContainers: initContainers.map(actual) }),
    containers: containers.map(actual),
  }
}

function listOf(amounts: Amounts): Record<string, string> | undefined {
  if (amounts.size === 0) return undefined
  return Object.fromEntries(Array.from(amounts, ([name, amount]) => [name, quantityText(amount)]))
}

export function containerStatusOf(record: ContainerRecord, spec: PodSpec): ContainerStatus {
  const { role, run, restartCount } = record
  const { name, image = '' } = record.spec
  return {
    image,
    imageID: '',
    ...statesOf(record, spec),
    name,
    ready: isReady(record),
    restartCount,
    ...(role !== 'ephemeral' && { started: run !== undefined && run.end === undefined && record.isStarted }),
    ...mountsOf(record),
    ...(run !== undefined && existingOf(record, run, spec)),
  }
}

/** Fields that only a started container has. */
function existingOf(record: ContainerRecord, { id }: Run, spec: PodSpec): Partial<ContainerStatus> {
  const { resources, image = '' } = record.spec
  const { requests } = resources
  return {
    ...(requests !== undefined && { allocatedResources: requests }),
    ...(id !== '' && { containerID: id }),
    image: record.image ?? image,
    imageID: record.imageId,
    resources: record.actual ?? resources,
    ...(record.user !== null && { user: record.user ?? userOf(record, spec) }),
  }
}

function isReady({ role, run, isReady: ready }: ContainerRecord): boolean {
  if (role === 'init') return run?.end?.exitCode === 0
  return role !== 'ephemeral' && run !== undefined && run.end === undefined && ready
}

function statesOf(record: ContainerRecord, spec: PodSpec): Pick<ContainerStatus, 'state' | 'lastState'> {
  const { run, lastRun, waiting } = record
  if (run === undefined)
    return { state: { waiting: waiting ?? defaultWaiting(record, spec) }, lastState: ended(lastRun) }
  if (run.end === undefined)
    return { state: { running: { startedAt: timeOf(run.startedMs) } }, lastState: ended(lastRun) }
  // A container that waits for a restart has `waiting` as its state and its end as the last state.
  if (waiting !== undefined) return { state: { waiting }, lastState: ended(run) }
  return { state: ended(run), lastState: ended(lastRun) }
}

function defaultWaiting({ role }: ContainerRecord, spec: PodSpec): { reason: string } {
  const isInitializing = role !== 'ephemeral' && (spec.initContainers ?? []).length > 0
  return { reason: isInitializing ? 'PodInitializing' : 'ContainerCreating' }
}

function ended(run: Run | undefined): ContainerState {
  return run?.end === undefined ? {} : { terminated: terminatedOf(run, run.end) }
}

function terminatedOf(run: Run, { exitCode, reason, message, finishedMs }: RunEnd): ContainerStateTerminated {
  // Nothing else is known of a container that was never observed.
  if (run.id === '') {
    return { exitCode, finishedAt: null, ...(message !== undefined && { message }), reason, startedAt: null }
  }
  return {
    containerID: run.id,
    exitCode,
    finishedAt: timeOf(finishedMs),
    ...(message !== undefined && { message }),
    reason,
    startedAt: timeOf(run.startedMs),
  }
}

function userOf(
  { spec: container }: ContainerRecord,
  { securityContext: pod }: PodSpec,
): NonNullable<ContainerStatus['user']> {
  const { securityContext: own } = container
  const uid = own?.runAsUser ?? pod?.runAsUser ?? 0
  const gid = own?.runAsGroup ?? pod?.runAsGroup ?? 0
  const groups = [gid, ...(pod?.fsGroup === undefined ? [] : [pod.fsGroup]), ...(pod?.supplementalGroups ?? [])]
  return { linux: { gid, supplementalGroups: [...new Set(groups)], uid } }
}

function mountsOf({ spec }: ContainerRecord): Pick<ContainerStatus, 'volumeMounts'> {
  const mounts = (spec.volumeMounts ?? []).map(
    ({ mountPath, name, readOnly, recursiveReadOnly }): VolumeMountStatus => ({
      mountPath,
      name,
      ...(readOnly === true && {
        readOnly,
        recursiveReadOnly: recursiveReadOnly === 'Enabled' ? 'Enabled' : 'Disabled',
      }),
    }),
  )
  return mounts.length > 0 ? { volumeMounts: mounts } : {}
}
