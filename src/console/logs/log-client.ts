/** The logs of this page, which a worker reads and holds. */
import { signal, type ReadonlySignal } from '@preact/signals'

import { startWorker } from '../browser/workers.ts'
import type { FromLogWorker, LogSource, LogView, ToLogWorker } from './messages.ts'

export interface OpenLogs {
  readonly lines: ReadonlySignal<Extract<FromLogWorker, { type: 'lines' }> | undefined>
  open(sources: readonly LogSource[], view: LogView): void
  setView(view: LogView): void
  /** All lines that fit the filter. */
  text(): Promise<string>
  close(): void
}

export function openLogs(): OpenLogs {
  const worker = startWorker('logs')
  const lines = signal<Extract<FromLogWorker, { type: 'lines' }> | undefined>(undefined)
  let waiting: ((text: string) => void) | undefined
  worker.addEventListener('message', ({ data }: MessageEvent<FromLogWorker>) => {
    if (data.type === 'text') waiting?.(data.text)
    else lines.value = data
  })
  const post = (message: ToLogWorker): void => worker.postMessage(message)
  return {
    lines,
    open: (sources, view) => post({ type: 'open', sources, view }),
    setView: (view) => post({ type: 'view', view }),
    text: () =>
      new Promise((resolve) => {
        waiting = resolve
        post({ type: 'download' })
      }),
    close: () => worker.terminate(),
  }
}
