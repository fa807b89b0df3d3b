/** Reads lines from a stream and pushes unread data back, because another reader continues with the stream. */
import type { Readable } from 'node:stream'

/** Longer lines are not of our protocol. */
const MAX_LINE = 4096

export class LineReader {
  readonly #stream: Readable
  #buffered: Buffer = Buffer.alloc(0)

  constructor(stream: Readable) {
    this.#stream = stream
  }

  /** Rejects if the stream ends early. */
  async next(): Promise<string> {
    for (;;) {
      const end = this.#buffered.indexOf('\n')
      if (end >= 0) {
        const line = this.#buffered.toString('utf8', 0, end)
        this.#buffered = this.#buffered.subarray(end + 1)
        return line
      }
      if (this.#buffered.length > MAX_LINE) throw new Error('The machine sends too much output')
      this.#buffered = Buffer.concat([this.#buffered, await this.#chunk()])
    }
  }

  /** Pushes unread data back to the stream. */
  release(): void {
    if (this.#buffered.length > 0) this.#stream.unshift(this.#buffered)
    this.#buffered = Buffer.alloc(0)
  }

  #chunk(): Promise<Buffer> {
    const stream = this.#stream
    return new Promise((resolve, reject) => {
      const look = (): void => {
        const chunk = stream.read() as Buffer | null
        if (chunk === null && !stream.readableEnded && !stream.destroyed) return
        stream.off('readable', look).off('end', look).off('close', look)
        if (chunk === null) reject(new Error('the connection has ended'))
        else resolve(chunk)
      }
      stream.on('readable', look).on('end', look).on('close', look)
      look()
    })
  }
}
