/** The messages between a historian and the thread that owns the history file. */
import type { StorageErrorCode } from '#storage/backend.ts'

import type { HistorySummary, Run } from './history-file.ts'
import type { Gap, KeyRange } from './recorded-change.ts'
import type { RetentionLimits } from './retention.ts'

export interface ThreadSettings {
  readonly file: string
  readonly limits: RetentionLimits
}

/** Calls, each with its arguments. The thread answers in order. */
export interface Calls {
  /** The summary, and the times of commits. */
  open: { arguments: readonly []; result: { readonly summary: HistorySummary; readonly times: Uint8Array } }
  /** The oldest revision that is still known. */
  append: { arguments: readonly [run: Run, nowMs: number]; result: number | undefined }
  beginState: { arguments: readonly []; result: void }
  addState: { arguments: readonly [changes: Uint8Array]; result: void }
  endState: { arguments: readonly [revision: number, atMs: number, gapReason: string | undefined]; result: void }
  dropState: { arguments: readonly []; result: void }
  stateAt: { arguments: readonly [range: KeyRange, revision: number]; result: Uint8Array }
  changesAfter: { arguments: readonly [range: KeyRange, from: number, through: number]; result: Uint8Array }
  forget: {
    arguments: readonly [range: KeyRange, through: number, note: { readonly atMs: number; readonly by: string }]
    result: number
  }
  summary: { arguments: readonly []; result: HistorySummary }
  close: { arguments: readonly []; result: void }
}

export type CallName = keyof Calls

export interface ToThread {
  readonly id: number
  readonly name: CallName
  readonly arguments: readonly unknown[]
}

export interface FromThread {
  readonly id: number
  readonly result?: unknown
  readonly error?: PlainError
}

/** Of changes in a call or a result: the message takes them along without a copy. */
export function buffersIn(parts: readonly unknown[]): ArrayBuffer[] {
  return parts.flatMap((part) => {
    const bytes = (part as Partial<Run> | undefined)?.changes ?? part
    return bytes instanceof Uint8Array ? [bytes.buffer as ArrayBuffer] : []
  })
}

/** An error that a message can carry. */
export interface PlainError {
  readonly message: string
  readonly code?: StorageErrorCode
  readonly compactedRevision?: number | undefined
  readonly gap?: Gap
}
