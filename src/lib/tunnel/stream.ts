/** The base class of tunnel streams, for both versions of the protocol. */
import { Duplex } from 'node:stream'

import type { Clock } from '../clock.ts'
import { type Frame, MAX_DATA_BYTES, type Priority } from './frames.ts'
import { Inbox } from './inbox.ts'
import type { FrameSource } from './send-queue.ts'

/** The tunnel, as its streams use it. */
export interface StreamHost {
  readonly clock: Clock
  /** The shortest time in which the other side has answered. */
  readonly delayMs: number
  control(stream: number, kind: number, body?: Buffer): void
  ready(stream: FrameSource): void
  /** Records by how many bytes the buffers of a stream have grown. */
  buffered(bytes: number): void
  /** Takes bytes from what all windows may have together; false if too few are left. */
  reserve(bytes: number): boolean
  release(bytes: number): void
}

export interface StreamOptions {
  readonly id: number
  readonly priority: Priority
  readonly host: StreamHost
  /** This side opened the stream. */
  readonly isDialed: boolean
}

const READ_AHEAD_BYTES = 48 << 10
/** A smaller piece of a large message is copied, so that it does not keep the message in memory. */
const SMALL_BYTES = 16 << 10

export abstract class TunnelStream extends Duplex implements FrameSource {
  readonly id: number
  readonly priority: Priority
  protected readonly host: StreamHost
  protected readonly isDialed: boolean
  readonly #inbox = new Inbox()
  /** The bytes of the buffers that the tunnel counts. */
  #counted = 0
  #isWanted = false
  #hasRemoteEnded = false
  #outgoing: Buffer[] = []
  /** The bytes of the write that is under way. */
  #writeBytes = 0
  /** The user has called `end`. */
  #isEnding = false
  #written: ((error?: Error | null) => void) | undefined

  constructor({ id, priority, host, isDialed }: StreamOptions, allowHalfOpen: boolean) {
    super({ allowHalfOpen, readableHighWaterMark: READ_AHEAD_BYTES })
    this.id = id
    this.priority = priority
    this.host = host
    this.isDialed = isDialed
  }

  /** How many bytes may be sent now. */
  protected abstract get allowance(): number
  protected abstract sent(bytes: number): void
  /** The kind of the next frame with data. `isLast`: no other follows. */
  protected abstract kindOfData(isLast: boolean): number
  /** The reader has taken bytes out of the inbox. */
  protected abstract taken(bytes: number): void
  /** Tells the other side that this stream is destroyed, if it has to know. */
  protected abstract farewell(error: Error | null): void
  /** Handles a frame for this stream. Throws FrameError. */
  abstract handle(frame: Frame): void

  get hasFrame(): boolean {
    return this.#outgoing.length > 0 && this.allowance > 0
  }

  get bufferedBytes(): number {
    return this.#inbox.bytes + this.readableLength
  }

  get hasRemoteEnded(): boolean {
    return this.#hasRemoteEnded
  }

  nextFrame(): Frame | undefined {
    if (!this.hasFrame) return undefined
    const body = this.#takeOutgoing(Math.min(MAX_DATA_BYTES, this.allowance))
    this.sent(body.length)
    const isWritten = this.#outgoing.length === 0
    const kind = this.kindOfData(isWritten && this.#isEnding && this.writableLength === this.#writeBytes)
    if (isWritten) this.#finishWrite()
    return { stream: this.id, kind, body }
  }

  override end(...args: unknown[]): this {
    this.#isEnding = true
    return (super.end as (...all: unknown[]) => this)(...args)
  }

  override _write(chunk: Buffer, _encoding: string, done: (error?: Error | null) => void): void {
    this.#write([chunk], done)
  }

  override _writev(chunks: readonly { readonly chunk: Buffer }[], done: (error?: Error | null) => void): void {
    this.#write(
      chunks.map(({ chunk }) => chunk),
      done,
    )
  }

  override _read(): void {
    this.#isWanted = true
    this.#deliver()
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    this.farewell(error)
    this.#inbox.clear()
    this.host.buffered(-this.#counted)
    this.#counted = 0
    if (this.#written !== undefined) this.dropOutgoing(error ?? new Error('The stream is destroyed'))
    done(error)
  }

  protected receive(body: Buffer): void {
    if (this.destroyed || this.#hasRemoteEnded || body.length === 0) return
    if (this.#isWanted && this.#inbox.bytes === 0) {
      this.#hand(body.length < SMALL_BYTES ? copyOf(body) : body)
      this.taken(body.length)
    } else this.#inbox.append(body)
    this.#count()
  }

  /** The reader finds the end after all bytes that were received. */
  protected endReading(): void {
    if (this.#hasRemoteEnded) return
    this.#hasRemoteEnded = true
    this.#deliver()
  }

  /** Finishes writes without sending their bytes. */
  protected dropOutgoing(error?: Error): void {
    this.#outgoing = []
    this.#finishWrite(error)
  }

  #write(chunks: readonly Buffer[], done: (error?: Error | null) => void): void {
    this.#outgoing = chunks.filter(({ length }) => length > 0)
    this.#writeBytes = chunks.reduce((sum, { length }) => sum + length, 0)
    this.#written = done
    if (this.#outgoing.length === 0) return this.#finishWrite()
    this.writing()
    this.host.ready(this)
  }

  /** Called after each write; for streams whose peer accepts no more. */
  protected writing(): void {
    // Nothing to do for most.
  }

  /** Later, because users' code runs then. */
  #finishWrite(error?: Error): void {
    const written = this.#written
    this.#written = undefined
    if (written !== undefined) process.nextTick(written, error)
  }

  #takeOutgoing(limit: number): Buffer {
    const parts: Buffer[] = []
    let bytes = 0
    for (const chunk of this.#outgoing) {
      if (bytes === limit) break
      parts.push(chunk.subarray(0, limit - bytes))
      bytes += parts.at(-1)?.length ?? 0
    }
    const last = parts.at(-1) as Buffer
    const rest = (this.#outgoing[parts.length - 1] as Buffer).subarray(last.length)
    this.#outgoing.splice(0, parts.length, ...(rest.length > 0 ? [rest] : []))
    return parts.length === 1 ? last : Buffer.concat(parts)
  }

  #deliver(): void {
    let bytes = 0
    while (this.#isWanted) {
      const chunk = this.#inbox.shift()
      if (chunk === undefined) break
      bytes += chunk.length
      this.#hand(chunk)
    }
    this.#count()
    if (this.destroyed) return
    if (this.#hasRemoteEnded && this.#inbox.bytes === 0) this.push(null)
    this.taken(bytes)
  }

  /** `push` may call `_read`, which then sets the flag. */
  #hand(chunk: Buffer): void {
    this.#isWanted = false
    if (this.push(chunk)) this.#isWanted = true
  }

  #count(): void {
    const bytes = this.destroyed ? 0 : this.bufferedBytes
    const change = bytes - this.#counted
    this.#counted = bytes
    if (change !== 0) this.host.buffered(change)
  }
}

function copyOf(bytes: Buffer): Buffer {
  const copy = Buffer.allocUnsafeSlow(bytes.length)
  copy.set(bytes)
  return copy
}
