/** Reads the logs of several containers at once and sends the page the lines that it shows. */
import { type Fetch, RequestError, send } from '../api/request.ts'
import { plainText } from './ansi.ts'
import { lineOf, LogLines } from './log-lines.ts'
import type { FromLogWorker, LogLine, LogSource, LogView, SourceState, ToLogWorker } from './messages.ts'

export interface LogServerTools {
  readonly fetch: Fetch
  readonly messages: (path: string, signal: AbortSignal) => AsyncIterable<string>
  readonly sleep: (ms: number) => Promise<void>
  readonly post: (message: FromLogWorker) => void
}

const POST_EVERY_MS = 100

export class LogServer {
  readonly #tools: LogServerTools
  #lines = new LogLines()
  #sources: SourceState[] = []
  #labels: readonly string[] = []
  #waiting: LogLine[] = []
  #view: LogView = { filter: '', from: undefined, count: 0 }
  #filterError = ''
  #isPosting = false
  #reading = new AbortController()

  constructor(tools: LogServerTools) {
    this.#tools = tools
  }

  handle(message: ToLogWorker): void {
    if (message.type === 'open') return this.#open(message.sources, message.view)
    if (message.type === 'view') return this.#setView(message.view)
    this.#tools.post({ type: 'text', text: this.#text() })
  }

  /** Ends the logs that were open. */
  #open(sources: readonly LogSource[], view: LogView): void {
    this.#reading.abort()
    this.#reading = new AbortController()
    this.#lines = new LogLines()
    this.#waiting = []
    this.#labels = sources.map(({ label }) => label)
    this.#sources = sources.map(() => 'connecting')
    const { signal } = this.#reading
    for (const [at, { path }] of sources.entries()) {
      this.#read(at, path, signal).catch((error: unknown) => {
        if (signal.aborted) return
        const show = (text: string): void => {
          this.#sources[at] = { error: text }
          this.#postSoon()
        }
        void this.#explain(path, error).then(show)
      })
    }
    this.#setView(view)
  }

  async #read(at: number, path: string, signal: AbortSignal): Promise<void> {
    let rest = ''
    for await (const text of this.#tools.messages(path, signal)) {
      this.#sources[at] = 'open'
      const lines = (rest + text).split('\n')
      rest = lines.pop() ?? ''
      for (const line of lines) this.#waiting.push(lineOf(at, line))
      this.#postSoon()
    }
    if (rest !== '') this.#waiting.push(lineOf(at, rest))
    this.#sources[at] = 'ended'
    this.#postSoon()
  }

  /** A WebSocket does not say why the server refused it. The same request without it does. */
  async #explain(path: string, error: unknown): Promise<string> {
    if (!(error instanceof RequestError)) return String(error)
    if (error.code !== 410) return error.message
    const again = path.replace('follow=true', 'limitBytes=1')
    const refused = await send(again, { accept: '*/*' }, this.#tools.fetch).catch((failed: Error) => failed)
    return refused instanceof Error ? refused.message : error.message
  }

  #setView(view: LogView): void {
    if (view.filter !== this.#view.filter || this.#lines.total === 0) {
      try {
        this.#lines.filter(view.filter)
        this.#filterError = ''
      } catch (error) {
        this.#filterError = (error as Error).message
      }
    }
    this.#view = view
    this.#post()
  }

  #postSoon(): void {
    if (this.#isPosting) return
    this.#isPosting = true
    void this.#tools.sleep(POST_EVERY_MS).then(() => {
      this.#isPosting = false
      return this.#post()
    })
  }

  #post(): void {
    this.#lines.add(this.#waiting)
    this.#waiting = []
    const { shown, total, dropped } = this.#lines
    const { count } = this.#view
    const last = Math.max(0, shown.length - count)
    const from = Math.min(this.#view.from ?? last, last)
    this.#tools.post({
      type: 'lines',
      total,
      shown: shown.length,
      from,
      lines: shown.slice(from, from + count),
      sources: [...this.#sources],
      dropped,
      filterError: this.#filterError,
    })
  }

  #text(): string {
    const isOne = this.#labels.length === 1
    return this.#lines.shown
      .map(({ source, text }) => `${isOne ? '' : `${this.#labels[source]} `}${plainText(text)}\n`)
      .join('')
  }
}
