/**
 * Generates random traffic on a store: clients that write and read, watchers that start around the current revision,
 * and a client that compacts. Every value is written once. The seed determines everything except for timing.
 */
import { createSeededRandom, type Random } from '#lib/random.ts'
import type { LeaseId, Revision } from '#storage/backend.ts'

import type { Recorder } from './history.ts'
import { pause } from './pause.ts'
import {
  type Calls,
  COLLECTIONS,
  type Item,
  type Method,
  NotSentError,
  type TextWrite,
  under,
  type Via,
} from './store.ts'
import { startWatcher, type Watcher } from './watcher.ts'

export interface TrafficOptions {
  readonly recorder: Recorder
  readonly seed: number
  readonly writers: number
  readonly watchers: number
  /** Time to live of leases. */
  readonly ttlMs: number
  /** A pause between two operations of a client, at most. */
  readonly pauseMs: number
  readonly compactEveryMs: number
  /** Values are this long at most. */
  readonly valueBytes: number
}

const KEYS = COLLECTIONS.flatMap((prefix) => Array.from({ length: 6 }, (_, n) => `${prefix}ns/${'abcdef'[n]}`))
/** A watch begins at most so far from the present, either way. */
const OFFSET = 100
/** The delay before a call is repeated while the store is down. */
const RETRY_MS = 5

type Action = (client: Client) => Promise<unknown>

/** How often each is drawn, relative to the others. */
const ACTIONS: readonly (readonly [weight: number, action: Action])[] = [
  [16, (client) => client.commit([client.put()])],
  [16, (client) => client.commit([client.guarded(client.put())])],
  [6, (client) => client.commit([{ ...client.put(), expected: 0 }])],
  [7, (client) => client.commit([{ key: client.key(), value: null }])],
  [5, (client) => client.commit([client.guarded({ key: client.key(), value: null })])],
  [8, (client) => client.commit(client.batch())],
  [4, (client) => client.commit(client.batch().map((write) => client.guarded(write)))],
  [8, (client) => client.get('backend')],
  [5, (client) => client.get('cache')],
  [6, (client) => client.list('backend')],
  [5, (client) => client.list('cache')],
  [4, (client) => client.pages()],
  [4, (client) => client.past()],
  [3, (client) => client.call('revision', null)],
  [2, (client) => client.leased()],
  [1, (client) => client.renew()],
  [1, (client) => client.revoke()],
]
const TOTAL_WEIGHT = ACTIONS.reduce((sum, [weight]) => sum + weight, 0)

export class Traffic {
  readonly #options: TrafficOptions
  readonly #clients: Client[]
  readonly #watchers: Watcher[]
  readonly #running: Promise<void>[]
  #isStopped = false

