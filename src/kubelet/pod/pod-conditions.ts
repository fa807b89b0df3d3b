/** Computes the pod conditions that the kubelet writes, with upstream's reasons and messages. Pure. */
import type { ContainerStatus, Pod, PodCondition, PodSpec } from '#apis/core/v1.ts'
import { goQuote } from '#lib/go/text.ts'
import { timeOf } from '#meta/time.ts'

import type { Phase } from './pod-phase.ts'

/** In the order in which the kubelet writes them. */
const OWN_TYPES = ['PodReadyToStartContainers', 'Initialized', 'Ready', 'ContainersReady', 'PodScheduled'] as const

/** Conditions that exist only during a resize. They come first. */
const PASSING = ['PodResizePending', 'PodResizeInProgress'] as const

/** Written only for pods with a RestartAllContainers rule. It comes last. */
const RESTARTING_ALL = 'AllContainersRestarting'

const OWN: ReadonlySet<string> = new Set([...PASSING, ...OWN_TYPES, RESTARTING_ALL])

/** The conditions that the kubelet does not write. */
export const conditionsOfOthers = (conditions: readonly PodCondition[] = []): PodCondition[] =>
  conditions.filter(({ type }) => !OWN.has(type))

/** Merges conditions of other writers from the server with the kubelet's last written ones. */
export function mergeConditions(
  theirs: readonly PodCondition[] = [],
  written: readonly PodCondition[] = [],
): PodCondition[] {
  return [...conditionsOfOthers(theirs), ...written.filter(({ type }) => OWN.has(type))]
}

/** The DisruptionTarget condition of a pod that the kubelet ends. */
export function disruptionOf({ metadata: { generation } }: Pod, message: string, nowMs: number): PodCondition {
  return {
    type: 'DisruptionTarget',
    ...(generation !== undefined && { observedGeneration: generation }),
    status: 'True',
    lastProbeTime: null,
    lastTransitionTime: timeOf(nowMs),
    reason: 'TerminationByKubelet',
    message,
  }
}

export interface ConditionInput {
  readonly spec: PodSpec
  readonly generation: number | undefined
  readonly phase: Phase
  /** Includes init containers. */
  readonly statuses: ReadonlyMap<string, ContainerStatus>
  readonly hasSandbox: boolean
  /** All existing conditions, including readiness gates and those of other writers. */
  readonly before: readonly PodCondition[]
  /** Resize conditions, which come first. */
  readonly first?: readonly PodCondition[]
  /** Undefined for pods without a RestartAllContainers rule. */
  readonly isRestartingAll?: boolean | undefined
  readonly nowMs: number
}

type ConditionValue = Pick<PodCondition, 'status' | 'reason' | 'message'>

const TRUE: ConditionValue = { status: 'True' }
const FALSE: ConditionValue = { status: 'False' }

/** Conditions of other writers first, then those of the kubelet. */
export function conditionsFor(input: ConditionInput): PodCondition[] {
  const { before, hasSandbox, generation, nowMs, first = [] } = input
  const containersReady = containersReadyValue(input)
  const own: Record<(typeof OWN_TYPES)[number], ConditionValue> = {
    PodReadyToStartContainers: hasSandbox ? TRUE : FALSE,
    Initialized: initializedValue(input),
    Ready: containersReady.status === 'True' ? readinessGatesValue(input) : containersReady,
    ContainersReady: containersReady,
    PodScheduled: TRUE,
  }
  const isFirst = new Set(first.map(({ type }) => type))
  const others = before.filter(({ type }) => !OWN.has(type) && !isFirst.has(type))
  return [
    ...first.map((condition) => unprobed(condition, before)),
    ...others,
    ...OWN_TYPES.map((type) => conditionOf(type, own[type], { before, generation, nowMs })),
    ...restartingAllValues(input).map((value) => conditionOf(RESTARTING_ALL, value, { before, nowMs })),
  ]
}

function conditionOf(
  type: string,
  { status, reason, message }: ConditionValue,
  {
    before,
    generation,
    nowMs,
  }: Pick<ConditionInput, 'before' | 'nowMs'> & { readonly generation?: number | undefined },
): PodCondition {
  const known = before.find((condition) => condition.type === type)
  const hasTurned = known?.status !== status
  return {
    type,
    ...(generation !== undefined && { observedGeneration: generation }),
    status,
    lastProbeTime: null,
    lastTransitionTime: hasTurned ? timeOf(nowMs) : known.lastTransitionTime,
    ...(reason !== undefined && { reason }),
    ...(message !== undefined && { message }),
  }
}

