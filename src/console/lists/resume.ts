/** Keeps a list fresh: lists, watches from the version of the list, and after an error goes on or lists again. */
import { type Fetch, RequestError } from '../api/request.ts'

export interface FollowTools {
  readonly fetch: Fetch
  /** The messages of a WebSocket. Throws RequestError 410 if it could not be opened, and 0 if it broke. */
  readonly messages: (path: string, signal: AbortSignal) => AsyncIterable<string>
  /** Resolves after so many milliseconds, and rejects when the signal is aborted. */
  readonly sleep: (ms: number, signal: AbortSignal) => Promise<void>
  /** Between 0 and 1. */
  readonly random: () => number
}

export interface Reading {
  /** Reads everything. Returns the resource version from which a watch goes on. */
  list(): Promise<string>
  /** Follows changes from a version. Returns the version of the last change when the server ends the watch. */
  watch(from: string): Promise<string>
  /** Everything that was read is current. */
  live(): void
  /** The connection is gone; the next attempt begins after `retryMs`. */
  lost(error: RequestError, retryMs: number): void
}

const MIN_RETRY_MS = 1000
const MAX_RETRY_MS = 30_000
/** A version can be too old at once on a busy server. After more refusals there is a pause before each list. */
const MAX_REFUSALS = 2

/** Resolves when the signal is aborted. Rejects with RequestError when the server refuses for good. */
export async function keepReading(reading: Reading, tools: FollowTools, signal: AbortSignal): Promise<void> {
  let version = ''
  /** How often in a row the server refused a watch from the version of a fresh list. */
  let refusals = 0
  for (let failures = 0; !signal.aborted;) {
    try {
      if (version === '') version = await reading.list()
      failures = 0
      reading.live()
      const last = await reading.watch(version)
      refusals = 0
      // A server or a proxy that ends every watch at once gets no request without a pause.
      if (last === version) await tools.sleep(MIN_RETRY_MS, signal).catch(() => undefined)
      version = last
    } catch (error) {
      if (signal.aborted) return
      if (!(error instanceof RequestError)) throw error
      if (isFinal(error)) throw error
      refusals = error.code === 410 ? refusals + 1 : 0
      if (error.code === 410) version = ''
      const retryMs = delayMs(error, failures++, tools.random())
      if (error.code !== 410 || failures > 1 || refusals > MAX_REFUSALS) {
        reading.lost(error, retryMs)
        await tools.sleep(retryMs, signal).catch(() => undefined)
      }
    }
  }
}

function delayMs({ status }: RequestError, failures: number, random: number): number {
  const limit = Math.min(MAX_RETRY_MS, MIN_RETRY_MS * 2 ** Math.min(failures, 10))
  const wanted = (status.details?.retryAfterSeconds ?? 0) * 1000
  return Math.max(wanted, MIN_RETRY_MS + random * (limit - MIN_RETRY_MS))
}

/** Other errors pass: the server starts again, the agent of the cluster comes back, a session is renewed. */
function isFinal({ code }: RequestError): boolean {
  return code === 400 || code === 403 || code === 404 || code === 405 || code === 406
}
