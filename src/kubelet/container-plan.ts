/**
 * What is to be done about the containers of a pod, from what has become of them: init containers one after the other,
 * sidecars among them that stay, then all others at once; who ended is started again as its policy says; sidecars end,
 * last one first, when nothing else runs. Pure.
 */
import type { PodSpec } from '#apis/core/v1.ts'
import { shouldRestart } from '#model/pods.ts'

import { type ContainerRecord, isRunning } from './container-runs.ts'

export interface ContainerPlan {
  /** To be started now, or as soon as their back-off is over. */
  readonly start: readonly ContainerRecord[]
  /** To be stopped, one after the other. */
  readonly stop: readonly ContainerRecord[]
  /** Nothing runs, and nothing will. */
  readonly isOver: boolean
}

const NOTHING: ContainerPlan = { start: [], stop: [], isOver: false }

/** `isEnding`: nothing is started any more, as the pod is deleted or has failed. */
export function planContainers(spec: PodSpec, records: readonly ContainerRecord[], isEnding: boolean): ContainerPlan {
  if (isEnding) {
    const running = stopOrder(records)
    return { start: [], stop: running, isOver: running.length === 0 }
  }
  const mains = records.filter(({ role }) => role === 'main')
  const extra = records.filter(({ role, run }) => role === 'ephemeral' && run === undefined)
  const wasInitialized = mains.some(({ run }) => run !== undefined && run.isPast !== true)
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
  // Once other containers have run, ordinary init containers are no longer looked at.
  if (role === 'init' && wasInitialized) return 'pass'
  if (run === undefined) return 'start'
  if (role === 'sidecar') return isRunning(record) ? (isStarted ? 'pass' : 'wait') : 'start'
  if (run.end === undefined) return 'wait'
  if (run.end.exitCode === 0) return 'pass'
  return mayRestart(spec, record) ? 'start' : 'fail'
}

/** Whether it has ended and is to be started again. */
export function mayRestart(spec: PodSpec, { spec: container, run, role, isDue }: ContainerRecord): boolean {
  if (run?.end === undefined || role === 'ephemeral') return false
  if (isDue === true) return true
  const { exitCode } = run.end
  if (role === 'sidecar') return true
  // An init container that has done its work is not started again, whatever the policy.
  if (role === 'init' && exitCode === 0) return false
  return shouldRestart(container, spec, exitCode)
}

/** All others at once, then sidecars, the last first. */
function stopOrder(records: readonly ContainerRecord[]): ContainerRecord[] {
  const running = records.filter(isRunning)
  const others = running.filter(({ role }) => role !== 'sidecar')
  return others.length > 0 ? others : running.reverse().slice(0, 1)
}
