/**
 * The writer and reader threads of an open store. If one fails, both are closed. In a small store the writer also
 * reads, because a thread takes 10 MB.
 */
import { statSync } from 'node:fs'

import type { Clock } from '#lib/clock.ts'

import type { StorageError } from '../backend.ts'
import { fromPlain } from './failures.ts'
import {
  packOperations,
  type FromReader,
  type FromWriter,
  type StoreState,
  type ToReader,
  type ToWriter,
  type WriterSettings,
} from './messages.ts'
import { ReadCalls } from './read-calls.ts'
import { startThread, type Thread } from './thread.ts'
import { WriteQueue } from './write-queue.ts'

/** From this size on there is a reader thread. A growing store gets one with its first checkpoint. */
const SMALL_STORE_BYTES = 4 << 20

interface ThreadTools {
  readonly clock: Clock
  readonly log: (message: string) => void
}

/** Fails with the error of opening the store; nothing is left running then. */
export async function openThreads(settings: WriterSettings, tools: ThreadTools): Promise<Threads> {
  const threads = new Threads(settings, tools)
  try {
    await threads.opened
    return threads
  } catch (error) {
    await threads.kill()
    throw error
  }
}

export class Threads {
  readonly writes: WriteQueue
  readonly reads: ReadCalls
  /** The opened store; rejects if it could not be opened. */
  readonly opened: Promise<StoreState>
  readonly #writer: Thread<ToWriter>
  readonly #startReader: () => Thread<ToReader>
  /** Starts to open the store at once, and accepts further calls meanwhile. */
  #reader: Thread<ToReader> | undefined
  readonly #log: (message: string) => void
  readonly #opening: PromiseWithResolvers<StoreState> = Promise.withResolvers()
  #found: StoreState | undefined
  #death: StorageError | undefined
  /** The writer's current problem. */
  #trouble: StorageError | undefined
  /** Damage that a read has found; it is permanent. */
  #damage: StorageError | undefined
  #onDeath: (error: StorageError) => void = () => undefined
  #isClosing = false

  constructor(settings: WriterSettings, { clock, log }: ThreadTools) {
    this.#log = log
    this.opened = this.#opening.promise
    const died = (error: StorageError): void => this.#die(error)
    const isExpected = (): boolean => this.#isClosing
    const fromWriter = (message: FromWriter): void => this.#hearWriter(message)
    const fromReader = (message: FromReader): void => this.#hearReader(message)
    this.#writer = startThread(settings, { message: fromWriter, died }, isExpected)
    const { file } = settings
    this.#startReader = () => startThread({ role: 'reader', file }, { message: fromReader, died }, isExpected)
    const size = statSync(file, { throwIfNoEntry: false })?.size ?? 0
    if (size > SMALL_STORE_BYTES) this.#reader = this.#startReader()
    this.writes = new WriteQueue((operations) => {
      const packed = packOperations(operations, clock.now())
      this.#writer.post(packed, [packed.values.buffer])
    }, clock)
    this.reads = new ReadCalls((call) => {
      if (this.#reader === undefined) this.#writer.post({ type: 'read', call })
      else this.#reader.post(call)
    }, clock)
  }

  /** The problem, if any. */
  get trouble(): StorageError | undefined {
    return this.#death ?? this.#damage ?? this.#trouble
  }

  get isDead(): boolean {
    return this.#death !== undefined
  }

  /** Throws if a thread has died. */
  checkAlive(): void {
    if (this.#death !== undefined) throw this.#death
  }

  onDeath(callback: (error: StorageError) => void): void {
    this.#onDeath = callback
  }

  /** Runs a step of housekeeping on the writer. */
  tidy(): void {
    this.#writer.post({ type: 'upkeep' })
  }

  /** Finishes submitted operations; then everything fails with `closed`. */
  async close(closed: StorageError): Promise<void> {
    await this.writes.drained()
    this.#isClosing = true
    this.writes.fail(closed)
    this.reads.fail(closed)
    this.#reader?.post({ method: 'close' })
    await this.#reader?.ended
    // Last, so that the database is complete in one file afterwards.
    this.#writer.post({ type: 'close' })
    await this.#writer.ended
  }

  /** Terminates both; pending calls fail. */
  async kill(): Promise<void> {
    this.#isClosing = true
    await Promise.all([this.#writer.kill(), this.#reader?.kill()])
  }

  #hearWriter(message: FromWriter): void {
    switch (message.type) {
      case 'results':
        return this.writes.deliver(message.results, message.atMs)
      case 'read':
        return this.#hearReader(message.message)
      case 'ready':
        this.#found = message.state
        if (this.#reader === undefined) return this.#opening.resolve(message.state)
        return this.#reader.post({ method: 'open' })
      case 'failed':
        return this.#failToOpen(message.error)
      case 'trouble':
        return this.#setTrouble(message.error && fromPlain(message.error))
      case 'wants-checkpoint':
        return this.#checkpoint()
      case 'log':
        return this.#log(message.message)
    }
  }

  /** The end of the threads is expected now. */
  #failToOpen(error: Parameters<typeof fromPlain>[0]): void {
    this.#isClosing = true
    this.#opening.reject(fromPlain(error))
  }

  #hearReader(message: FromReader): void {
    if (message.type === 'ready') return this.#opening.resolve(this.#found as StoreState)
    if (message.type === 'failed') return this.#die(fromPlain(message.error))
    if (message.type === 'error' && message.error.code === 'corrupt') this.#findDamage(fromPlain(message.error))
    this.reads.deliver(message)
  }

  #setTrouble(trouble: StorageError | undefined): void {
    this.#trouble = trouble
    this.#log(trouble?.message ?? 'The store works as it should again')
  }

  #findDamage(damage: StorageError): void {
    if (this.#damage === undefined) this.#log(damage.message)
    this.#damage ??= damage
  }

  /** The reader copies what it can during writes; the writer copies the small rest. */
  #checkpoint(): void {
    if (this.#reader === undefined) {
      this.#reader = this.#startReader()
      this.#reader.post({ method: 'open' })
    }
    const finish = (): void => this.#writer.post({ type: 'finish-checkpoint' })
    this.reads.call('checkpoint', undefined).then(finish, finish)
  }

  #die(error: StorageError): void {
    if (this.#death !== undefined) return
    this.#death = error
    this.#log(error.message)
    this.#opening.reject(error)
    this.writes.fail(error)
    this.reads.fail(error)
    this.#onDeath(error)
    // One without the other is useless, and the store must be free to be opened again.
    void this.kill()
  }
}
