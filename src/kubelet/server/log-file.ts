/**
 * Logs as container runtimes write them, a line `2026-11-15T10:13:59.271175292Z stderr F text` at a time, read from disk as
 * people ask for them: from a time on, so many lines from the end, as it grows. A line that was too long for the runtime
 * comes in parts (`P`), the last of which is `F`.
 */
import { type FileHandle, open, stat } from 'node:fs/promises'

import { type Clock, sleep } from '#lib/clock.ts'

import type { LogWish } from '../log-wish.ts'

export interface LogSink {
  /** Resolves when more can be taken; false: nobody listens any more. */
  write(piece: Buffer): Promise<boolean>
}

export interface LogSource {
  readonly path: string
  readonly clock: Clock
  /** Whether more can come. */
  readonly isGrowing: () => boolean
  readonly signal: AbortSignal
}

const BLOCK_BYTES = 64 << 10
/** No runtime writes longer ones; what has none is not a log. */
const MAX_LINE_BYTES = 1 << 20
/** How soon those who follow hear what is new. */
const FOLLOW_MS = 200
const NEWLINE = 0x0a

export async function sendLog(source: LogSource, wish: LogWish, sink: LogSink): Promise<void> {
  let file = await open(source.path, 'r')
  try {
    const printer = new Printer(wish)
    const { size } = await file.stat()
    const start = wish.tailLines === undefined ? 0 : await tailStart(file, size, wish.tailLines)
    // What is written meanwhile would be one line too many.
    const end = wish.tailLines === undefined || wish.follow ? Number.POSITIVE_INFINITY : size
    let place = await copy(file, { start, end }, printer, sink)
    while (wish.follow && place !== undefined && !source.signal.aborted) {
      const isLast = !source.isGrowing()
      if (!isLast) await sleep(source.clock, FOLLOW_MS, source.signal).catch(() => undefined)
      // Looked for before the rest is read: what is written until then is in the old file.
      const next = await successor(file, source.path)
      place = await copy(file, { start: place, end: Number.POSITIVE_INFINITY }, printer, sink)
      if (isLast) break
      if (next === undefined) continue
      await file.close()
      file = next
      place &&= 0
    }
  } finally {
    await file.close()
  }
}

/** The file that has taken the name of the one that is read, when it was put aside. */
async function successor(file: FileHandle, path: string): Promise<FileHandle | undefined> {
  const [mine, named] = await Promise.all([file.stat(), stat(path).catch(() => undefined)])
  return named === undefined || named.ino === mine.ino ? undefined : open(path, 'r').catch(() => undefined)
}

interface Part {
  readonly start: number
  readonly end: number
}

/** Writes out the whole lines of a part; where the next one begins, or undefined when no more is wanted. */
async function copy(
  file: FileHandle,
  { start, end: last }: Part,
  printer: Printer,
  sink: LogSink,
): Promise<number | undefined> {
  const block = Buffer.allocUnsafe(BLOCK_BYTES)
  let rest = Buffer.alloc(0)
  let place = start
  for (;;) {
    const from = place + rest.length
    if (from >= last) return place
    const { bytesRead } = await file.read(block, 0, Math.min(block.length, last - from), from)
    if (bytesRead === 0) return place
    const bytes = Buffer.concat([rest, block.subarray(0, bytesRead)])
    const end = bytes.lastIndexOf(NEWLINE) + 1
    if (end === 0 && bytes.length > MAX_LINE_BYTES) return undefined
    rest = bytes.subarray(end)
    place += end
    const printed = printer.print(bytes.subarray(0, end))
    if (printed.length > 0 && !(await sink.write(printed))) return undefined
    if (printer.isDone) return undefined
  }
}

/** Where the last `count` lines begin. */
async function tailStart(file: FileHandle, size: number, count: number): Promise<number> {
  let end = size
  // The newline at the end of the last line ends it, and begins nothing.
  let left = count + 1
  while (end > 0) {
    const start = Math.max(0, end - BLOCK_BYTES)
    const { buffer, bytesRead } = await file.read(Buffer.allocUnsafe(end - start), 0, end - start, start)
    for (let at = bytesRead - 1; at >= 0; at--) if (buffer[at] === NEWLINE && --left === 0) return start + at + 1
    end = start
  }
  return 0
}

/** Lines of the runtime as lines for people. Remembers whether the last one was complete, and how much may still come. */
class Printer {
  readonly #wish: LogWish
  #isNewLine = true
  #leftBytes: number

  constructor(wish: LogWish) {
    this.#wish = wish
    this.#leftBytes = wish.limitBytes
  }

  get isDone(): boolean {
    return this.#leftBytes <= 0
  }

  print(lines: Buffer): Buffer {
    const pieces: Buffer[] = []
    for (let at = 0; at < lines.length && this.#leftBytes > 0;) {
      const end = lines.indexOf(NEWLINE, at) + 1
      for (const piece of this.#parts(lines.subarray(at, end))) {
        const kept = piece.subarray(0, Math.min(piece.length, this.#leftBytes))
        pieces.push(kept)
        this.#leftBytes -= kept.length
      }
      at = end
    }
    return Buffer.concat(pieces)
  }

  /** `line` with its newline; nothing of those that are no such line, or too old. */
  #parts(line: Buffer): Buffer[] {
    const time = line.indexOf(' ')
    const stream = line.indexOf(' ', time + 1)
    const tag = line.indexOf(' ', stream + 1)
    if (time < 0 || stream < 0 || tag < 0) return []
    const { sinceMs, timestamps } = this.#wish
    if (sinceMs !== undefined && Date.parse(line.toString('latin1', 0, time)) < sinceMs) return []
    const isPartial = line[stream + 1] === 0x50
    const text = line.subarray(tag + 1, isPartial ? line.length - 1 : line.length)
    const parts = timestamps && this.#isNewLine ? [line.subarray(0, time + 1), text] : [text]
    this.#isNewLine = !isPartial
    return parts
  }
}
