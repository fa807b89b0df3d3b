/**
 * Runs one watcher under test and records its events. After a failure the watch resumes, or starts again at another
 * revision.
 */
import { performance } from 'node:perf_hooks'

import type { Random } from '#lib/random.ts'
import type { Revision } from '#storage/backend.ts'

import type { Recorder } from './history.ts'
import { COLLECTIONS, NotSentError, under, type WatchRequest } from './store.ts'

export interface WatcherOptions {
  readonly client: number
  readonly recorder: Recorder
  readonly random: Random
  /** How far from the present to begin. */
  readonly offset: (random: Random) => number
}

export interface Watcher {
  /** Resolves when the watch has come to `revision`, or has been marked for not getting there in time. */
  finish(revision: Revision, timeoutMs: number): Promise<void>
}

/** A watch lives at most this long before the client ends it. */
const LIFE_MS = 700
const RETRY_MS = 10

interface Target {
  readonly revision: Revision
  readonly deadlineMs: number
}

class WatcherState implements Watcher {
  readonly #options: WatcherOptions
  readonly #running: Promise<void>
  #target: Target | undefined
  /** Ends the watch under way. */
  #interrupt = new AbortController()
  #range: Omit<WatchRequest, 'from'>
  /** Where to go on; undefined: anywhere. */
  #next: Revision | undefined
  #deadline: NodeJS.Timeout | undefined
  /** When the client itself ends the watch under way. */
  #life: NodeJS.Timeout | undefined

  constructor(options: WatcherOptions) {
    this.#options = options
    this.#range = this.#drawRange()
    this.#running = this.#run()
  }

  async finish(revision: Revision, timeoutMs: number): Promise<void> {
    this.#target = { revision, deadlineMs: performance.now() + timeoutMs }
    // From now on only arriving ends a watch: one that has gone silent must be noticed.
    clearTimeout(this.#life)
    this.#deadline = setTimeout(() => this.#interrupt.abort(), timeoutMs)
    if (this.#isDone()) this.#interrupt.abort()
    await this.#running
    clearTimeout(this.#deadline)
  }

  async #run(): Promise<void> {
    while (!this.#isDone() && !this.#isLate()) {
      try {
        this.#next ??= await this.#begin()
        if (this.#next !== undefined && !this.#isDone()) await this.#follow(this.#next)
      } catch (error) {
        if (!(error instanceof NotSentError)) throw error
      }
      await new Promise((resolve) => void setTimeout(resolve, RETRY_MS))
    }
  }

  /** There, or meant to begin after the end. */
  #isDone(): boolean {
    return this.#target !== undefined && (this.#next ?? 0) > this.#target.revision
  }

  #isLate(): boolean {
    return this.#target !== undefined && performance.now() >= this.#target.deadlineMs
  }

  #drawRange(): Omit<WatchRequest, 'from'> {
    const { random } = this.#options
    const prefix = COLLECTIONS[random.int(COLLECTIONS.length)] as string
    const key = `${prefix}ns/${'abcdef'[random.int(6)]}`
    switch (random.int(5)) {
      case 0:
      case 1:
        return { ...under(prefix), via: 'cache' }
      case 2:
        return { start: key, via: random.int(2) === 0 ? 'cache' : 'backend' }
      default:
        return { ...under(random.int(2) === 0 ? '/registry/' : prefix), via: 'backend' }
    }
  }

  async #begin(): Promise<Revision | undefined> {
    const { recorder, client, random, offset } = this.#options
    this.#range = this.#drawRange()
    const present = await recorder.call(client, 'revision', null)
    return present === undefined ? undefined : Math.max(1, present + offset(random))
  }

  async #follow(from: Revision): Promise<void> {
    const { recorder, client, random } = this.#options
    this.#interrupt = new AbortController()
    if (this.#target === undefined) this.#life = setTimeout(() => this.#interrupt.abort(), random.int(LIFE_MS))
    const batches = recorder.watch(client, { ...this.#range, from }, this.#interrupt.signal)
    try {
      let step = await batches.next()
      for (; !step.done; step = await batches.next()) {
        this.#next = Math.max(this.#next ?? 0, step.value.revision + 1)
        if (this.#isDone()) this.#interrupt.abort()
      }
      if (this.#target !== undefined && this.#isLate()) step.value.stuckBefore = this.#target.revision
      if (step.value.error?.code === 'compacted') this.#next = await this.#relist()
    } finally {
      clearTimeout(this.#life)
    }
    // Half of the time the next watch goes on where this one ended.
    if (this.#target === undefined && random.int(2) === 0) this.#next = undefined
  }

  /** Only the current state shows the effect of missed changes. */
  async #relist(): Promise<Revision | undefined> {
    const { recorder, client } = this.#options
    const list = await recorder.call(client, 'range', this.#range)
    return list === undefined ? undefined : list.revision + 1
  }
}

export function startWatcher(options: WatcherOptions): Watcher {
  return new WatcherState(options)
}
