/**
 * A rotating log file: a full `audit.log` becomes `audit-2026-01-02T03-04-05.678.log`, and old backups are removed.
 * Names, sizes and order are those of lumberjack, which upstream uses. Lines that arrive during a write are written
 * together next, so that many requests wait for few writes. A partial write is undone: the file contains only whole
 * lines.
 */
import { type FileHandle, mkdir, open, rename, stat } from 'node:fs/promises'
import { dirname } from 'node:path'

import type { Clock } from '#lib/clock.ts'

import { type Backups, createBackups } from './backups.ts'
import type { LineWriter } from './log-sink.ts'

export interface RotatingFileOptions {
  readonly clock: Clock
  /** `--audit-log-maxsize` in bytes; 0: never rotate. */
  readonly maxBytes: number
  /** `--audit-log-maxage`; 0: for ever. */
  readonly maxAgeDays: number
  /** `--audit-log-maxbackup`; 0: any number. */
  readonly maxBackups: number
  readonly compress: boolean
  /** Called if the clean-up of old files failed. */
  readonly onError?: (error: unknown) => void
}

interface Line {
  /** One character per byte. */
  readonly text: string
  readonly done: () => void
  readonly failed: (error: Error) => void
}

/** More than the lines of a busy moment. */
const SCRATCH_BYTES = 256 << 10

/** Opens the file and creates it and its directory for their owner only. Rejects if it is not writable. */
export async function openRotatingFile(path: string, options: RotatingFileOptions): Promise<LineWriter> {
  await mkdir(dirname(path), { recursive: true, mode: 0o700 })
  const file = new RotatingFile(path, options)
  await file.open()
  return file
}

class RotatingFile implements LineWriter {
  readonly #path: string
  readonly #options: RotatingFileOptions
  readonly #backups: Backups
  #handle: FileHandle | undefined
  /** 0: unlimited. A device or a pipe is never rotated, because it would lose its name. */
  #maxBytes = 0
  /** The size of the file; never more than `maxBytes`. */
  #size = 0
  /** Lines that wait for their write, oldest first. */
  #waiting: Line[] = []
  #writing: Promise<void> | undefined
  /** The reused write buffer: new memory for each write would burden the garbage collector. */
  readonly #scratch = Buffer.allocUnsafeSlow(SCRATCH_BYTES)

  constructor(path: string, options: RotatingFileOptions) {
    this.#path = path
    this.#options = options
    this.#backups = createBackups(path, options)
  }

  async open(): Promise<void> {
    this.#handle = await open(this.#path, 'a', MODE)
    const found = await this.#handle.stat()
    this.#size = found.size
    const isRotated = found.isFile() && !DEVICES.test(this.#path)
    this.#maxBytes = isRotated ? this.#options.maxBytes : 0
    if (this.#maxBytes > 0) this.#backups.tidy()
  }

  write(line: string): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    this.#waiting.push({ text: line, done: resolve, failed: reject })
    this.#writing ??= this.#writeAll()
    return promise
  }

  async close(): Promise<void> {
    await this.#writing
    await this.#handle?.close()
    this.#handle = undefined
    await this.#backups.tidied()
  }

  async #writeAll(): Promise<void> {
    // Lines of the same turn of the event loop are written together.
    await new Promise((done) => setImmediate(done))
    while (this.#waiting.length > 0) await this.#writeSome()
    this.#writing = undefined
  }

  async #writeSome(): Promise<void> {
    const maxBytes = this.#maxBytes
    const [first] = this.#waiting
    if (maxBytes > 0 && first !== undefined && first.text.length > maxBytes) {
      this.#waiting.shift()
      const error = `write length ${first.text.length} exceeds maximum file size ${maxBytes}`
      return first.failed(new Error(error))
    }
    let lines: readonly Line[] = this.#waiting
    try {
      if (first !== undefined && !this.#fits(first.text.length)) await this.#rotate()
      lines = this.#takeFitting()
      await this.#append(this.#bytesOf(lines.map(({ text }) => text).join('')))
      for (const { done } of lines) done()
    } catch (error) {
      if (lines === this.#waiting) this.#waiting = []
      for (const { failed } of lines) failed(error as Error)
    }
  }

  #fits(bytes: number): boolean {
    const maxBytes = this.#maxBytes
    return maxBytes === 0 || this.#size + bytes <= maxBytes
  }

  /** The lines that fit, at least the first. */
  #takeFitting(): Line[] {
    let count = 0
    let bytes = 0
    for (const line of this.#waiting) {
      bytes += line.text.length
      if (count > 0 && !this.#fits(bytes)) break
      count++
    }
    return this.#waiting.splice(0, count)
  }

  /** Valid until the next call. */
  #bytesOf(text: string): Buffer {
    if (text.length > SCRATCH_BYTES) return Buffer.from(text, 'latin1')
    return this.#scratch.subarray(0, this.#scratch.write(text, 'latin1'))
  }

  async #append(bytes: Buffer): Promise<void> {
    const handle = (this.#handle ??= await open(this.#path, 'a', MODE))
    const before = this.#size
    try {
      for (let done = 0; done < bytes.length;) {
        done += (await handle.write(bytes, done, bytes.length - done)).bytesWritten
      }
      this.#size = before + bytes.length
    } catch (error) {
      // Another process may have truncated the file; then there is nothing to undo.
      const { size } = await handle.stat()
      if (size > before) await handle.truncate(before)
      this.#size = Math.min(size, before)
      throw error
    }
  }

  async #rotate(): Promise<void> {
    const { mode } = await stat(this.#path).catch(() => ({ mode: MODE }))
    await this.#handle?.close()
    this.#handle = undefined
    await rename(this.#path, await this.#backups.nextName()).catch(ignoreMissing)
    this.#handle = await open(this.#path, 'a', mode & 0o777)
    this.#size = (await this.#handle.stat()).size
    this.#backups.tidy()
  }
}

/** `/dev/stdout` may lead to a regular file, and is a link that other programs need. */
const DEVICES = /^\/(dev|proc)\//

/** Audit logs are sensitive: for their owner only. */
const MODE = 0o600

/** Another process removed the file: there is nothing to rotate. */
function ignoreMissing(error: NodeJS.ErrnoException): void {
  if (error.code !== 'ENOENT') throw error
}
