/** One Operation: its plan with the buttons that approve and cancel it, its progress, its message and its log. */
import type { ComponentChildren, VNode } from 'preact'
import { useState } from 'preact/hooks'

import { RequestError } from '../api/request.ts'
import { useNow } from '../browser/clock.ts'
import { ConfirmDialog } from '../forms/confirm-dialog.tsx'
import { AgeText } from '../parts/age-text.tsx'
import { Notice } from '../parts/notice.tsx'
import { OperationLog } from './operation-log.tsx'
import { actOn } from './operation-requests.ts'
import { OperationTag } from './operation-tag.tsx'
import { canApprove, canCancel, canRetry, hasEnded, type Operation, titleOf } from './operations.ts'
import { PlanView } from './plan-view.tsx'
import { ProgressView } from './progress-view.tsx'
import { useOperation } from './use-operation.ts'

export interface OperationViewProps {
  readonly cluster: string
  readonly name: string
  /** Of the object that the watch sent last. */
  readonly version: string
  readonly isStale: boolean
}

export function OperationView({ cluster, name, version, isStale }: OperationViewProps): VNode {
  const { operation, error } = useOperation(cluster, name, version)
  if (operation === undefined) {
    if (error === undefined) return <p class="loading">Loading …</p>
    return <Notice title={`Operation ${name} cannot be shown`} text={error.message} />
  }
  const { status = {} } = operation
  const stages = status.stages ?? []
  const waits = canApprove(operation)
  return (
    <article class="operation" aria-label={titleOf(operation)}>
      <header class="page-head">
        <h2>{titleOf(operation)}</h2>
        <OperationTag operation={operation} />
        <Times operation={operation} />
        <span class="bar-space" />
        <OperationActions operation={operation} isOff={isStale} />
      </header>
      <OperationMessage operation={operation} />
      {(status.left ?? []).length > 0 && <LeftOnMachines left={status.left ?? []} />}
      {waits && status.plan !== undefined && <PlanView plan={status.plan} />}
      {stages.length > 0 && !waits && <ProgressView stages={stages} />}
      {!waits && status.plan !== undefined && stages.length === 0 && <PlanView plan={status.plan} />}
      <OperationLog cluster={cluster} name={name} isEnded={hasEnded(operation)} title={titleOf(operation)} />
    </article>
  )
}

function Times({ operation }: { readonly operation: Operation }): VNode | null {
  const { startedAt, endedAt } = operation.status ?? {}
  const from = startedAt ?? operation.metadata.creationTimestamp
  if (from === undefined) return null
  return (
    <span class="muted">
      {endedAt === undefined ? 'Began ' : 'Ended '}
      <AgeText time={endedAt ?? from} />
      {' ago'}
    </span>
  )
}

function OperationMessage({ operation }: { readonly operation: Operation }): VNode | null {
  const { phase, message = '', retryAt } = operation.status ?? {}
  if (message === '') return null
  const tone = phase === 'Failed' ? 'box-bad' : ''
  return (
    <section class={`box ${tone}`} role={phase === 'Failed' ? 'alert' : 'status'}>
      <p class="words">{message}</p>
      {retryAt !== undefined && <RetryTime retryAt={retryAt} />}
    </section>
  )
}

function RetryTime({ retryAt }: { readonly retryAt: string }): VNode {
  const seconds = Math.max(0, Math.round((Date.parse(retryAt) - useNow()) / 1000))
  return (
    <p class="muted">{seconds === 0 ? 'The server tries again now.' : `The server tries again in ${seconds} s.`}</p>
  )
}

function LeftOnMachines({ left }: { readonly left: readonly string[] }): VNode {
  return (
    <section class="box box-busy">
      <h3>Left on machines</h3>
      <ul>
        {left.map((one) => (
          <li key={one}>{one}</li>
        ))}
      </ul>
    </section>
  )
}

interface OperationActionsProps {
  readonly operation: Operation
  /** The page may show an old state. */
  readonly isOff: boolean
}

function OperationActions({ operation, isOff }: OperationActionsProps): VNode {
  const [isCancelling, setIsCancelling] = useState(false)
  const [error, setError] = useState('')
  const run = (work: Promise<void>): void => {
    setError('')
    work.catch((failed: unknown) => setError(failed instanceof RequestError ? failed.message : String(failed)))
  }
  const { plan } = operation.status ?? {}
  const hasFaults = (plan?.faults ?? []).length > 0
  return (
    <div class="actions">
      {canApprove(operation) && !hasFaults && (
        <Action isPrimary isOff={isOff} run={() => run(actOn(operation, 'approve', plan?.digest))}>
          Approve the plan
        </Action>
      )}
      {canRetry(operation) && (
        <Action isPrimary isOff={isOff} run={() => run(actOn(operation, 'retry'))}>
          Try again now
        </Action>
      )}
      {canCancel(operation) && (
        <Action isOff={isOff} run={() => setIsCancelling(true)}>
          Cancel …
        </Action>
      )}
      {isCancelling && (
        <ConfirmDialog
          title={`Cancel: ${titleOf(operation)}`}
          action="Cancel the operation"
          run={() => actOn(operation, 'cancel')}
          close={() => setIsCancelling(false)}
        >
          <p>
            Steps under way come to their end, and no other begins. What was done stays; apply the cluster file again to
            go on.
          </p>
        </ConfirmDialog>
      )}
      {error !== '' && (
        <span class="form-error" role="alert">
          {error}
        </span>
      )}
    </div>
  )
}

interface ActionProps {
  readonly isPrimary?: boolean
  readonly isOff: boolean
  readonly run: () => void
  readonly children: ComponentChildren
}

function Action({ isPrimary = false, isOff, run, children }: ActionProps): VNode {
  return (
    <button type="button" class={isPrimary ? 'primary' : undefined} disabled={isOff} onClick={run}>
      {children}
    </button>
  )
}
