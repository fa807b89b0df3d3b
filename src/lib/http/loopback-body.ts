/**
 * The body of a streaming response within the process: pieces arrive unsplit, so that readers can compare them by
 * identity, and with backpressure.
 */
export class LoopbackBody {
  readonly #limitBytes: number
  #pieces: Buffer[] = []
  #bytes = 0
  #isEnded = false
  #isClosed = false
  #error: Error | undefined
  #wakeReader = (): void => undefined
  #waiting: (() => void)[] = []
  readonly #closing: (() => void)[] = []

  /** The number of waiting bytes above which the writer must wait. */
  constructor(limitBytes: number) {
    this.#limitBytes = limitBytes
  }

  /** All has been written. */
  get isEnded(): boolean {
    return this.#isEnded
  }

  /** Everything was read, or the reader has gone. */
  get isClosed(): boolean {
    return this.#isClosed
  }

  /** Why it was broken off. */
  get error(): Error | undefined {
    return this.#error
  }

  /** False when the reader is behind: what is written is kept, but no more should follow before `drained`. */
  write(piece: Buffer): boolean {
    if (this.#isEnded || this.#isClosed) return true
    this.#pieces.push(piece)
    this.#bytes += piece.length
    this.#wakeReader()
    return !this.#isFull
  }

  end(): void {
    this.#isEnded = true
    this.#wakeReader()
  }

  /** Drops unread pieces. */
  close(error?: Error): void {
    if (this.#isClosed) return
    this.#isClosed = true
    this.#error = error
    this.#pieces = []
    this.#bytes = 0
    this.#wakeReader()
    this.#makeRoom()
    for (const task of this.#closing.splice(0)) task()
  }

  /** Resolves when there is room again, or the reader has gone. */
  drained(): Promise<void> {
    if (!this.#isFull || this.#isClosed) return Promise.resolve()
    return new Promise((resolve) => this.#waiting.push(resolve))
  }

  onClose(task: () => void): void {
    if (this.#isClosed) task()
    else this.#closing.push(task)
  }

  /** By one reader, all that is there at once. Ends early when it was closed; `error` says whether that was the end. */
  async *read(): AsyncGenerator<readonly Buffer[]> {
    try {
      for (;;) {
        const pieces = this.#take()
        if (pieces.length > 0) yield pieces
        else if (this.#isEnded || this.#isClosed) return
        else await new Promise<void>((resolve) => (this.#wakeReader = resolve))
      }
    } finally {
      this.close()
    }
  }

  #take(): readonly Buffer[] {
    const pieces = this.#pieces
    this.#pieces = []
    this.#bytes = 0
    this.#makeRoom()
    return pieces
  }

  get #isFull(): boolean {
    return this.#bytes >= this.#limitBytes
  }

  #makeRoom(): void {
    for (const go of this.#waiting.splice(0)) go()
  }
}
