/** The conditions that kubelets write, with upstream's reasons and messages. Pure. */
import type { ContainerStatus, PodCondition, PodSpec } from '#apis/core/v1.ts'
import { goQuote } from '#lib/go-text.ts'
import { timeOf } from '#meta/time.ts'

import type { Phase } from './pod-phase.ts'

/** In the order in which kubelets write them. */
const OWN_TYPES = ['PodReadyToStartContainers', 'Initialized', 'Ready', 'ContainersReady', 'PodScheduled'] as const

/** Told while there is something to tell, before the others. */
const PASSING = ['PodResizePending', 'PodResizeInProgress'] as const

/** Told of pods whose containers may all be started again by one of them, after the others. */
const RESTARTING_ALL = 'AllContainersRestarting'

const OWN: ReadonlySet<string> = new Set([...PASSING, ...OWN_TYPES, RESTARTING_ALL])

/** The conditions that the kubelet does not write. */
export const conditionsOfOthers = (conditions: readonly PodCondition[] = []): PodCondition[] =>
  conditions.filter(({ type }) => !OWN.has(type))

/** Of those that others write what the server has, of the kubelet's own what it wrote last. */
export function conditionsKnown(
  theirs: readonly PodCondition[] = [],
  written: readonly PodCondition[] = [],
): PodCondition[] {
  return [...conditionsOfOthers(theirs), ...written.filter(({ type }) => OWN.has(type))]
}

export interface ConditionQuestion {
  readonly spec: PodSpec
  readonly generation: number | undefined
  readonly phase: Phase
  /** Of init containers as well. */
  readonly statuses: ReadonlyMap<string, ContainerStatus>
  readonly hasSandbox: boolean
  /** All that are there, of others as well: gates of readiness are among them. */
  readonly before: readonly PodCondition[]
  /** What else there is to tell now, before the kubelet's others. */
  readonly first?: readonly PodCondition[]
  /** Undefined for pods in which that cannot be. */
  readonly isRestartingAll?: boolean | undefined
  readonly nowMs: number
}

type Said = Pick<PodCondition, 'status' | 'reason' | 'message'>

const TRUE: Said = { status: 'True' }
const FALSE: Said = { status: 'False' }

/** What others wrote first, then the kubelet's own. */
export function conditionsFor(question: ConditionQuestion): PodCondition[] {
  const { before, hasSandbox, generation, nowMs, first = [] } = question
  const containersReady = sayContainersReady(question)
  const own: Record<(typeof OWN_TYPES)[number], Said> = {
    PodReadyToStartContainers: hasSandbox ? TRUE : FALSE,
    Initialized: sayInitialized(question),
    Ready: containersReady.status === 'True' ? sayGates(question) : containersReady,
    ContainersReady: containersReady,
    PodScheduled: TRUE,
  }
  const isFirst = new Set(first.map(({ type }) => type))
  const others = before.filter(({ type }) => !OWN.has(type) && !isFirst.has(type))
  return [
    ...first.map((condition) => unprobed(condition, before)),
    ...others,
    ...OWN_TYPES.map((type) => conditionOf(type, own[type], { before, generation, nowMs })),
    ...sayRestartingAll(question).map((said) => conditionOf(RESTARTING_ALL, said, { before, nowMs })),
  ]
}

function conditionOf(
  type: string,
  { status, reason, message }: Said,
  {
    before,
    generation,
    nowMs,
  }: Pick<ConditionQuestion, 'before' | 'nowMs'> & { readonly generation?: number | undefined },
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

/** None for pods in which that cannot be. */
function sayRestartingAll({ isRestartingAll, phase }: ConditionQuestion): readonly Said[] {
  if (isRestartingAll === undefined) return []
  if (phase === 'Succeeded') return [{ status: 'False', reason: 'PodCompleted' }]
  if (phase === 'Failed') return [{ status: 'False', reason: 'PodFailed' }]
  if (!isRestartingAll) return [FALSE]
  const message = 'container exited with restart policy rule'
  return [{ status: 'True', reason: 'RestartAllContainersStarted', message }]
}

/** When it was last looked at is told only together with something else. */
function unprobed(condition: PodCondition, before: readonly PodCondition[]): PodCondition {
  const known = before.find(({ type }) => type === condition.type)
  if (known === undefined) return condition
  const { lastProbeTime: _, ...said } = condition
  const isSame = Object.entries(said).every(([name, value]) => known[name as keyof PodCondition] === value)
  return isSame ? known : condition
}

function sayContainersReady({ spec, phase, statuses }: ConditionQuestion): Said {
  if (phase === 'Succeeded') return { status: 'False', reason: 'PodCompleted' }
  if (phase === 'Failed') return { status: 'False', reason: 'PodFailed' }
  const sidecars = (spec.initContainers ?? []).filter(({ restartPolicy }) => restartPolicy === 'Always')
  const names = [...sidecars, ...spec.containers].map(({ name }) => name)
  const message = complain(names, statuses, 'unready', ({ ready }) => ready)
  return message === '' ? TRUE : { status: 'False', reason: 'ContainersNotReady', message }
}

function sayGates({ spec, before }: ConditionQuestion): Said {
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

function sayInitialized({ spec, phase, statuses, before }: ConditionQuestion): Said {
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

/** '' when all are fine. */
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
