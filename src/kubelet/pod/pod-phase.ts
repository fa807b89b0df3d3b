/** Computes the pod phase from container statuses, by the rules of upstream's kubelet. Pure. */
import type { Container, ContainerStateTerminated, ContainerStatus, PodSpec } from '#apis/core/v1.ts'
import { shouldRestart } from '#model/pods.ts'

import { wasRemovedForAll } from './restart-all.ts'

export type Phase = 'Pending' | 'Running' | 'Succeeded' | 'Failed'

export interface PhaseInput {
  readonly spec: PodSpec
  /** Includes init containers. */
  readonly statuses: ReadonlyMap<string, ContainerStatus>
  /** No container will be restarted. */
  readonly isEnding: boolean
  /** A main container has been started. */
  readonly wasInitialized: boolean
}

export function phaseOf({ spec, statuses, isEnding, wasInitialized }: PhaseInput): Phase {
  const inits = (spec.initContainers ?? []).filter(({ restartPolicy }) => restartPolicy !== 'Always')
  const sidecars = (spec.initContainers ?? []).filter(({ restartPolicy }) => restartPolicy === 'Always')
  const initEnds = inits.map((container) => ({ container, ended: endOf(statuses.get(container.name)) }))
  const hasFailed = initEnds.some(
    ({ container, ended }) => ended !== undefined && ended.exitCode !== 0 && !startsAgain(container, spec, ended),
  )
  if (hasFailed) return 'Failed'
  const side = countSidecars(sidecars, statuses)
  const main = countMains(spec, statuses)
  const isInitPending = initEnds.some(({ ended }) => ended === undefined)
  if (isInitPending || (side.pending > 0 && !wasInitialized) || side.waiting + main.waiting > 0) return 'Pending'
  if (side.unknown + main.unknown > 0) return 'Pending'
  if (side.running + main.running > 0) return 'Running'
  if (main.stopped === 0) return 'Pending'
  if (!isEnding && main.restarting > 0) return 'Running'
  return main.stopped === main.succeeded ? 'Succeeded' : 'Failed'
}

const startsAgain = (container: Container, spec: PodSpec, ended: ContainerStateTerminated): boolean =>
  shouldRestart(container, spec, ended.exitCode) || wasRemovedForAll(ended)

/** The end of the container, or of the run before its current wait. */
function endOf(status: ContainerStatus | undefined): ContainerStateTerminated | undefined {
  return status?.state.terminated ?? (status?.state.waiting === undefined ? undefined : status.lastState.terminated)
}

function countSidecars(
  sidecars: readonly Container[],
  statuses: ReadonlyMap<string, ContainerStatus>,
): Record<'pending' | 'running' | 'waiting' | 'unknown', number> {
  const count = { pending: 0, running: 0, waiting: 0, unknown: 0 }
  for (const { name } of sidecars) {
    const status = statuses.get(name)
    if (status === undefined) count.unknown++
    else if (status.state.running !== undefined) {
      count.running++
      if (status.started !== true) count.pending++
    } else if (endOf(status) === undefined) {
      count.pending++
      count.waiting++
    }
  }
  return count
}

function countMains(
  spec: PodSpec,
  statuses: ReadonlyMap<string, ContainerStatus>,
): Record<'running' | 'waiting' | 'stopped' | 'restarting' | 'succeeded' | 'unknown', number> {
  const count = { running: 0, waiting: 0, stopped: 0, restarting: 0, succeeded: 0, unknown: 0 }
  for (const container of spec.containers) {
    const status = statuses.get(container.name)
    const ended = endOf(status)
    if (status === undefined) count.unknown++
    else if (status.state.running !== undefined) count.running++
    else if (ended === undefined) count.waiting++
    else {
      count.stopped++
      if (startsAgain(container, spec, ended)) count.restarting++
      if (status.state.terminated?.exitCode === 0) count.succeeded++
    }
  }
  return count
}
