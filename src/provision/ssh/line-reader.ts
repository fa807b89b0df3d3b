/** Reads lines off a stream, and gives back what is left of it: the pipes are for others afterwards. */
import type { Readable } from 'node:stream'

/** Longer ones are no lines of ours. */
const MAX_LINE = 4096

export class LineReader {
  readonly #stream: Readable
  #held: Buffer = Buffer.alloc(0)

  constructor(stream: Readable) {
    this.#stream = stream
  }

  /** Rejects when the stream ends before. */
  async next(): Promise<string> {
    for (;;) {
      const end = this.#held.indexOf('\n')
      if (end >= 0) {
        const line = this.#held.toString('utf8', 0, end)
        this.#held = this.#held.subarray(end + 1)
        return line
      }
      if (this.#held.length > MAX_LINE) throw new Error('The machine says too much')
      this.#held = Buffer.concat([this.#held, await this.#chunk()])
    }
  }

  /** What was read beyond the last line goes back to the stream. */
  release(): void {
    if (this.#held.length > 0) this.#stream.unshift(this.#held)
    this.#held = Buffer.alloc(0)
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