  constructor(options: TrafficOptions) {
    this.#options = options
    const { recorder, writers, watchers, seed } = options
    this.#clients = Array.from({ length: writers }, (_, n) => new Client(n, options))
    this.#running = this.#clients.map((client) => this.#drive(client))
    this.#running.push(this.#compact(new Client(writers, options)))
    const offset = (random: Random): number => random.int(2 * OFFSET + 1) - OFFSET
    this.#watchers = Array.from({ length: watchers }, (_, n) =>
      startWatcher({ client: 100 + n, recorder, random: createSeededRandom(seed + 1000 * n), offset }),
    )
  }

  /** Lets the operations under way end, and begins no others. Watches go on. */
  async stop(): Promise<void> {
    this.#isStopped = true
    await Promise.all(this.#running)
  }

  /** Lets every watch come to `revision` and ends it; those that do not in time are marked. */
  async drain(revision: Revision, timeoutMs: number): Promise<void> {
    await Promise.all(this.#watchers.map((watcher) => watcher.finish(revision, timeoutMs)))
  }

  async #drive(client: Client): Promise<void> {
    while (!this.#isStopped) {
      await client.act()
      await pause(client.random.int(1000) * this.#options.pauseMs * 0.001)
    }
  }

  async #compact(client: Client): Promise<void> {
    while (!this.#isStopped) {
      await pause(this.#options.compactEveryMs)
      const revision = await client.call('revision', null)
      // Mostly behind the watchers, sometimes among them.
      const back = client.random.int(4) === 0 ? client.random.int(20) : 150 + client.random.int(300)
      if (revision !== undefined && revision > back) await client.call('compact', revision - back)
    }
  }
}

/** One client: what it knows of the store, and what it can do to it. */
export class Client {
  readonly #id: number
  readonly #options: TrafficOptions
  readonly random: Random
  /** By key: the revision last heard of; right often enough to pass a guard, wrong often enough to fail it. */
  readonly #known = new Map<string, Revision>()
  #latest: Revision = 0
  #lease: LeaseId | undefined
  #values = 0

  constructor(id: number, options: TrafficOptions) {
    this.#id = id
    this.#options = options
    this.random = createSeededRandom(options.seed * 7919 + id)
  }

  async act(): Promise<void> {
    let draw = this.random.int(TOTAL_WEIGHT)
    for (const [weight, action] of ACTIONS) {
      draw -= weight
      if (draw < 0) return void (await action(this))
    }
  }

  /** Undefined when it failed, or could not be sent. */
  async call<M extends Method>(method: M, argument: Calls[M]['argument']): Promise<Calls[M]['result'] | undefined> {
    try {
      return await this.#options.recorder.call(this.#id, method, argument)
    } catch (error) {
      if (!(error instanceof NotSentError)) throw error
      await pause(RETRY_MS)
      return undefined
    }
  }

  key(): string {
    return KEYS[this.random.int(KEYS.length)] as string
  }

  put(key: string = this.key()): TextWrite {
    const name = `${this.#options.seed}.${this.#id}.${++this.#values}~`
    const length = this.random.int(20) === 0 ? this.random.int(this.#options.valueBytes) : this.random.int(200)
    return { key, value: name.padEnd(length, name) }
  }

  guarded(write: TextWrite): TextWrite {
    return { ...write, expected: this.#known.get(write.key) ?? 0 }
  }

  /** Writes several keys in one commit. At most some are deleted, so that a value identifies the commit. */
  batch(): TextWrite[] {
    const keys = new Set(Array.from({ length: 2 + this.random.int(3) }, () => this.key()))
    return [...keys].map((key, at) => (at > 0 && this.random.int(4) === 0 ? { key, value: null } : this.put(key)))
  }

  async commit(writes: readonly TextWrite[]): Promise<void> {
    const result = await this.call('commit', writes)
    if (result === undefined) return
    this.#latest = Math.max(this.#latest, result.revision)
    writes.forEach(({ key, value }, at) => {
      const mod = result.ok ? (value === null ? 0 : result.revision) : (result.items[at]?.mod ?? 0)
      this.#known.set(key, mod)
    })
  }

  async get(via: Via): Promise<void> {
    const key = this.key()
    const result = await this.call('range', { start: key, via })
    if (result !== undefined) this.#learn(key, result.items[0], result.revision)
  }

  async list(via: Via): Promise<void> {
    const prefix = COLLECTIONS[this.random.int(COLLECTIONS.length)] as string
    const result = await this.call('range', { ...under(prefix), via })
    for (const item of result?.items ?? []) this.#learn(item.key, item, result?.revision ?? 0)
  }

  /** A list in pages: the later ones at the revision of the first. */
  async pages(): Promise<void> {
    const { start, end } = under('/registry/')
    const limit = 1 + this.random.int(4)
    let page = await this.call('range', { start, end, limit, via: 'backend' })
    const revision = page?.revision ?? 0
    while (page?.more) {
      const after = page.items.at(-1)?.key ?? ''
      page = await this.call('range', { start: `${after}\0`, end, limit, revision, via: 'backend' })
    }
  }

  async past(): Promise<void> {
    const revision = this.#latest - this.random.int(60)
    if (revision > 0) await this.call('range', { ...under('/registry/'), revision, via: 'backend' })
  }

  async leased(): Promise<void> {
    const lease = await this.call('grant', this.#options.ttlMs)
    if (lease === undefined) return
    this.#lease = lease
    await this.commit([{ ...this.put(), lease }])
    if (this.random.int(2) === 0) await this.commit([{ ...this.put(), lease }])
  }

  async renew(): Promise<void> {
    if (this.#lease !== undefined) await this.call('renew', this.#lease)
  }

  async revoke(): Promise<void> {
    const lease = this.#lease
    this.#lease = undefined
    if (lease !== undefined) await this.call('revoke', lease)
  }

  #learn(key: string, item: Item | undefined, revision: Revision): void {
    this.#known.set(key, item?.mod ?? 0)
    this.#latest = Math.max(this.#latest, revision)
  }
}
