/**
 * Reads container logs from disk: since a time, the last lines, or following. It parses lines in CRI's format,
 * `2026-11-15T10:13:59.271175292Z stderr F text`.
 */
import { type FileHandle, open, stat } from 'node:fs/promises'

import { type Clock, sleep } from '#lib/clock.ts'

import type { LogOptions } from '../pod/log-options.ts'

export interface LogSink {
  /** Resolves when it accepts more; false: the reader is gone. */
  write(piece: Buffer): Promise<boolean>
}

export interface LogSource {
  readonly path: string
  readonly clock: Clock
  /** True if more output can follow. */
  readonly isGrowing: () => boolean
  readonly signal: AbortSignal
}

const BLOCK_BYTES = 64 << 10
/** Longer than any line of a runtime; a file without line ends is not a log. */
const MAX_LINE_BYTES = 1 << 20
/** Interval at which followers get new output. */
const FOLLOW_MS = 200
const NEWLINE = 0x0a

export async function sendLog(source: LogSource, options: LogOptions, sink: LogSink): Promise<void> {
  let file = await open(source.path, 'r')
  try {
    const printer = new Printer(options)
    const { size } = await file.stat()
    const start = options.tailLines === undefined ? 0 : await tailStart(file, size, options.tailLines)
    // Lines written meanwhile would exceed the requested number.
    const end = options.tailLines === undefined || options.follow ? Number.POSITIVE_INFINITY : size
    let offset = await copy(file, { start, end }, printer, sink)
    while (options.follow && offset !== undefined && !source.signal.aborted) {
      const isLast = !source.isGrowing()
      if (!isLast) await sleep(source.clock, FOLLOW_MS, source.signal).catch(() => undefined)
      // Checked before reading the rest, because output until then is in the old file.
      const next = await successor(file, source.path)
      offset = await copy(file, { start: offset, end: Number.POSITIVE_INFINITY }, printer, sink)
      if (isLast) break
      if (next === undefined) continue
      await file.close()
      file = next
      offset &&= 0
    }
  } finally {
    await file.close()
  }
}

/** The new file after a rotation. */
async function successor(file: FileHandle, path: string): Promise<FileHandle | undefined> {
  const [mine, named] = await Promise.all([file.stat(), stat(path).catch(() => undefined)])
  return named === undefined || named.ino === mine.ino ? undefined : open(path, 'r').catch(() => undefined)
}

interface Part {
  readonly start: number
  readonly end: number
}

/** Sends the whole lines of a range. Returns the offset of the next line, or undefined when the reader has enough. */
async function copy(
  file: FileHandle,
  { start, end: last }: Part,
  printer: Printer,
  sink: LogSink,
): Promise<number | undefined> {
  const block = Buffer.allocUnsafe(BLOCK_BYTES)
  let rest = Buffer.alloc(0)
  let offset = start
  for (;;) {
    const from = offset + rest.length
    if (from >= last) return offset
    const { bytesRead } = await file.read(block, 0, Math.min(block.length, last - from), from)
    if (bytesRead === 0) return offset
    const bytes = Buffer.concat([rest, block.subarray(0, bytesRead)])
    const end = bytes.lastIndexOf(NEWLINE) + 1
    if (end === 0 && bytes.length > MAX_LINE_BYTES) return undefined
    rest = bytes.subarray(end)
    offset += end
    const printed = printer.print(bytes.subarray(0, end))
    if (printed.length > 0 && !(await sink.write(printed))) return undefined
    if (printer.isDone) return undefined
  }
}

/** The offset of the last `count` lines. */
async function tailStart(file: FileHandle, size: number, count: number): Promise<number> {
  let end = size
  // The last newline ends a line and begins none.
  let left = count + 1
  while (end > 0) {
    const start = Math.max(0, end - BLOCK_BYTES)
    const { buffer, bytesRead } = await file.read(Buffer.allocUnsafe(end - start), 0, end - start, start)
    for (let at = bytesRead - 1; at >= 0; at--) if (buffer[at] === NEWLINE && --left === 0) return start + at + 1
    end = start
  }
  return 0
}

/** Formats the runtime's lines for users. It tracks whether the last line was complete and how many bytes are left. */
class Printer {
  readonly #options: LogOptions
  #isNewLine = true
  #leftBytes: number

  constructor(options: LogOptions) {
    this.#options = options
    this.#leftBytes = options.limitBytes
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

  /** `line` includes its newline; empty for an invalid or too old line. */
  #parts(line: Buffer): Buffer[] {
    const time = line.indexOf(' ')
    const stream = line.indexOf(' ', time + 1)
    const tag = line.indexOf(' ', stream + 1)
    if (time < 0 || stream < 0 || tag < 0) return []
    const { sinceMs, timestamps } = this.#options
    if (sinceMs !== undefined && Date.parse(line.toString('latin1', 0, time)) < sinceMs) return []
    const isPartial = line[stream + 1] === 0x50
    const text = line.subarray(tag + 1, isPartial ? line.length - 1 : line.length)
    const parts = timestamps && this.#isNewLine ? [line.subarray(0, time + 1), text] : [text]
    this.#isNewLine = !isPartial
    return parts
  }
}
