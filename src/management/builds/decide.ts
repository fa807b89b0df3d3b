/**
 * Decides the next action for a built cluster: create an Operation, plan it, run it, end it, or wait. Pure: the
 * controller performs one action and calls it again.
 */
import type { Operation, OperationPhase, OperationType } from '../kinds/operation.ts'

export interface Situation {
  /** Of the current cluster file. Undefined: the file is invalid. */
  readonly file: string | undefined
  /** Of the file that was applied last. */
  readonly applied: string | undefined
  /** Plans of the file need no approval. */
  readonly isAutomatic: boolean
  /** The Cluster has a deletion timestamp. */
  readonly isLeaving: boolean
  /** Unreachable machines do not stop the removal. */
  readonly isForced: boolean
  /** All Operations of the cluster. */
  readonly operations: readonly Operation[]
  /** The name of the Operation that this process works on. */
  readonly active: string | undefined
  readonly nowMs: number
}

export type Decision =
  | { readonly do: 'create'; readonly type: OperationType; readonly file?: string }
  /** The active Operation stops soon. */
  | { readonly do: 'stop'; readonly operation: string }
  | { readonly do: 'end'; readonly operation: string; readonly phase: OperationPhase; readonly message: string }
  | { readonly do: 'force'; readonly operation: string }
  | { readonly do: 'plan' | 'run'; readonly operation: string }
  /** Nothing is left of the cluster: the Cluster may go. */
  | { readonly do: 'release' }
  | { readonly do: 'wait'; readonly ms?: number }

const FINAL: readonly OperationPhase[] = ['Succeeded', 'Cancelled', 'Superseded']

export function isEnded({ status }: Operation): boolean {
  const { phase = 'Pending', retryAt } = status ?? {}
  return FINAL.includes(phase) || (phase === 'Failed' && retryAt === undefined)
}

/** The oldest Operation that has not ended: the others wait for it. */
export function currentOperation(operations: readonly Operation[]): Operation | undefined {
  return byAge(operations).find((one) => !isEnded(one) || wantsRetry(one))
}

/** A plan without steps needs none. */
export function needsApproval({ spec, status }: Operation, isAutomatic: boolean): boolean {
  const hasSteps = (status?.plan?.steps.length ?? 0) > 0
  return spec.approved !== true && !(spec.type === 'Apply' && (isAutomatic || !hasSteps))
}

export function decide(situation: Situation): Decision {
  return (
    cancellation(situation) ??
    (situation.isLeaving ? removal(situation) : undefined) ??
    newFile(situation) ??
    progress(situation)
  )
}

function cancellation({ operations, active }: Situation): Decision | undefined {
  const cancelled = operations.find((one) => one.spec.cancelled === true && !isEnded(one))
  if (cancelled === undefined) return undefined
  const operation = nameOf(cancelled)
  if (operation === active) return { do: 'stop', operation }
  const message =
    cancelled.status?.startedAt === undefined
      ? 'It was cancelled before it began.'
      : 'It was cancelled. Steps that were done stay done: request another operation to continue.'
  return { do: 'end', operation, phase: 'Cancelled', message }
}

/** Everything else ends before the removal begins. */
function removal({ operations, active, isForced }: Situation): Decision | undefined {
  const removals = byAge(operations).filter(({ spec }) => spec.type === 'Remove')
  if (removals.some(({ status }) => status?.phase === 'Succeeded')) return { do: 'release' }
  const other = operations.find((one) => one.spec.type !== 'Remove' && !isEnded(one))
  if (other !== undefined) {
    const operation = nameOf(other)
    if (operation === active) return { do: 'stop', operation }
    return { do: 'end', operation, phase: 'Cancelled', message: 'The cluster is being removed.' }
  }
  const last = removals.at(-1)
  if (last === undefined) return { do: 'create', type: 'Remove' }
  if (isForced && last.spec.force !== true) return { do: 'force', operation: nameOf(last) }
  return undefined
}

/** An Operation for the current file replaces those for earlier files that have not begun. */
function newFile({ file, applied, isLeaving, operations, active }: Situation): Decision | undefined {
  if (isLeaving || file === undefined) return undefined
  const applies = byAge(operations).filter(({ spec }) => spec.type === 'Apply')
  const stale = applies.find(
    (one) => !isEnded(one) && one.spec.file !== file && nameOf(one) !== active && one.status?.phase !== 'Running',
  )
  if (stale !== undefined) {
    const message = 'The cluster file has changed.'
    return { do: 'end', operation: nameOf(stale), phase: 'Superseded', message }
  }
  // Times are whole seconds.
  const newest = applies.at(-1)?.metadata.creationTimestamp
  const isKnown = applies.some(({ metadata, spec }) => spec.file === file && metadata.creationTimestamp === newest)
  if (isKnown || applies.some((one) => one.spec.file === file && !isEnded(one))) return undefined
  if (applies.length === 0 && applied === file) return undefined
  return { do: 'create', type: 'Apply', file }
}

function progress({ operations, active, isAutomatic, nowMs }: Situation): Decision {
  const current = currentOperation(operations)
  if (active !== undefined || current === undefined) return { do: 'wait' }
  const operation = nameOf(current)
  const { phase = 'Pending', startedAt, retryAt } = current.status ?? {}
  const isBegun = startedAt !== undefined
  if (phase === 'Running') return { do: 'run', operation }
  if (phase === 'Pending') return { do: 'plan', operation }
  if (phase === 'Planned') return needsApproval(current, isAutomatic) ? { do: 'wait' } : { do: 'run', operation }
  const leftMs = retryAt === undefined ? 0 : Date.parse(retryAt) - nowMs
  if (leftMs > 0 && !wantsRetry(current)) return { do: 'wait', ms: leftMs }
  return { do: isBegun ? 'run' : 'plan', operation }
}

function wantsRetry({ spec, status }: Operation): boolean {
  return status?.phase === 'Failed' && (spec.retries ?? 0) > (status.retries ?? 0)
}

function byAge(operations: readonly Operation[]): readonly Operation[] {
  const key = ({ metadata }: Operation): string => `${metadata.creationTimestamp ?? ''} ${metadata.name ?? ''}`
  return operations.toSorted((one, other) => (key(one) < key(other) ? -1 : 1))
}

function nameOf({ metadata }: Operation): string {
  return metadata.name ?? ''
}
