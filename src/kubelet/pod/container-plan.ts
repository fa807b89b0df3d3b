/**
 * Decides which containers of a pod to start and stop, from their records. Init containers run one after the other;
 * sidecars among them keep running. Main containers then start together. After the last main container has ended,
 * sidecars stop in reverse order. Pure.
 */
import type { PodSpec } from '#apis/core/v1.ts'
import { shouldRestart } from '#model/pods.ts'

import { type ContainerRecord, isRunning } from './container-runs.ts'

export interface ContainerPlan {
  /** Start these now, or as soon as their back-off ends. */
  readonly start: readonly ContainerRecord[]
  /** Stop these one after the other. */
  readonly stop: readonly ContainerRecord[]
  /** No container runs, and none will be started. */
  readonly isOver: boolean
}

const NOTHING: ContainerPlan = { start: [], stop: [], isOver: false }

/** `isEnding`: the pod is deleted or has failed, so no container is started. */
export function planContainers(spec: PodSpec, records: readonly ContainerRecord[], isEnding: boolean): ContainerPlan {
  if (isEnding) {
    const running = stopOrder(records)
    return { start: [], stop: running, isOver: running.length === 0 }
  }
  const mains = records.filter(({ role }) => role === 'main')
  const extra = records.filter(({ role, run }) => role === 'ephemeral' && run === undefined)
  const wasInitialized = mains.some(({ run }) => run !== undefined && run.isOfOldSandbox !== true)
  const inits = planInits(spec, records, wasInitialized)
  if (inits.hasFailed) return { start: extra, stop: [], isOver: stopOrder(records).length === 0 }
  if (!inits.isDone) return { ...NOTHING, start: [...inits.start, ...extra] }
  const start = mains.filter((record) => record.run === undefined || mayRestart(spec, record))
  if (start.length > 0 || mains.some(isRunning)) return { ...NOTHING, start: [...inits.start, ...start, ...extra] }
  const stop = stopOrder(records)
  return { start: [], stop, isOver: stop.length === 0 }
}

interface InitPlan {
  readonly start: readonly ContainerRecord[]
  readonly isDone: boolean
  readonly hasFailed: boolean
}

function planInits(spec: PodSpec, records: readonly ContainerRecord[], wasInitialized: boolean): InitPlan {
  const start: ContainerRecord[] = []
  for (const record of records) {
    if (record.role !== 'init' && record.role !== 'sidecar') break
    const step = stepOf(spec, record, wasInitialized)
    if (step === 'fail') return { start, isDone: false, hasFailed: true }
    if (step === 'start') start.push(record)
    if (step !== 'pass' && !wasInitialized) return { start, isDone: false, hasFailed: false }
  }
  return { start, isDone: true, hasFailed: false }
}

function stepOf(spec: PodSpec, record: ContainerRecord, wasInitialized: boolean): 'start' | 'wait' | 'pass' | 'fail' {
  const { role, run, isStarted } = record
  // Once main containers have run, regular init containers no longer matter.
  if (role === 'init' && wasInitialized) return 'pass'
  if (run === undefined) return 'start'
  if (role === 'sidecar') return isRunning(record) ? (isStarted ? 'pass' : 'wait') : 'start'
  if (run.end === undefined) return 'wait'
  if (run.end.exitCode === 0) return 'pass'
  return mayRestart(spec, record) ? 'start' : 'fail'
}

/** True if the container has ended and should be restarted. */
export function mayRestart(
  spec: PodSpec,
  { spec: container, run, role, mustRestart: isDue }: ContainerRecord,
): boolean {
  if (run?.end === undefined || role === 'ephemeral') return false
  if (isDue === true) return true
  const { exitCode } = run.end
  if (role === 'sidecar') return true
  // An init container that succeeded is not restarted, whatever the policy.
  if (role === 'init' && exitCode === 0) return false
  return shouldRestart(container, spec, exitCode)
}

/** Stop main containers together first, then sidecars in reverse order. */
function stopOrder(records: readonly ContainerRecord[]): ContainerRecord[] {
  const running = records.filter(isRunning)
  const others = running.filter(({ role }) => role !== 'sidecar')
  return others.length > 0 ? others : running.reverse().slice(0, 1)
}
