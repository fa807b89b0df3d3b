/**
 * Stores the allocated node ports for several servers in one object, upstream's RangeAllocation, with optimistic
 * locking. Changes during a write are batched, so that a single server needs one small commit for many Services.
 */
import type { RangeAllocation } from '#apis/core/v1.ts'
import { schemaFor } from '#apis/schemas.ts'
import { encodeJson } from '#meta/codec/encode-json.ts'
import { decodeObject } from '#meta/codec/object.ts'
import { failure } from '#meta/status-errors.ts'
import type { Backend, KeyValue, Revision } from '#storage/backend.ts'
import type { Resting } from '#storage/encryption/at-rest.ts'

import type { PortLedger, PortRange, Rebuilt } from './node-ports.ts'
import { portBits, portsOf, rangeText } from './port-bits.ts'

/** Upstream's key, so that either server can use the other's store. */
const KEY = '/registry/ranges/servicenodeports'

/** Upstream's resource name, for errors and the encryption configuration. */
export const PORT_ALLOCATIONS: { readonly group: string; readonly resource: string } = {
  group: '',
  resource: 'servicenodeportallocations',
}

/** The number of attempts of a rebuild; after that the next round tries again. */
const REBUILD_TRIES = 10

export interface StoredLedgerOptions {
  readonly backend: Backend
  readonly resting: Resting
  readonly range: PortRange
}

interface Page {
  readonly taken: Set<number>
  /** The revision of the stored object; 0 if it does not exist. */
  readonly revision: Revision
  /** `first-last`, as stored. */
  readonly range: string
  readonly data: string
}

interface Job {
  /** Never throws: errors are kept for `settle`. */
  run(taken: Set<number>): void
  settle(error?: unknown): void
}

/** Allocation fails before the first `rebuild` of the cluster, and while the stored range differs from ours. */
export function createStoredLedger(options: StoredLedgerOptions): PortLedger {
  return new StoredLedger(options)
}

class StoredLedger implements PortLedger {
  readonly #options: StoredLedgerOptions
  readonly #range: string
  /** The last read object; undefined if it must be read again. */
  #page: Page | undefined
  /** Resolves after all earlier work: only one task uses the page at a time. */
  #turn: Promise<unknown> = Promise.resolve()
  /** Changes for the next batch. */
  #waiting: Job[] = []

  constructor(options: StoredLedgerOptions) {
    this.#options = options
    this.#range = rangeText(options.range)
  }

  change<R>(apply: (taken: Set<number>) => R): Promise<R> {
    const { job, outcome } = createJob(apply)
    if (this.#waiting.push(job) === 1) void this.#inTurn(() => this.#runJobs())
    return outcome
  }

  rebuild<R>(plan: (taken: ReadonlySet<number>, isNew: boolean) => Promise<Rebuilt<R>>): Promise<R> {
    return this.#inTurn(async () => {
      for (let tries = REBUILD_TRIES; tries > 0; tries--) {
        const now = await this.#load()
        const { taken, outcome } = await plan(now.taken, now.revision === 0)
        const rebuilt = new Set(taken)
        if (this.#isStored(now, rebuilt) || (await this.#write(now, rebuilt))) return outcome
      }
      throw new Error(
        'Failed to rebuild the ledger of node ports: other servers changed it repeatedly; the next round tries again',
      )
    })
  }

  #inTurn<R>(work: () => Promise<R>): Promise<R> {
    const done = this.#turn.then(work)
    this.#turn = done.catch(() => undefined)
    return done
  }

  async #runJobs(): Promise<void> {
    const jobs = this.#waiting
    this.#waiting = []
    try {
      while (!(await this.#attempt(jobs)));
      for (const job of jobs) job.settle()
    } catch (error) {
      // Its allocations are not stored, or the result is unknown.
      this.#page = undefined
      for (const job of jobs) job.settle(error)
    }
  }

  /** False if it must be repeated with the current object. */
  async #attempt(jobs: readonly Job[]): Promise<boolean> {
    const isFresh = this.#page === undefined
    const now = (this.#page ??= await this.#load())
    checkUsable(now, this.#range)
    for (const job of jobs) job.run(now.taken)
    if (!this.#isStored(now, now.taken)) return this.#write(now, now.taken)
    // Nothing to write: a refusal may rest on data that another server has changed since.
    if (!isFresh) this.#page = undefined
    return isFresh
  }

  async #load(): Promise<Page> {
    const { backend, resting } = this.#options
    const { items } = await backend.range({ start: KEY })
    return readPage(items[0], resting)
  }

  /** True if the stored object has these ports. */
  #isStored({ revision, range, data }: Page, taken: ReadonlySet<number>): boolean {
    return revision > 0 && range === this.#range && data === portBits(taken, this.#options.range)
  }

  /** False after a conflict; the page is then the other server's. */
  async #write({ revision: expected }: Page, taken: Set<number>): Promise<boolean> {
    const { backend, resting, range } = this.#options
    const data = portBits(taken, range)
    const object = { kind: 'RangeAllocation', apiVersion: 'v1', metadata: {}, range: this.#range, data }
    const value = resting.seal(KEY, Buffer.from(encodeJson(object)))
    // The result is unknown if this throws.
    this.#page = undefined
    const result = await backend.commit([{ key: KEY, value, expected }])
    this.#page = result.ok
      ? { taken, revision: result.revision, range: this.#range, data }
      : readPage(result.current[0], resting)
    return result.ok
  }
}

function createJob<R>(apply: (taken: Set<number>) => R): { readonly job: Job; readonly outcome: Promise<R> } {
  const { promise, resolve, reject } = Promise.withResolvers<R>()
  let finish = (): void => undefined
  const job: Job = {
    run(taken) {
      try {
        const result = apply(taken)
        finish = () => resolve(result)
      } catch (error) {
        finish = () => reject(error)
      }
    },
    settle(error) {
      if (error === undefined) finish()
      else reject(error)
    },
  }
  return { job, outcome: promise }
}

function checkUsable({ revision, range }: Page, ownRange: string): void {
  const text =
    revision === 0
      ? `cannot allocate resources of type ${PORT_ALLOCATIONS.resource} at this time`
      : 'the provided range does not match the current range'
  if (revision === 0 || range !== ownRange) throw failure({ code: 500, message: text })
}

function readPage(stored: KeyValue | undefined, resting: Resting): Page {
  if (stored === undefined) return { taken: new Set(), revision: 0, range: '', data: '' }
  const value = resting.open(stored.key, stored.value)
  const bytes = Buffer.from(value.buffer, value.byteOffset, value.byteLength)
  const isText = bytes[0] === OPENING_BRACE
  const { object } = decodeObject(bytes, isText ? 'application/json' : 'application/vnd.kubernetes.protobuf', {
    schemaFor,
    defaultKind: { group: '', version: 'v1', kind: 'RangeAllocation' },
  })
  const { range, data } = object as unknown as RangeAllocation
  return { taken: portsOf(range, data ?? ''), revision: stored.modRevision, range, data: data ?? '' }
}

const OPENING_BRACE = 0x7b
