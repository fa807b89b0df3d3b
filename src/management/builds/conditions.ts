/** Computes the status conditions of a built cluster, with Rancher's names. Pure. */
import type { Finding } from '../clusters/cluster-status.ts'
import { PENDING, PROVISIONED, UPDATED, WAITING } from '../kinds/cluster.ts'
import type { Operation } from '../kinds/operation.ts'
import { currentOperation, needsApproval } from './decide.ts'

export interface BuildState {
  readonly file: string | undefined
  /** Why the file cannot be applied. */
  readonly invalid: string | undefined
  readonly applied: string | undefined
  readonly isAutomatic: boolean
  readonly operations: readonly Operation[]
}

const MAX_MESSAGE = 8000

export function buildConditions(state: BuildState): readonly Finding[] {
  return [pending(state), provisioned(state), updated(state), waiting(state)].map((finding) => ({
    ...finding,
    message: finding.message.slice(0, MAX_MESSAGE),
  }))
}

function waitingForApproval({ operations, isAutomatic }: BuildState): Operation | undefined {
  const current = currentOperation(operations)
  return current?.status?.phase === 'Planned' && needsApproval(current, isAutomatic) ? current : undefined
}

function pending(state: BuildState): Finding {
  const operation = waitingForApproval(state)
  if (operation === undefined)
    return { type: PENDING, status: 'False', reason: 'NothingToApprove', message: 'No plan waits for approval.' }
  const { name = '' } = operation.metadata
  const steps = operation.status?.plan?.steps.length ?? 0
  const message = `Operation ${name} has a plan of ${steps} steps: approve it, or cancel it.`
  return { type: PENDING, status: 'True', reason: 'NeedsApproval', message }
}

function provisioned({ applied, operations }: BuildState): Finding {
  if (applied !== undefined)
    return { type: PROVISIONED, status: 'True', reason: 'Built', message: 'The cluster was built.' }
  const { reason, message } = progressOf(currentOperation(operations))
  return { type: PROVISIONED, status: 'False', reason, message }
}

function updated(state: BuildState): Finding {
  const { file, invalid, applied, operations } = state
  if (invalid !== undefined) return { type: UPDATED, status: 'False', reason: 'InvalidFile', message: invalid }
  if (file !== undefined && file === applied)
    return { type: UPDATED, status: 'True', reason: 'Applied', message: 'The cluster file is applied.' }
  if (waitingForApproval(state) !== undefined)
    return { type: UPDATED, status: 'False', reason: 'NeedsApproval', message: pending(state).message }
  return { type: UPDATED, status: 'False', ...progressOf(currentOperation(operations)) }
}

function waiting({ operations }: BuildState): Finding {
  const { metadata = {}, status } = currentOperation(operations) ?? {}
  if (status?.phase !== 'Failed')
    return {
      type: WAITING,
      status: 'False',
      reason: 'NothingToWaitFor',
      message: 'No operation waits for another attempt.',
    }
  const { message = '', retryAt = '' } = status
  const text = `Operation ${metadata.name ?? ''} failed and is tried again at ${retryAt}: ${message}`
  return { type: WAITING, status: 'True', reason: 'Retrying', message: text }
}

function progressOf(operation: Operation | undefined): Pick<Finding, 'reason' | 'message'> {
  const { phase = 'Pending', message = '' } = operation?.status ?? {}
  if (operation === undefined)
    return {
      reason: 'NotApplied',
      message: 'No operation applies the file: it was cancelled. Request one to apply it.',
    }
  const name = operation.metadata.name ?? ''
  if (phase === 'Running') return { reason: 'Running', message: `Operation ${name} is running.` }
  if (phase === 'Failed') return { reason: 'Failed', message: `Operation ${name} failed: ${message}` }
  return { reason: 'Planning', message: `Operation ${name} is being planned.` }
}
