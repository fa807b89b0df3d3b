/**
 * Decides what a pod worker does next. A sync passes through stages. Each stage is planned from the state after the
 * previous one; its last action enters the next stage or waits. Pure.
 *
 * The stages are admission → decision → restart-all → course, and then
 * - while the pod runs: sandbox → resize → kills → containers → settled;
 * - when it ends: stopping → leaving.
 */
import { isTerminalPhase } from '#model/pods.ts'

import { waitMsOf } from '../pod/back-off.ts'
import { planContainers } from '../pod/container-plan.ts'
import { type ContainerRecord, isRunning } from '../pod/container-runs.ts'
import {
  changed,
  DEADLINE_EXCEEDED,
  DEADLINE_MESSAGE,
  type EventSpec,
  resizeRestarts,
  SANDBOX_CHANGED,
  stopping,
} from '../pod/events.ts'
import { isGranted } from '../pod/pod-allocation.ts'
import type { PodView } from '../pod/pod-status.ts'
import { containerResizes, restartsForResize } from '../pod/resize-state.ts'
import { KILLING, removalOrder, restartsAll } from '../pod/restart-all.ts'
import { needsNewSandbox } from '../pod/sandbox-change.ts'
import { containerHash } from './container-config.ts'
import {
  graceSecondsOf,
  isEnding,
  isLeaving,
  isPastDeadline,
  deadlineMsOf,
  type PodState,
  type Stage,
} from './pod-state.ts'

/** One container to stop. Default grace period: the pod's. */
export interface Stop {
  readonly record: ContainerRecord
  readonly why: EventSpec
  readonly graceSeconds?: number | undefined
}

export type Action =
  | { readonly type: 'enter'; readonly stage: Stage }
  /** The sync is done. `isAgain`: the next one follows at once. */
  | { readonly type: 'wait'; readonly untilMs: number; readonly isAgain?: boolean }
  /** Writes the current status. `hasSandbox` false: the sandbox is already stopped. */
  | { readonly type: 'publish'; readonly hasSandbox?: false }
  | { readonly type: 'record-event'; readonly event: EventSpec }
  | { readonly type: 'admit' }
  | { readonly type: 'fail'; readonly verdict: NonNullable<PodView['verdict']>; readonly event: EventSpec }
  | { readonly type: 'allocate-resize' }
  | { readonly type: 'begin-restart-all' }
  | { readonly type: 'remove-containers'; readonly record: ContainerRecord }
  | { readonly type: 'finish-restart-all'; readonly records: readonly ContainerRecord[] }
  /** Stops the containers that still run, together. */
  | { readonly type: 'stop'; readonly stops: readonly Stop[] }
  /** Stops a lost sandbox. `isReplaced`: all containers start again in a new one. */
  | { readonly type: 'leave-sandbox'; readonly id: string; readonly isReplaced: boolean }
  /** Requests a restart of the container, whatever its policy. */
  | { readonly type: 'request-restart'; readonly record: ContainerRecord; readonly why: EventSpec }
  | { readonly type: 'apply-resize' }
  | { readonly type: 'complete-resize' }
  /** `isOptional`: containers run already, and only the content of volumes follows the API. */
  | { readonly type: 'mount-volumes'; readonly isOptional?: true }
  | { readonly type: 'prepare-claims' }
  | { readonly type: 'create-cgroup' }
  | { readonly type: 'create-sandbox' }
  | { readonly type: 'start'; readonly record: ContainerRecord }
  | { readonly type: 'watch-probes' }
  | { readonly type: 'begin-end'; readonly sinceMs: number }
  | { readonly type: 'stop-sandboxes' }
  | { readonly type: 'remove-cgroup' }
  | { readonly type: 'end-probes' }
  | { readonly type: 'report-end' }
  | { readonly type: 'unmount-volumes' }
  | { readonly type: 'release-resources' }
  | { readonly type: 'settle-status' }
  | { readonly type: 'delete-pod' }
  | { readonly type: 'remove-pod' }

