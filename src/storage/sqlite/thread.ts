/** The main thread's hold on a worker: starting it, telling its death, waiting for its end. */
import { Worker } from 'node:worker_threads'

import { StorageError } from '../backend.ts'
import type { ReaderSettings, WriterSettings } from './messages.ts'

export interface Thread<To> {
  /** Memory in `transfer` is handed over with the message. */
  post(message: To, transfer?: ArrayBuffer[]): void
  /** Resolves when the thread has ended, in whatever way. */
  readonly ended: Promise<void>
  /** Ends it without asking. */
  kill(): Promise<void>
}

export interface ThreadHandlers<From> {
  readonly message: (message: From) => void
  /** The thread ended without having been told to. */
  readonly died: (error: StorageError) => void
}

/** The worker's program: beside this folder, in the sources and in the bundle alike. */
function workerUrl(): URL {
  const isSource = import.meta.url.endsWith('.ts')
  return new URL(isSource ? '../sqlite.worker.ts' : './sqlite.worker.js', import.meta.url)
}

/** Messages come and go: with more room for the young, tens of megabytes of them would lie about before anybody looks. */
const resourceLimits = { maxYoungGenerationSizeMb: 2 }

/** `handlers.died` is not called once `isExpected` says that the end was wanted. */
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
