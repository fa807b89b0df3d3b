/** Joins two sockets: copies data in both directions, with backpressure. */
import type { Duplex } from 'node:stream'

import { onAbort } from '../abort.ts'
import type { Clock, Timer } from '../clock.ts'

/** The time after one side has ended, in which the other may receive the rest and end as well. */
const LINGER_MS = 5000

export interface JoinOptions {
  readonly clock: Clock
  /** Cuts both. */
  readonly signal: AbortSignal
}

/** Resolves when both are closed; when one ends, so does the other, in both directions. Both are the caller's no longer. */
export async function joinSockets(one: Duplex, other: Duplex, { clock, signal }: JoinOptions): Promise<void> {
  const cut = (): void => {
    one.destroy()
    other.destroy()
  }
  let linger: Timer | undefined
  const leave = (left: Duplex, staying: Duplex): void => {
    // Further input is read and dropped: unread bytes would make the kernel discard outgoing ones.
    staying.unpipe(left)
    staying.resume()
    staying.end()
    linger ??= clock.after(LINGER_MS, cut, { background: true })
  }
  const release = onAbort(signal, cut)
  await Promise.all([pipe(one, other, leave), pipe(other, one, leave)])
  linger?.cancel()
  release()
}

/** Resolves when `from` is closed. */
function pipe(from: Duplex, to: Duplex, leave: (left: Duplex, staying: Duplex) => void): Promise<void> {
  return new Promise((resolve) => {
    const closed = (): void => {
      leave(from, to)
      resolve()
    }
    from.on('error', () => undefined)
    if (from.closed) return closed()
    from.once('end', () => leave(from, to))
    from.once('close', closed)
    from.pipe(to)
  })
}