/** The inputs of a plan besides the state. */
export interface PodObservation {
  /** The newest sandbox in the runtime. */
  readonly sandbox: { readonly id: string; readonly isReady: boolean } | undefined
  /** The phase in the newest status. */
  readonly phase: string | undefined
  /** When the image may be pulled again. */
  readonly pullRetryMs: (image: string) => number | undefined
}

type Planner = (state: PodState, observed: PodObservation, nowMs: number) => readonly Action[]

/** The last action enters another stage or waits. */
export function planPod(state: PodState, observed: PodObservation, nowMs: number): readonly Action[] {
  return STAGES[state.stage](state, observed, nowMs)
}

const enter = (stage: Stage): Action => ({ type: 'enter', stage })
const wait = (untilMs: number = Infinity): Action => ({ type: 'wait', untilMs })
const PUBLISH: Action = { type: 'publish' }

const STAGES: Readonly<Record<Stage, Planner>> = {
  admission: ({ isAdmitted }) => (isAdmitted ? [enter('decision')] : [{ type: 'admit' }, enter('decision')]),

  decision: (state, _, nowMs) => {
    if (isPastDeadline(state, nowMs)) return [planDeadline(), enter('decision')]
    if (state.isRejected && !isLeaving(state)) return [PUBLISH, wait()]
    const { desired, resize } = state
    const isAllocated = isGranted(desired.spec, resize.allocation) && resize.pending === undefined
    return isEnding(state) || isAllocated ? [enter('restart-all')] : [{ type: 'allocate-resize' }, enter('restart-all')]
  },

  'restart-all': (state) => [
    ...(isEnding(state) || !restartsAll(state.records) ? [] : planRestartAll(state.records)),
    enter('course'),
  ],

  course: (state, { phase }, nowMs) => {
    const { isOver } = planContainers(state.pod.spec, state.records, isEnding(state))
    if (!isEnding(state) && !isOver && !isTerminalPhase(phase)) return [PUBLISH, enter('sandbox')]
    const isReported = isLeaving(state) && !isTerminalPhase(phase)
    return [{ type: 'begin-end', sinceMs: nowMs }, ...(isReported ? [PUBLISH] : []), enter('stopping')]
  },

  sandbox: (state, observed) => [...planLostSandbox(state, observed), enter('resize')],

  resize: ({ pod, records }) => {
    const resizes = containerResizes(pod.spec, records)
    const restarted = resizes.filter(restartsForResize)
    return [
      ...records
        .filter(hasChanged)
        .map((record) => restart(record, changed(record.spec.name, record.role === 'sidecar'))),
      ...restarted.map(({ record }) => restart(record, resizeRestarts(record.spec.name))),
      ...(resizes.length > restarted.length ? [{ type: 'apply-resize' } as const] : []),
      enter('kills'),
    ]
  },

  /** Repeats, because further requests may come meanwhile. */
  kills: ({ killRequests }) =>
    killRequests.size === 0
      ? [enter('containers')]
      : [...Array.from(killRequests, ([record, request]) => stop({ record, ...request })), enter('kills')],

  containers: (state) => {
    const { start, stop: stopped } = planContainers(state.pod.spec, state.records, isEnding(state))
    const stops = stopped.map((record) => stop({ record, why: stopping(record.spec.name) }))
    if (start.length > 0) return [...stops, ...planStart(state, start), enter('settled')]
    return [...stops, { type: 'mount-volumes', isOptional: true }, enter('settled')]
  },

  settled: (state, { pullRetryMs }, nowMs) => {
    const { pod, records, resize, startedCount } = state
    const { start } = planContainers(pod.spec, records, isEnding(state))
    const isResized = resize.inProgress !== undefined && containerResizes(pod.spec, records).length === 0
    const untilMs = Math.min(
      deadlineMsOf(state),
      ...start.map((record) => waitMsOf(record, pullRetryMs(record.spec.image ?? ''), nowMs)),
    )
    const isAgain = startedCount > 0 && start.some(({ run }) => run === undefined)
    return [...(isResized ? [{ type: 'complete-resize' } as const] : []), PUBLISH, { type: 'wait', untilMs, isAgain }]
  },

  /** Stops main containers together, then sidecars one by one, within the remaining grace period. */
  stopping: (state, _, nowMs) => {
    const running = planContainers(state.pod.spec, state.records, true).stop
    if (running.length === 0) return [...CLEAN_UP, enter('leaving')]
    const tookSeconds = Math.trunc((nowMs - (state.endingSinceMs ?? nowMs)) / 1000)
    const graceSeconds = Math.max(graceSecondsOf(state) - tookSeconds, 0)
    return [
      stop(...running.map((record) => ({ record, why: stopping(record.spec.name), graceSeconds }))),
      enter('stopping'),
    ]
  },

  leaving: (state) => {
    if (!isLeaving(state)) return [wait()]
    return [...(state.isDeleted ? [] : [{ type: 'delete-pod' } as const]), { type: 'remove-pod' }, wait()]
  },
}

