/**
 * A watch client for reliability tests. It resumes after restarts of the server and checks that it gets every change
 * once, in order and without a gap.
 */
import { pause } from '../pause.ts'
import type { Acknowledged, Content } from './ledger.ts'
import { credentials, type Target } from './program.ts'
import { openConnection, type RawConnection } from './raw-http.ts'

interface WatchEvent {
  readonly type: string
  readonly object: {
    readonly metadata?: { readonly name?: string; readonly resourceVersion?: string }
    readonly data?: { readonly content?: string }
    readonly message?: string
  }
}

export class Follower {
  readonly #target: Target
  readonly #path: string
  readonly #seen = new Map<number, { readonly name: string; readonly content: Content }>()
  #connection: RawConnection | undefined
  #isStopped = false
  #running: Promise<void> = Promise.resolve()
  /** How many times the watch was begun. */
  begun = 0
  last: number
  readonly problems: string[] = []

  /** `from` is a version of the collection at `path`, which is watched from there on. */
  constructor(target: Target, path: string, from: number) {
    this.#target = target
    this.#path = path
    this.last = from
  }

  start(): void {
    this.#running = this.#follow()
  }

  /** Waits until it has seen `version`, at most ten seconds. */
  async reach(version: number): Promise<void> {
    for (let tries = 0; tries < 1000 && this.last < version; tries++) await pause(10)
    if (this.last < version) this.problems.push(`the watch is at ${this.last} and never came to ${version}`)
  }

  async stop(): Promise<void> {
    this.#isStopped = true
    this.#connection?.close()
    await this.#running
  }

  /** Every acknowledged write must have been seen, with what was written. */
  compare(acknowledged: readonly Acknowledged[]): void {
    for (const { name, version, content } of acknowledged) {
      const seen = this.#seen.get(version)
      if (seen?.name !== name || seen.content !== content)
        this.problems.push(`no event for ${name} at ${version}, which was acknowledged`)
    }
  }

  get events(): number {
    return this.#seen.size
  }

  async #follow(): Promise<void> {
    while (!this.#isStopped) {
      try {
        this.#connection = await openConnection(this.#target)
        this.begun++
        await this.#watch(this.#connection)
      } catch {
        // The server is down, or went down; it will be back.
        await pause(5)
      }
    }
  }

  async #watch(connection: RawConnection): Promise<void> {
    const path = `${this.#path}?watch=1&allowWatchBookmarks=true&resourceVersion=${this.last}`
    let text = ''
    const take = (piece: Buffer): void => {
      text += piece.toString()
      for (let end = text.indexOf('\n'); end >= 0; end = text.indexOf('\n')) {
        this.#take(JSON.parse(text.slice(0, end)) as WatchEvent)
        text = text.slice(end + 1)
      }
    }
    const headers = credentials('root')
    const status = await connection.follow({ path, headers, timeoutMs: 24 * 3600 * 1000 }, take)
    // A server that is not ready yet says so; everything else is to be a watch.
    if (status !== 200 && status !== 429 && status < 500)
      this.problems.push(`the watch was answered ${status}: ${text}`)
  }

  #take({ type, object }: WatchEvent): void {
    const version = Number(object.metadata?.resourceVersion ?? 0)
    if (type === 'ERROR') return void this.problems.push(`the watch was ended: ${object.message}`)
    if (type === 'BOOKMARK') {
      if (version < this.last) this.problems.push(`a bookmark of ${version} after ${this.last}`)
      this.last = Math.max(this.last, version)
      return
    }
    if (version <= this.last) this.problems.push(`an event of ${version} after ${this.last}`)
    this.last = Math.max(this.last, version)
    const content = type === 'DELETED' ? undefined : object.data?.content
    this.#seen.set(version, { name: object.metadata?.name ?? '', content })
  }
}
