/** The events of a watch out of the bytes of its answer: one JSON document a line. */
import { readJson } from '#lib/json.ts'
import type { KubeObject } from '#meta/object.ts'
import type { WatchEvent } from '#meta/watch.ts'

const NEWLINE = 0x0a

/** A line that is cut off when the stream ends was never sent. */
export async function* readWatchEvents<T extends KubeObject>(
  pieces: AsyncIterable<Buffer>,
): AsyncGenerator<WatchEvent<T>, void, undefined> {
  let begun: Buffer[] = []
  for await (const piece of pieces) {
    let from = 0
    for (let end = piece.indexOf(NEWLINE); end >= 0; end = piece.indexOf(NEWLINE, from)) {
      const rest = piece.subarray(from, end)
      const line = begun.length === 0 ? rest : Buffer.concat([...begun, rest])
      begun = []
      from = end + 1
      if (line.length > 0) yield readJson(line) as unknown as WatchEvent<T>
    }
    if (from < piece.length) begun.push(piece.subarray(from))
  }
}

/** What pieces that several read were decoded into. */
const decoded = new WeakMap<Buffer, WatchEvent>()

/** The same of pieces that others in this process read too: events are decoded once, and nobody may change what they hold. */
export async function* readSharedEvents<T extends KubeObject>(
  pieces: AsyncIterable<Buffer>,
): AsyncGenerator<WatchEvent<T>, void, undefined> {
  for await (const piece of pieces) {
    if (piece.indexOf(NEWLINE) !== piece.length - 1) yield* readWatchEvents<T>(only(piece))
    else {
      const event = decoded.get(piece) ?? (readJson(piece) as unknown as WatchEvent)
      decoded.set(piece, event)
      // Of a watch of the same kind.
      yield event as WatchEvent<T>
    }
  }
}

async function* only(piece: Buffer): AsyncGenerator<Buffer> {
  yield piece
}
