/** Checks whether the runtime answers in time, with upstream's messages. Pure. */
import { durationOfMs } from '#lib/go/duration.ts'

/** Time without an answer after which a runtime counts as down. */
const DOWN_MS = 30_000

/** Time without a relist after which the PLEG is unhealthy. */
export const SYNC_MS = 180_000

export interface RuntimeContact {
  /** Start of the kubelet. */
  readonly startedMs: number
  /** Last time the runtime reported that it is ready. */
  readonly answeredMs: number | undefined
  /** Last successful relist. */
  readonly listedMs: number | undefined
}

/** Why the node is not ready; empty when the runtime is healthy. */
export function contactFaults({ startedMs, answeredMs, listedMs }: RuntimeContact, nowMs: number): string[] {
  const faults: string[] = []
  if (answeredMs === undefined) faults.push('container runtime status check may not have completed yet')
  else if (nowMs - answeredMs > DOWN_MS) faults.push('container runtime is down')
  const silentMs = nowMs - (listedMs ?? startedMs)
  if (silentMs > SYNC_MS) {
    const detail =
      listedMs === undefined
        ? 'pleg has yet to be successful'
        : `pleg was last seen active ${durationOfMs(silentMs)} ago; threshold is ${durationOfMs(SYNC_MS)}`
    faults.push(`PLEG is not healthy: ${detail}`)
  }
  return faults
}