/** After the last container has ended. */
const CLEAN_UP: readonly Action[] = [
  { type: 'stop-sandboxes' },
  { type: 'remove-cgroup' },
  { type: 'end-probes' },
  { type: 'publish', hasSandbox: false },
  { type: 'report-end' },
  { type: 'unmount-volumes' },
  { type: 'release-resources' },
  { type: 'settle-status' },
]

const stop = (...stops: readonly Stop[]): Action => ({ type: 'stop', stops })

const restart = (record: ContainerRecord, why: EventSpec): Action => ({ type: 'request-restart', record, why })

/** The pod fails because its activeDeadlineSeconds have passed. */
export function planDeadline(): Action {
  return { type: 'fail', verdict: { reason: 'DeadlineExceeded', message: DEADLINE_MESSAGE }, event: DEADLINE_EXCEEDED }
}

/** The triggering container is removed last, so that a failure before is retried. */
function planRestartAll(all: readonly ContainerRecord[]): Action[] {
  const records = removalOrder(all)
  return [
    { type: 'begin-restart-all' },
    PUBLISH,
    ...records.flatMap((record): Action[] => [
      ...(isRunning(record) ? [stop({ record, why: KILLING, graceSeconds: 0 })] : []),
      { type: 'remove-containers', record },
    ]),
    { type: 'finish-restart-all', records },
  ]
}

/** Stops the containers of a lost sandbox. All start again in a new one, unless the pod is over. */
function planLostSandbox({ pod, records, sandbox, leftSandbox }: PodState, observed: PodObservation): Action[] {
  const newest = observed.sandbox
  if (newest === undefined || newest.isReady || newest.id === leftSandbox) return []
  if (sandbox !== undefined && sandbox.id !== newest.id) return []
  const isReplaced = needsNewSandbox(pod.spec, records)
  return [
    ...(isReplaced ? [{ type: 'record-event', event: SANDBOX_CHANGED } as const] : []),
    ...records.filter(isRunning).map((record) => stop({ record, why: stopping(record.spec.name) })),
    { type: 'leave-sandbox', id: newest.id, isReplaced },
  ]
}

/** True if it runs an outdated image. */
function hasChanged(record: ContainerRecord): boolean {
  const { role, hash, spec } = record
  return (
    isRunning(record) && (role === 'main' || role === 'sidecar') && hash !== undefined && hash !== containerHash(spec)
  )
}

function planStart({ sandbox }: PodState, records: readonly ContainerRecord[]): Action[] {
  const create: readonly Action[] = [{ type: 'create-cgroup' }, { type: 'create-sandbox' }, PUBLISH]
  return [
    { type: 'mount-volumes' },
    { type: 'prepare-claims' },
    ...(sandbox === undefined ? create : []),
    ...records.map((record): Action => ({ type: 'start', record })),
    { type: 'watch-probes' },
  ]
}
