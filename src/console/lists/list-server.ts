/** The lists of a page: follows each and sends the page the rows that it shows, at most ten times a second. */
import { RequestError } from '../api/request.ts'
import { follow, type Listener } from './follow.ts'
import type { FromWorker, ListSource, ListState, ListView, PickedRows, Row, ToWorker } from './messages.ts'
import { OrderedRows } from './ordered-rows.ts'
import type { FollowTools } from './resume.ts'

export interface ListServerTools extends FollowTools {
  readonly now: () => number
  readonly post: (message: FromWorker | PickedRows) => void
}

const POST_EVERY_MS = 100
/** Hidden pages keep their watches for so long. */
const HIDDEN_MS = 30_000

export class ListServer {
  readonly #tools: ListServerTools
  readonly #lists = new Map<number, FollowedList>()
  #hidden: AbortController | undefined

  constructor(tools: ListServerTools) {
    this.#tools = tools
  }

  handle(message: ToWorker): void {
    if (message.type === 'visible') return this.#showOrHide(message.isVisible)
    if (message.type === 'reconnect') return this.#reconnect()
    if (message.type === 'open') {
      this.#lists.get(message.id)?.close()
      const list = new FollowedList(message.id, message.source, message.view, this.#tools)
      this.#lists.set(message.id, list)
      return list.start()
    }
    if (message.type === 'view') return this.#lists.get(message.id)?.setView(message.view)
    if (message.type === 'pick') return this.#lists.get(message.id)?.pick(message.limit)
    this.#lists.get(message.id)?.close()
    this.#lists.delete(message.id)
  }

  #reconnect(): void {
    for (const list of this.#lists.values()) list.reconnect()
  }

  #showOrHide(isVisible: boolean): void {
    this.#hidden?.abort()
    this.#hidden = undefined
    if (isVisible) {
      for (const list of this.#lists.values()) list.start()
      return
    }
    const hidden = new AbortController()
    this.#hidden = hidden
    const stop = (): void => {
      for (const list of this.#lists.values()) list.stop()
    }
    this.#tools.sleep(HIDDEN_MS, hidden.signal).then(stop, () => undefined)
  }
}

class FollowedList {
  readonly #id: number
  readonly #source: ListSource
  readonly #tools: ListServerTools
  readonly #rows = new OrderedRows()
  #view: ListView
  #state: ListState = { type: 'loading' }
  #remaining = 0
  /** The pages of a list that replaces an earlier one. */
  #replacement: Row[] | undefined
  #running: AbortController | undefined
  #isPosting = false
  #posted: FromWorker | undefined
  /** Ends the pause before the next attempt. */
  #pause = new AbortController()
  readonly #closed = new AbortController()

  constructor(id: number, source: ListSource, view: ListView, tools: ListServerTools) {
    this.#id = id
    this.#source = source
    this.#view = view
    this.#tools = tools
  }

  /** Follows the list, if that is not so already. */
  start(): void {
    if (this.#running !== undefined || this.#closed.signal.aborted) return
    const running = new AbortController()
    this.#running = running
    follow(this.#source, this.#listener(), this.#followTools(), running.signal).catch((error: unknown) => {
      this.#running = undefined
      // A user who may no longer list the objects must not see them either.
      this.#rows.replace([])
      this.#remaining = 0
      const { code = 0, status = {}, message } = error instanceof RequestError ? error : { message: String(error) }
      this.#setState({ type: 'failed', code, reason: status.reason ?? '', message })
    })
  }

  reconnect(): void {
    this.#pause.abort()
    this.#pause = new AbortController()
  }

  /** Ends the watch; the rows stay. */
  stop(): void {
    if (this.#running === undefined) return
    this.#running.abort()
    this.#running = undefined
    this.#setState({ type: 'stale', sinceMs: this.#tools.now(), message: 'The page was hidden', code: 0 })
  }

  close(): void {
    this.#closed.abort()
    this.#running?.abort()
  }

  setView(view: ListView): void {
    this.#view = view
    this.#post()
  }

  pick(limit: number): void {
    const { rows } = this.#rows.window({ ...this.#view, from: 0, count: limit })
    this.#tools.post({ id: this.#id, picked: rows })
  }

  #followTools(): FollowTools {
    const { fetch, messages, random, sleep } = this.#tools
    return { fetch, messages, random, sleep: (ms, signal) => sleep(ms, AbortSignal.any([signal, this.#pause.signal])) }
  }

  #listener(): Listener {
    return {
      columns: (columns) => (this.#rows.columns = columns),
      page: (rows, { isFirst, isLast, remaining }) => {
        if (isFirst) this.#replacement = this.#rows.size > 0 ? [] : undefined
        this.#remaining = remaining
        if (this.#replacement === undefined) for (const row of rows) this.#rows.put(row)
        else this.#replacement.push(...rows)
        if (isLast && this.#replacement !== undefined) this.#rows.replace(this.#replacement)
        if (isLast) this.#replacement = undefined
        // The first rows are shown at once.
        if (isFirst) this.#post()
        else this.#postSoon()
      },
      changed: (row) => {
        this.#rows.put(row)
        this.#postSoon()
      },
      deleted: (uid) => {
        this.#rows.delete(uid)
        this.#postSoon()
      },
      live: () => this.#setState({ type: 'live' }),
      lost: ({ message, code }) => {
        const sinceMs = this.#state.type === 'stale' ? this.#state.sinceMs : this.#tools.now()
        this.#setState({ type: 'stale', sinceMs, message, code })
      },
    }
  }

  #setState(state: ListState): void {
    this.#state = state
    this.#post()
  }

  #postSoon(): void {
    if (this.#isPosting) return
    this.#isPosting = true
    const post = (): void => {
      this.#isPosting = false
      this.#post()
    }
    this.#tools.sleep(POST_EVERY_MS, this.#closed.signal).then(post, () => undefined)
  }

  #post(): void {
    if (this.#closed.signal.aborted) return
    const { columns, size: loaded } = this.#rows
    const message = {
      id: this.#id,
      state: this.#state,
      columns,
      loaded,
      expected: loaded + this.#remaining,
      ...this.#rows.window(this.#view),
    }
    if (this.#posted !== undefined && showsTheSame(message, this.#posted)) return
    this.#posted = message
    this.#tools.post(message)
  }
}

/** Most changes in a long list are out of sight. */
function showsTheSame(one: FromWorker, other: FromWorker): boolean {
  const { rows, groups, ...rest } = one
  return (
    rows.length === other.rows.length &&
    rows.every((row, at) => row === other.rows[at]) &&
    groups.length === other.groups.length &&
    groups.every(({ value, count }, at) => value === other.groups[at]?.value && count === other.groups[at].count) &&
    Object.entries(rest).every(([name, value]) => other[name as keyof FromWorker] === value)
  )
}
