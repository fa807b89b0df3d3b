/** The lists of this page. A worker reads them; the page has only the rows that it shows. */
import { signal, type ReadonlySignal, type Signal } from '@preact/signals'

import { reportUnauthorized } from '../api/request.ts'
import { startWorker } from '../browser/workers.ts'
import type { FromWorker, ListSource, ListView, PickedRows, Row, ToWorker } from './messages.ts'

export interface OpenList {
  readonly data: ReadonlySignal<FromWorker | undefined>
  setView(view: ListView): void
  /** The first rows that fit the filter, also those out of sight. */
  pick(limit: number): Promise<readonly Row[]>
  close(): void
}

let worker: Worker | undefined
let nextId = 1
const open = new Map<number, Signal<FromWorker | undefined>>()
/** Those who wait for picked rows, by list. */
const waiting = new Map<number, (rows: readonly Row[]) => void>()

export function openList(source: ListSource, view: ListView): OpenList {
  const id = nextId++
  const data = signal<FromWorker | undefined>(undefined)
  open.set(id, data)
  post({ type: 'open', id, source, view })
  return {
    data,
    setView: (next) => post({ type: 'view', id, view: next }),
    pick(limit) {
      post({ type: 'pick', id, limit })
      return new Promise((resolve) => waiting.set(id, resolve))
    },
    close() {
      open.delete(id)
      waiting.delete(id)
      post({ type: 'close', id })
    },
  }
}

/** Lists that wait to reconnect do so now. */
export function reconnectLists(): void {
  if (worker !== undefined) post({ type: 'reconnect' })
}

function post(message: ToWorker): void {
  worker ??= startLists()
  worker.postMessage(message)
}

function startLists(): Worker {
  const started = startWorker('lists')
  started.addEventListener('message', ({ data }: MessageEvent<FromWorker | PickedRows>) => {
    if ('picked' in data) {
      waiting.get(data.id)?.(data.picked)
      waiting.delete(data.id)
      return
    }
    if (data.state.type === 'stale' && data.state.code === 401) reportUnauthorized()
    const list = open.get(data.id)
    if (list !== undefined) list.value = data
  })
  addEventListener('online', reconnectLists)
  document.addEventListener('visibilitychange', () =>
    post({ type: 'visible', isVisible: document.visibilityState === 'visible' }),
  )
  return started
}
