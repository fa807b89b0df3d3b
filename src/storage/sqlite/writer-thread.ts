/** The writer thread: executes all queued operations as one group after each flush (group commit). */
import { dirname } from 'node:path'
import type { DatabaseSync } from 'node:sqlite'
import { receiveMessageOnPort, type MessagePort } from 'node:worker_threads'

import { createPrivately } from '#lib/process/lock.ts'

import { StorageError } from '../backend.ts'
import { checkAll } from './check.ts'
import { flushFolder } from './durable-file.ts'
import { asStorageError, toPlain } from './failures.ts'
import { connect, numberOf, prepareSchema, readMeta } from './layout.ts'
import { lockStore, type StoreLock } from './lock.ts'
import {
  unpackOperations,
  type FromCall,
  type FromWriter,
  type Operation,
  type ReaderCall,
  type Result,
  type ToWriter,
  type WriterSettings,
} from './messages.ts'
import { answerCall, memoryOf } from './reader-thread.ts'
import { Reader } from './reader.ts'
import { Ballast, quotaError, SWEEP_ROWS, Upkeep } from './upkeep.ts'
import { findLostCommits } from './wal-check.ts'
import { WriteAheadLog } from './write-ahead-log.ts'
import { Writer } from './writer.ts'

/** Both bound the wait of the first operation of a group. */
const GROUP_OPERATIONS = 512
const GROUP_BYTES = 8 << 20
/** Stores up to this size are fully checked before they serve, also after a clean stop, because it is quick. */
const SMALL_STORE_BYTES = 32 << 20
/** A full store accepts writes again when it is this far below its limit. */
const QUOTA_HYSTERESIS = 0.95

/** Serves until it receives `close`; then it closes the port, which ends the thread. */
export function runWriter(port: MessagePort, settings: WriterSettings): void {
  const post = (message: FromWriter): void => port.postMessage(message)
  try {
    const lock = lockStore(settings.file)
    try {
      const thread = new WriterThread(port, settings, openStore(settings.file, lock, post))
      thread.start()
    } catch (error) {
      lock.release()
      throw error
    }
  } catch (error) {
    post({ type: 'failed', error: toPlain(error) })
    port.close()
  }
}

interface OpenStore {
  readonly db: DatabaseSync
  readonly lock: StoreLock
  readonly isChecked: boolean
}

function openStore(file: string, lock: StoreLock, post: (message: FromWriter) => void): OpenStore {
  createPrivately(file)
  flushFolder(dirname(file))
  const lost = findLostCommits(file)
  if (lost !== undefined) throw lost
  const db = connect(file)
  try {
    prepareSchema(db, file)
    db.exec('PRAGMA journal_mode = WAL')
    const isClean = readMeta(db, 'clean') === 1
    const size = numberOf(db, 'PRAGMA page_count') * numberOf(db, 'PRAGMA page_size')
    if (!isClean && readMeta(db, 'swept') + numberOf(db, 'SELECT max(id) FROM log') > 0) {
      post({ type: 'log', message: `"${file}" was not closed properly: checking it (${size} bytes)` })
    }
    const isChecked = !isClean || size <= SMALL_STORE_BYTES
    if (isChecked) checkAll(db, file)
    return { db, lock, isChecked }
  } catch (error) {
    db.close()
    throw error
  }
}

class WriterThread {
  readonly #port: MessagePort
  readonly #settings: WriterSettings
  readonly #db: DatabaseSync
  readonly #store: OpenStore
  readonly #writer: Writer
  readonly #upkeep: Upkeep
  readonly #ballast: Ballast
  readonly #log: WriteAheadLog
  /** While there is no reader thread. */
  #reader: Reader | undefined
  #queue: Operation[] = []
  /** The clock of the store when the newest operations were sent. */
  #nowMs = 0
  #reported: StorageError | undefined
  #isCheckpointing = false
  #isTidyDue = false
  #isTidying = false
  #isClosing = false

  constructor(port: MessagePort, settings: WriterSettings, store: OpenStore) {
    this.#port = port
    this.#settings = settings
    this.#store = store
    this.#db = store.db
    this.#writer = new Writer(store.db)
    this.#upkeep = new Upkeep(store.db)
    this.#ballast = new Ballast(settings.file, settings.ballastBytes)
    this.#log = new WriteAheadLog(store.db, settings.file)
  }

  /** Locks the store and starts to serve. */
  start(): void {
    try {
      this.#writer.markClean(false)
    } catch (cause) {
      const error = asStorageError(cause)
      if (error.code !== 'no-space') throw error
    }
    this.#post({ type: 'ready', state: { ...this.#writer.state, isChecked: this.#store.isChecked } })
    if (!this.#ballast.take()) this.#runOutOfSpace(asFull(this.#settings.file))
    this.#report()
    this.#port.on('message', (message: ToWriter) => this.#work(message))
    this.#tidyOn()
  }

  #post(message: FromWriter): void {
    this.#port.postMessage(message)
  }

