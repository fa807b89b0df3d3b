/** Joins two streams of tunnels: copies bytes, ends and errors in both directions, with backpressure. */
import type { Duplex } from 'node:stream'

/** Each direction ends on its own. */
export function joinStreams(one: Duplex, other: Duplex): void {
  copy(one, other)
  copy(other, one)
}

function copy(from: Duplex, to: Duplex): void {
  from.on('error', (error) => to.destroy(error))
  from.on('close', () => {
    // `pipe` ends the other one after a stream that ended well.
    if (!from.readableEnded) to.destroy(from.errored ?? undefined)
  })
  from.pipe(to)
}
