/** Runs in the thread that owns the history file: answers the calls of a historian. */
import type { MessagePort } from 'node:worker_threads'

import { StorageError } from '#storage/backend.ts'

import { encodeChanges } from './change-bytes.ts'
import { HistoryFile, type Run } from './history-file.ts'
import {
  buffersIn,
  type CallName,
  type Calls,
  type FromThread,
  type PlainError,
  type ThreadSettings,
  type ToThread,
} from './messages.ts'
import { encodeTimes } from './packed-times.ts'
import { HistoryGapError } from './recorded-change.ts'

type Answers = { readonly [Name in CallName]: (...args: Calls[Name]['arguments']) => Calls[Name]['result'] }

/** The error code of SQLite when the disk or the quota is full. */
const SQLITE_FULL = 13

export function runHistory(port: MessagePort, settings: ThreadSettings): void {
  let opened: HistoryFile | undefined
  const file = (): HistoryFile => (opened ??= new HistoryFile(settings.file))
  const answers: Answers = {
    open: () => ({ summary: file().summary(), times: encodeTimes(file().times()) }),
    append(run, nowMs) {
      file().append({ ...run, changes: asBuffer(run.changes) } satisfies Run)
      file().tidy(nowMs, settings.limits)
      return file().first
    },
    beginState: () => file().beginState(),
    addState: (changes) => file().addState(asBuffer(changes)),
    endState: (...args) => file().endState(...args),
    dropState: () => file().dropState(),
    stateAt: (...args) => encodeChanges(file().stateAt(...args)),
    changesAfter: (...args) => encodeChanges(file().changesAfter(...args)),
    forget: (...args) => file().forget(...args),
    summary: () => file().summary(),
    close() {
      opened?.close()
      port.close()
    },
  }
  port.on('message', ({ id, name, arguments: args }: ToThread) => {
    const answer = answerOf(() => (answers[name] as (...args: readonly unknown[]) => unknown)(...args))
    port.postMessage({ id, ...answer }, buffersIn([answer.result]))
  })
}

function answerOf(call: () => unknown): Omit<FromThread, 'id'> {
  try {
    return { result: call() }
  } catch (error) {
    return { error: plain(error) }
  }
}

/** A message carries a Buffer as a Uint8Array. */
function asBuffer(bytes: Uint8Array): Buffer {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
}

function plain(error: unknown): PlainError {
  if (error instanceof HistoryGapError) return { message: error.message, gap: error.gap }
  if (error instanceof StorageError)
    return { message: error.message, code: error.code, compactedRevision: error.compactedRevision }
  const { message, errcode } = error as Error & { readonly errcode?: number }
  return { message, ...(errcode === SQLITE_FULL && { code: 'no-space' as const }) }
}
