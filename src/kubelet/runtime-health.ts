/** What a runtime that answers late, or not at all, means for its node. Pure, and in upstream's words. */
import { durationOfMs } from '#meta/duration.ts'

/** A runtime that was well and does not answer is given so long before its node suffers. */
const DOWN_MS = 30_000

/** A runtime that has not said for so long what it holds is not looked after. */
export const SYNC_MS = 180_000

export interface RuntimeContact {
  /** When the kubelet began. */
  readonly startedMs: number
  /** When the runtime last said that it is well. */
  readonly answeredMs: number | undefined
  /** When it last told what it holds. */
  readonly listedMs: number | undefined
}

/** Why no pod can be looked after; none when all is well. */
export function contactFaults({ startedMs, answeredMs, listedMs }: RuntimeContact, nowMs: number): string[] {
  const faults: string[] = []
  if (answeredMs === undefined) faults.push('container runtime status check may not have completed yet')
  else if (nowMs - answeredMs > DOWN_MS) faults.push('container runtime is down')
  const silentMs = nowMs - (listedMs ?? startedMs)
  if (silentMs > SYNC_MS) {
    const said =
      listedMs === undefined
        ? 'pleg has yet to be successful'
        : `pleg was last seen active ${durationOfMs(silentMs)} ago; threshold is ${durationOfMs(SYNC_MS)}`
    faults.push(`PLEG is not healthy: ${said}`)
  }
  return faults
}