  /** Executes everything in the mailbox until it is empty. */
  #work(first: ToWriter): void {
    for (let message: ToWriter | undefined = first; message !== undefined;) {
      this.#accept(message)
      message = this.#receive()
      if (message !== undefined && this.#queue.length < GROUP_OPERATIONS) continue
      while (this.#queue.length > (message === undefined ? 0 : GROUP_OPERATIONS)) this.#flush()
      message ??= this.#receive()
    }
    // Once, however often it was requested meanwhile: requests must not delay it.
    if (this.#isTidyDue && !this.#isClosing) this.#tidy()
    if (this.#isClosing) this.#close()
  }

  #receive(): ToWriter | undefined {
    return receiveMessageOnPort(this.#port)?.message as ToWriter | undefined
  }

  #accept(message: ToWriter): void {
    switch (message.type) {
      case 'operations':
        this.#nowMs = message.atMs
        for (const operation of unpackOperations(message)) this.#queue.push(operation)
        break
      case 'read':
        this.#read(message.call)
        break
      case 'upkeep':
        this.#isTidyDue = true
        break
      case 'finish-checkpoint':
        this.#isCheckpointing = false
        // There is a reader thread from the first checkpoint on.
        this.#reader?.close()
        this.#reader = undefined
        this.#attempt(() => this.#log.checkpoint())
        break
      case 'close':
        this.#isClosing = true
    }
  }

  /** With a separate connection, which sees only durable data. */
  #read(call: ReaderCall): void {
    const post = (message: FromCall): void => this.#port.postMessage({ type: 'read', message }, memoryOf(message))
    try {
      this.#reader ??= new Reader(this.#settings.file)
      answerCall(this.#reader, call, post)
    } catch (error) {
      post({ type: 'error', id: call.id, error: toPlain(error) })
    }
  }

  /** Executes the next group. */
  #flush(): void {
    const end = groupEnd(this.#queue)
    const group = this.#queue.slice(0, end)
    this.#queue = this.#queue.slice(end)
    const results = this.#run(group)
    // Before the results: a refused caller finds the reason in the store's health.
    this.#report()
    this.#post({ type: 'results', results, atMs: this.#nowMs })
    this.#askForCheckpoint()
  }

  #askForCheckpoint(): void {
    if (this.#isCheckpointing || !this.#attempt(() => this.#log.isCheckpointDue)) return
    this.#isCheckpointing = true
    this.#post({ type: 'wants-checkpoint' })
  }

  #run(group: readonly Operation[]): Result[] {
    if (this.#settings.quotaBytes < Infinity) this.#watchQuota()
    try {
      // More than the group adds, so that the sweep keeps up with any traffic.
      return this.#writer.run(group, this.#nowMs, () => this.#upkeep.sweep(Math.max(SWEEP_ROWS, 2 * group.length)))
    } catch (error) {
      this.#runOutOfSpace(asStorageError(error))
    }
    try {
      // Releasing the ballast makes room for deletes; everything else is refused.
      return this.#writer.run(group, this.#nowMs, () => undefined)
    } catch (error) {
      return group.map(() => ['error', toPlain(error)])
    }
  }

  #runOutOfSpace(error: StorageError): void {
    this.#ballast.release()
    this.#writer.setNoSpace(error)
  }

  #watchQuota(): void {
    const { quotaBytes } = this.#settings
    const used = this.#upkeep.usedBytes()
    if (this.#writer.hasSpace && used > quotaBytes) this.#writer.setNoSpace(quotaError(quotaBytes))
  }

  /** A step of housekeeping, and a check for free space. */
  #tidy(): void {
    this.#isTidyDue = false
    const { quotaBytes } = this.#settings
    if (!this.#writer.hasSpace && this.#ballast.take()) {
      if (this.#upkeep.usedBytes() < QUOTA_HYSTERESIS * quotaBytes) this.#writer.setNoSpace(undefined)
    }
    this.#report()
    if (!this.#isTidying) this.#tidyOn()
  }

  /** Extends the log, sweeps, then vacuums, one step whenever idle, until nothing is left. */
  #tidyOn(): void {
    this.#isTidying = !this.#isClosing && !this.#writer.isBroken && this.#attempt(() => this.#tidyStep())
    this.#askForCheckpoint()
    if (this.#isTidying) setImmediate(() => this.#tidyOn())
  }

  /** False if there was nothing to do. */
  #tidyStep(): boolean {
    if (this.#log.grow()) return true
    if (this.#upkeep.isDue) {
      this.#writer.run([], this.#nowMs, () => this.#upkeep.sweep(SWEEP_ROWS))
      return true
    }
    return this.#upkeep.vacuum()
  }

  /** Housekeeping that fails for lack of space is retried at the next opportunity; false then. */
  #attempt(step: () => boolean | void): boolean {
    try {
      return step() ?? true
    } catch (cause) {
      const error = asStorageError(cause)
      if (error.code === 'no-space') this.#runOutOfSpace(error)
      else this.#post({ type: 'log', message: `Upkeep of the store failed: ${error.message}` })
      this.#report()
      return false
    }
  }

  #report(): void {
    const { trouble } = this.#writer
    if (trouble === this.#reported) return
    this.#reported = trouble
    this.#post({ type: 'trouble', error: trouble && toPlain(trouble) })
  }

  #close(): void {
    this.#reader?.close()
    if (this.#writer.trouble === undefined) {
      this.#attempt(() => {
        this.#writer.markClean(true)
        this.#db.exec('PRAGMA wal_checkpoint(TRUNCATE)')
      })
    }
    this.#db.close()
    this.#store.lock.release()
    this.#port.close()
  }
}

/** The number of operations in the next group: at least one. */
function groupEnd(operations: readonly Operation[]): number {
  let bytes = 0
  let end = 0
  while (end < operations.length && end < GROUP_OPERATIONS && bytes < GROUP_BYTES) {
    bytes += bytesOf(operations[end++] as Operation)
  }
  return end
}

function bytesOf([kind, argument]: Operation): number {
  if (kind !== 'commit') return 0
  return argument.reduce<number>((sum, slot) => sum + (slot instanceof Uint8Array ? slot.length : 0), 0)
}

function asFull(file: string): StorageError {
  return new StorageError('no-space', `The disk of "${file}" is full; free some space`)
}
