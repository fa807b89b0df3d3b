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
