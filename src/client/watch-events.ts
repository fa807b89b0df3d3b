/**
 * The events of a watch out of the bytes of its answer: one JSON document a line. What came together is told together, so that
 * nobody decides by a part of it.
 */
import { readJson } from '#lib/json.ts'
import type { KubeObject } from '#meta/object.ts'
import type { WatchEvent } from '#meta/watch.ts'

const NEWLINE = 0x0a

/** A line that is cut off when the stream ends was never sent. */
export async function* readWatchEvents<T extends KubeObject>(
  pieces: AsyncIterable<Buffer>,
): AsyncGenerator<readonly WatchEvent<T>[], void, undefined> {
  const begun: Buffer[] = []
  for await (const piece of pieces) {
    const events: WatchEvent[] = []
    try {
      takeLines(piece, begun, events)
    } finally {
      // Also what came before a line that nobody can read. Of a watch of that kind.
      if (events.length > 0) yield events as WatchEvent<T>[]
    }
  }
}

/** Adds to `events` what is whole; `begun` is a line without its end, before and after. */
function takeLines(piece: Buffer, begun: Buffer[], events: WatchEvent[]): void {
  let from = 0
  for (let end = piece.indexOf(NEWLINE); end >= 0; end = piece.indexOf(NEWLINE, from)) {
    const rest = piece.subarray(from, end)
    const line = begun.length === 0 ? rest : Buffer.concat([...begun.splice(0), rest])
    from = end + 1
    if (line.length > 0) events.push(readJson(line) as unknown as WatchEvent)
  }
  if (from < piece.length) begun.push(piece.subarray(from))
}

/** What pieces that several read were decoded into. */
const decoded = new WeakMap<Buffer, readonly WatchEvent[]>()

/** The same of pieces that others in this process read too: they are decoded once, and nobody may change what they hold. */
export async function* readSharedEvents<T extends KubeObject>(
  groups: AsyncIterable<readonly Buffer[]>,
): AsyncGenerator<readonly WatchEvent<T>[], void, undefined> {
  for await (const pieces of groups) {
    // Of a watch of the same kind.
    yield pieces.flatMap((piece) => eventsIn(piece) as readonly WatchEvent<T>[])
  }
}

/** Of whole lines. */
function eventsIn(piece: Buffer): readonly WatchEvent[] {
  const known = decoded.get(piece)
  if (known !== undefined) return known
  const events: WatchEvent[] = []
  takeLines(piece, [], events)
  decoded.set(piece, events)
  return events
}
