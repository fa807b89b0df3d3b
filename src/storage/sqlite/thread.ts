/** Controls a worker thread from the main thread: starts and ends it, and detects its death. */
import { Worker } from 'node:worker_threads'

import { StorageError } from '../backend.ts'
import type { ReaderSettings, WriterSettings } from './messages.ts'

export interface Thread<To> {
  /** Buffers in `transfer` are handed over with the message. */
  post(message: To, transfer?: ArrayBuffer[]): void
  /** Resolves when the thread has ended for any reason. */
  readonly ended: Promise<void>
  /** Terminates it. */
  kill(): Promise<void>
}

export interface ThreadHandlers<From> {
  readonly message: (message: From) => void
  /** The thread ended unexpectedly. */
  readonly died: (error: StorageError) => void
}

/** The worker's program: beside this folder, in the sources and in the bundle. */
function workerUrl(): URL {
  const isSource = import.meta.url.endsWith('.ts')
  return new URL(isSource ? '../sqlite.worker.ts' : './sqlite.worker.js', import.meta.url)
}

/** Messages are short-lived: a larger young generation would keep tens of megabytes of garbage. */
const resourceLimits = { maxYoungGenerationSizeMb: 2 }

/** `handlers.died` is not called once `isExpected` returns true. */
export function startThread<To, From>(
  settings: WriterSettings | ReaderSettings,
  handlers: ThreadHandlers<From>,
  isExpected: () => boolean,
): Thread<To> {
  const name = `sqlite ${settings.role}`
  const worker = new Worker(workerUrl(), { workerData: settings, name, resourceLimits })
  let cause: unknown
  worker.on('message', handlers.message)
  worker.on('error', (error) => (cause = error))
  const ended = new Promise<void>((resolve) => {
    worker.on('exit', (code) => {
      if (!isExpected()) handlers.died(deathOf(settings, code, cause))
      resolve()
    })
  })
  return {
    post: (message, transfer = []) => worker.postMessage(message, transfer),
    ended,
    async kill() {
      await worker.terminate()
    },
  }
}

function deathOf(settings: WriterSettings | ReaderSettings, code: number, cause: unknown): StorageError {
  const reason = cause instanceof Error ? `: ${cause.message}` : ''
  return new StorageError(
    'unavailable',
    `The ${settings.role} thread of "${settings.file}" has died (code ${code})${reason}; open the store again`,
    { cause },
  )
}
