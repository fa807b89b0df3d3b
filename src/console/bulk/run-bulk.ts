/** Sends one request for each of many objects, a few at a time, and goes on when one fails. */
import { RequestError } from '../api/request.ts'
import type { Row } from '../lists/messages.ts'

export interface BulkFailure {
  readonly row: Row
  readonly message: string
}

export interface BulkProgress {
  readonly done: number
  readonly failures: readonly BulkFailure[]
}

export interface BulkRun {
  readonly rows: readonly Row[]
  /** Rejects with RequestError if the server refuses. */
  readonly send: (row: Row) => Promise<void>
  readonly report: (progress: BulkProgress) => void
  readonly signal: AbortSignal
}

const AT_ONCE = 4

/** Resolves when all objects were tried, or at the signal when the requests under way have ended. */
export async function runBulk({ rows, send, report, signal }: BulkRun): Promise<BulkProgress> {
  let progress: BulkProgress = { done: 0, failures: [] }
  const left = [...rows]
  const work = async (): Promise<void> => {
    for (let row = left.shift(); row !== undefined && !signal.aborted; row = left.shift()) {
      const failure = await attempt(row, send)
      const { done, failures } = progress
      progress = { done: done + 1, failures: failure === undefined ? failures : [...failures, failure] }
      report(progress)
    }
  }
  await Promise.all(Array.from({ length: AT_ONCE }, work))
  return progress
}

async function attempt(row: Row, send: BulkRun['send']): Promise<BulkFailure | undefined> {
  try {
    await send(row)
    return undefined
  } catch (error) {
    if (!(error instanceof RequestError)) throw error
    return { row, message: error.message }
  }
}
