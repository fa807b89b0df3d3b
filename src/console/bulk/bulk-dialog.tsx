/** The dialog of an action on many objects: names them, runs the action, and lists what failed. */
import type { VNode } from 'preact'
import { useEffect, useRef, useState } from 'preact/hooks'

import { runRequest, surroundings } from '../actions/run-action.ts'
import type { Kind } from '../api/kinds.ts'
import { Dialog } from '../forms/dialog.tsx'
import type { Row } from '../lists/messages.ts'
import { titleOf } from '../parts/kind-groups.ts'
import { type BulkAction, targetOf } from './bulk-actions.ts'
import { type BulkProgress, runBulk } from './run-bulk.ts'

export interface BulkDialogProps extends BulkAction {
  readonly cluster: string
  readonly kind: Kind
  readonly rows: readonly Row[]
  readonly close: () => void
  /** Called when the action was done for every object. */
  readonly done: () => void
}

export function BulkDialog(props: BulkDialogProps): VNode {
  const { action, kind, rows, close } = props
  const { progress, isRunning, run, stop } = useRun(props)
  const count = `${rows.length.toLocaleString('en')} ${rows.length === 1 ? kind.kind : titleOf(kind)}`
  const isOver = progress !== undefined && !isRunning
  const end = (): void => {
    stop()
    close()
  }
  return (
    <Dialog title={`${action.title}: ${count}`} close={end}>
      {action.warning !== undefined && <p>{action.warning}</p>}
      {action.name === 'delete' && <p>What these objects own is deleted after them.</p>}
      <RowNames rows={rows} />
      {progress !== undefined && <ProgressView progress={progress} total={rows.length} />}
      <div class="form-actions">
        {!isOver && (
          <button
            type="button"
            class={action.isDangerous === true ? 'danger' : 'primary'}
            disabled={isRunning}
            onClick={run}
          >
            {action.title}
          </button>
        )}
        <button type="button" onClick={end}>
          {isOver ? 'Close' : isRunning ? 'Stop' : 'Cancel'}
        </button>
      </div>
    </Dialog>
  )
}

interface Run {
  /** Undefined before it begins. */
  readonly progress: BulkProgress | undefined
  readonly isRunning: boolean
  readonly run: () => void
  readonly stop: () => void
}

function useRun({ cluster, kind, rows, plan, done, close }: BulkDialogProps): Run {
  const [progress, setProgress] = useState<BulkProgress>()
  const [isRunning, setRunning] = useState(false)
  const stop = useRef(new AbortController())
  useEffect(() => () => stop.current.abort(), [])
  const send = (row: Row): Promise<void> => runRequest(cluster, plan(targetOf(kind, row), surroundings()))
  const run = async (): Promise<void> => {
    setRunning(true)
    setProgress({ done: 0, failures: [] })
    const { failures } = await runBulk({ rows, send, report: setProgress, signal: stop.current.signal })
    setRunning(false)
    if (failures.length > 0 || stop.current.signal.aborted) return
    done()
    close()
  }
  return { progress, isRunning, run: () => void run(), stop: () => stop.current.abort() }
}

const SHOWN_NAMES = 20

function RowNames({ rows }: { readonly rows: readonly Row[] }): VNode {
  return (
    <ul class="bulk-names">
      {rows.slice(0, SHOWN_NAMES).map(({ uid, namespace, name }) => (
        <li key={uid}>
          <bdi>{namespace === '' ? name : `${namespace}/${name}`}</bdi>
        </li>
      ))}
      {rows.length > SHOWN_NAMES && <li>{`and ${(rows.length - SHOWN_NAMES).toLocaleString('en')} more`}</li>}
    </ul>
  )
}

function ProgressView({ progress, total }: { readonly progress: BulkProgress; readonly total: number }): VNode {
  const { done, failures } = progress
  return (
    <>
      <p role="status">{`${done - failures.length} of ${total} done${failures.length > 0 ? `, ${failures.length} failed` : ''}.`}</p>
      <ul class="bulk-names">
        {failures.map(({ row, message }) => (
          <li key={row.uid} class="words-bad">
            <bdi>{`${row.name}: ${message}`}</bdi>
          </li>
        ))}
      </ul>
    </>
  )
}
