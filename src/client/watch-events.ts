/** Parses the events of a watch: one JSON document per line. Events of one read are delivered as one batch. */
import { readJson } from '#lib/json/json.ts'
import type { KubeObject } from '#meta/object.ts'
import type { WatchEvent } from '#meta/watch.ts'

const NEWLINE = 0x0a

/** Drops an incomplete last line. */
export async function* readWatchEvents<T extends KubeObject>(
  pieces: AsyncIterable<Buffer>,
): AsyncGenerator<readonly WatchEvent<T>[], void, undefined> {
  const begun: Buffer[] = []
  for await (const piece of pieces) {
    const events: WatchEvent[] = []
    try {
      takeLines(piece, begun, events)
    } finally {
      // Also yields the events before an unreadable line. The caller knows the kind.
      if (events.length > 0) yield events as WatchEvent<T>[]
    }
  }
}

/** Adds complete lines to `events`; `begun` carries an incomplete line over to the next call. */
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

/** Decoded chunks that several clients of this process read. */
const decoded = new WeakMap<Buffer, readonly WatchEvent[]>()

/**
 * Like readWatchEvents, for chunks that clients in this process share. Each chunk is decoded once, and callers must
 * not change the objects.
 */
export async function* readSharedEvents<T extends KubeObject>(
  groups: AsyncIterable<readonly Buffer[]>,
): AsyncGenerator<readonly WatchEvent<T>[], void, undefined> {
  for await (const pieces of groups) {
    // The caller knows the kind.
    yield pieces.flatMap((piece) => eventsIn(piece) as readonly WatchEvent<T>[])
  }
}

/** The chunk contains whole lines only. */
function eventsIn(piece: Buffer): readonly WatchEvent[] {
  const known = decoded.get(piece)
  if (known !== undefined) return known
  const events: WatchEvent[] = []
  takeLines(piece, [], events)
  decoded.set(piece, events)
  return events
}