/** Empty for pods without a RestartAllContainers rule. */
function restartingAllValues({ isRestartingAll, phase }: ConditionInput): readonly ConditionValue[] {
  if (isRestartingAll === undefined) return []
  if (phase === 'Succeeded') return [{ status: 'False', reason: 'PodCompleted' }]
  if (phase === 'Failed') return [{ status: 'False', reason: 'PodFailed' }]
  if (!isRestartingAll) return [FALSE]
  const message = 'container exited with restart policy rule'
  return [{ status: 'True', reason: 'RestartAllContainersStarted', message }]
}

/** A change of `lastProbeTime` alone is not written. */
function unprobed(condition: PodCondition, before: readonly PodCondition[]): PodCondition {
  const known = before.find(({ type }) => type === condition.type)
  if (known === undefined) return condition
  const { lastProbeTime: _, ...value } = condition
  const isSame = Object.entries(value).every(([name, field]) => known[name as keyof PodCondition] === field)
  return isSame ? known : condition
}

function containersReadyValue({ spec, phase, statuses }: ConditionInput): ConditionValue {
  if (phase === 'Succeeded') return { status: 'False', reason: 'PodCompleted' }
  if (phase === 'Failed') return { status: 'False', reason: 'PodFailed' }
  const sidecars = (spec.initContainers ?? []).filter(({ restartPolicy }) => restartPolicy === 'Always')
  const names = [...sidecars, ...spec.containers].map(({ name }) => name)
  const message = complain(names, statuses, 'unready', ({ ready }) => ready)
  return message === '' ? TRUE : { status: 'False', reason: 'ContainersNotReady', message }
}

function readinessGatesValue({ spec, before }: ConditionInput): ConditionValue {
  const missing = (spec.readinessGates ?? []).flatMap(({ conditionType }) => {
    const found = before.find(({ type }) => type === conditionType)
    if (found?.status === 'True') return []
    const gate = `pod readiness gate ${goQuote(conditionType)}`
    return found === undefined
      ? `corresponding condition of ${gate} does not exist.`
      : `the status of ${gate} is not "True", but ${found.status}`
  })
  if (missing.length === 0) return TRUE
  return { status: 'False', reason: 'ReadinessGatesNotReady', message: missing.join(', ') }
}

function initializedValue({ spec, phase, statuses, before }: ConditionInput): ConditionValue {
  const inits = spec.initContainers ?? []
  if (phase === 'Succeeded') return { status: 'True', reason: 'PodCompleted' }
  const hasStarted = spec.containers.some(({ name }) => {
    const { state, lastState } = statuses.get(name) ?? {}
    return state?.running !== undefined || state?.terminated !== undefined || lastState?.terminated !== undefined
  })
  if (hasStarted) return TRUE
  const sidecars = new Set(inits.filter(({ restartPolicy }) => restartPolicy === 'Always').map(({ name }) => name))
  const names = inits.map(({ name }) => name)
  const message = complain(names, statuses, 'incomplete', ({ name, started, ready }) =>
    sidecars.has(name) ? started === true : ready,
  )
  const wasTrue = before.some(({ type, status }) => type === 'Initialized' && status === 'True')
  return message === '' || wasTrue ? TRUE : { status: 'False', reason: 'ContainersNotInitialized', message }
}

/** '' when all containers are fine. */
function complain(
  names: readonly string[],
  statuses: ReadonlyMap<string, ContainerStatus>,
  what: string,
  isFine: (status: ContainerStatus) => boolean,
): string {
  const unknown = names.filter((name) => !statuses.has(name))
  const others = names.filter((name) => {
    const status = statuses.get(name)
    return status !== undefined && !isFine(status)
  })
  const parts = [
    unknown.length > 0 ? `containers with unknown status: [${unknown.join(' ')}]` : '',
    others.length > 0 ? `containers with ${what} status: [${others.join(' ')}]` : '',
  ]
  return parts.filter((part) => part !== '').join(', ')
}
