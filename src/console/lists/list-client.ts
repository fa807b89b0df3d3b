/** The lists of this page. A worker reads them; the page has only the rows that it shows. */
import { signal, type ReadonlySignal, type Signal } from '@preact/signals'

import type { FromWorker, ListSource, ListView, ToWorker } from './messages.ts'

/** Addresses of the worker's script. The build puts it in. */
declare const LIST_WORKER_URL: string

export interface OpenList {
  readonly data: ReadonlySignal<FromWorker | undefined>
  setView(view: ListView): void
  close(): void
}

let worker: Worker | undefined
let nextId = 1
const open = new Map<number, Signal<FromWorker | undefined>>()

export function openList(source: ListSource, view: ListView): OpenList {
  const id = nextId++
  const data = signal<FromWorker | undefined>(undefined)
  open.set(id, data)
  post({ type: 'open', id, source, view })
  return {
    data,
    setView: (next) => post({ type: 'view', id, view: next }),
    close() {
      open.delete(id)
      post({ type: 'close', id })
    },
  }
}

function post(message: ToWorker): void {
  worker ??= startWorker()
  worker.postMessage(message)
}

function startWorker(): Worker {
  const started = new Worker(trustedUrl(LIST_WORKER_URL), { type: 'module', name: 'lists' })
  started.addEventListener('message', ({ data }: MessageEvent<FromWorker>) => {
    const list = open.get(data.id)
    if (list !== undefined) list.value = data
  })
  document.addEventListener('visibilitychange', () =>
    post({ type: 'visible', isVisible: document.visibilityState === 'visible' }),
  )
  return started
}

interface TrustedTypes {
  createPolicy(
    name: string,
    rules: { createScriptURL: (url: string) => string },
  ): {
    createScriptURL(url: string): string
  }
}

/** The Content-Security-Policy of the page permits scripts of this policy only. */
function trustedUrl(url: string): string {
  const { trustedTypes } = globalThis as { readonly trustedTypes?: TrustedTypes }
  return trustedTypes?.createPolicy('hyperkube', { createScriptURL: () => LIST_WORKER_URL }).createScriptURL(url) ?? url
}
