/**
 * The ledger of node ports that several servers share: one object in the store, upstream's RangeAllocation, changed only
 * as it was read. Changes that come while one is being written are written together, so that a server alone pays one
 * small commit for many Services.
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

/** Where upstream keeps it, so that either server can take over the other's store. */
const KEY = '/registry/ranges/servicenodeports'

/** What upstream calls it, in errors and in the configuration of encryption. */
export const PORT_ALLOCATIONS: { readonly group: string; readonly resource: string } = {
  group: '',
  resource: 'servicenodeportallocations',
}

/** Others that keep changing the ledger while it is rebuilt win so often; then it is left to the next round. */
const REBUILD_TRIES = 10

export interface StoredLedgerOptions {
  readonly backend: Backend
  readonly resting: Resting
  readonly range: PortRange
}

interface Page {
  readonly taken: Set<number>
  /** Of the stored object; 0 when there is none. */
  readonly revision: Revision
  /** `first-last`, as it is stored. */
  readonly range: string
  readonly data: string
}

interface Job {
  /** Never throws: what goes wrong is kept for `settle`. */
  run(taken: Set<number>): void
  settle(error?: unknown): void
}

/** Nothing can be taken before the first `rebuild` of the cluster, or while the stored range is another than ours. */
export function createStoredLedger(options: StoredLedgerOptions): PortLedger {
  return new StoredLedger(options)
}

class StoredLedger implements PortLedger {
  readonly #options: StoredLedgerOptions
  readonly #range: string
  /** As of our last look; undefined when that has to be taken first. */
  #page: Page | undefined
  /** Ends when everything before has ended: only one at a time works on the page. */
  #turn: Promise<unknown> = Promise.resolve()
  /** Changes that will be written together, when it is their turn. */
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
        if (this.#says(now, rebuilt) || (await this.#write(now, rebuilt))) return outcome
      }
      throw new Error('The ledger of node ports changes all the time; it is looked at again in the next round')
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
      // What was taken in it is not stored, or not known to be.
      this.#page = undefined
      for (const job of jobs) job.settle(error)
    }
  }

  /** False when it has to be done again, with what is there now. */
  async #attempt(jobs: readonly Job[]): Promise<boolean> {
    const isFresh = this.#page === undefined
    const now = (this.#page ??= await this.#load())
    checkUsable(now, this.#range)
    for (const job of jobs) job.run(now.taken)
    if (!this.#says(now, now.taken)) return this.#write(now, now.taken)
    // Nothing to write: a refusal, perhaps, that rests on what another server has changed since.
    if (!isFresh) this.#page = undefined
    return isFresh
  }

  async #load(): Promise<Page> {
    const { backend, resting } = this.#options
    const { items } = await backend.range({ start: KEY })
    return readPage(items[0], resting)
  }

  /** Whether this is what is stored. */
  #says({ revision, range, data }: Page, taken: ReadonlySet<number>): boolean {
    return revision > 0 && range === this.#range && data === portBits(taken, this.#options.range)
  }

  /** False when somebody else was faster; the page is then what they wrote. */
  async #write({ revision: expected }: Page, taken: Set<number>): Promise<boolean> {
    const { backend, resting, range } = this.#options
    const data = portBits(taken, range)
    const object = { kind: 'RangeAllocation', apiVersion: 'v1', metadata: {}, range: this.#range, data }
    const value = resting.seal(KEY, Buffer.from(encodeJson(object)))
    // Whether it came about is not known when this throws.
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
