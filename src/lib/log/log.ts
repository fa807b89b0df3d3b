/**
 * The structured log, in klog's text format or zap's JSON format. A disabled message costs nothing:
 * `log.v(4)?.info('Synced', { pod: describe(pod) })` does not call `describe` below level 4.
 */
import type { Clock } from '../clock.ts'
import { renderJson } from './json.ts'
import { callerAbove, type Line, type Pair, UNKNOWN_CALLER } from './line.ts'
import { createTextRenderer } from './text.ts'
import { levelFor, type VmoduleRule } from './vmodule.ts'

/** The values of a line. A function is replaced by its result. */
export type LogValues = Readonly<Record<string, unknown>>

export interface Logger {
  info(message: string, values?: LogValues): void
  /** Written at every level. The error, if any, is under the key `err`, with its causes. */
  error(error: unknown, message: string, values?: LogValues): void
  /** A logger for lines `level` steps less important than this one's; undefined when they are not to be written. */
  v(level: number): Logger | undefined
  /** A logger that puts these values on every line. Those of a later call, or of the line itself, win. */
  withValues(values: LogValues): Logger
  /** A logger whose name is this one's, a dot, and `name`; under the key `logger` on every line. */
  withName(name: string): Logger
}

/** Where lines go. Must call back once the text is written or has failed to be; a Writable does. */
export interface LogStream {
  write(text: string, done: (error?: Error | null) => void): unknown
}

export interface LogOptions {
  readonly stream: LogStream
  /** Where `error` lines go, if not to `stream`. */
  readonly errorStream?: LogStream
  readonly clock: Clock
  /** Default `text`. */
  readonly format?: 'text' | 'json'
  /** Lines of a level above this are not written. Default 0. */
  readonly verbosity?: number
  /** Higher verbosity for loggers by name. */
  readonly vmodule?: readonly VmoduleRule[]
  /** Shown in text. Default: that of this process. */
  readonly pid?: number
  /** Whether to find out which line of source is logging, which is most of a line's cost. Default true. */
  readonly caller?: boolean
}

export interface Log {
  readonly logger: Logger
  /** May be changed at any time, for all loggers. */
  verbosity: number
  /** Hands every line to its stream at once; resolves when the streams have written them. */
  flush(): Promise<void>
}

/** Lines are written when the current piece of work is over, or when this much has gathered. */
const BUFFER_CHARS = 64 * 1024

/** The number of bytes that may wait in a stalled stream before lines are dropped. */
const BACKLOG_CHARS = 8 * 1024 * 1024

export function createLog(options: LogOptions): Log {
  const out = new Sink(options.stream)
  const err = options.errorStream === undefined ? out : new Sink(options.errorStream)
  const shared: LoggerSettings = {
    clock: options.clock,
    render: options.format === 'json' ? renderJson : createTextRenderer(options.pid ?? process.pid),
    caller: options.caller ?? true,
    vmodule: options.vmodule ?? [],
    verbosity: options.verbosity ?? 0,
    out,
    err,
  }
  return {
    logger: new NamedLogger(shared, { name: '', level: 0, values: [] }),
    get verbosity() {
      return shared.verbosity
    },
    set verbosity(level) {
      shared.verbosity = level
    },
    async flush() {
      await Promise.all([out.flush(), err.flush()])
    },
  }
}

interface LoggerSettings {
  readonly clock: Clock
  readonly render: (line: Line) => string
  readonly caller: boolean
  readonly vmodule: readonly VmoduleRule[]
  verbosity: number
  readonly out: Sink
  readonly err: Sink
}

interface LoggerScope {
  readonly name: string
  readonly level: number
  readonly values: readonly Pair[]
}

/** Gathers text for a stream and keeps count of what the stream has not written yet. */
class Sink {
  readonly #stream: LogStream
  #gathered = ''
  #scheduled = false
  /** Handed to the stream, and not called back about. */
  #backlogChars = 0
  #idle = Promise.withResolvers<void>()
  /** Lines not taken since the stream was full. */
  #lost = 0

  constructor(stream: LogStream) {
    this.#stream = stream
  }

  /** Checked before each line, so that a line that would be dropped is not rendered. Counts a dropped line. */
  isFull(): boolean {
    if (this.#backlogChars < BACKLOG_CHARS) return false
    this.#lost++
    return true
  }

  /** The number of lost lines since the last call. */
  takeLost(): number {
    const lost = this.#lost
    this.#lost = 0
    return lost
  }

  write(text: string): void {
    this.#gathered += text
    if (this.#gathered.length >= BUFFER_CHARS) return this.#hand()
    if (this.#scheduled) return
    this.#scheduled = true
    process.nextTick(() => {
      this.#scheduled = false
      this.#hand()
    })
  }

  flush(): Promise<void> {
    this.#hand()
    if (this.#backlogChars === 0) return Promise.resolve()
    return this.#idle.promise
  }

  #hand(): void {
    const text = this.#gathered
    if (text === '') return
    this.#gathered = ''
    this.#backlogChars += text.length
    // A failed write is the stream's to report; for us it is over either way.
    this.#stream.write(text, () => {
      this.#backlogChars -= text.length
      if (this.#backlogChars > 0) return
      this.#idle.resolve()
      this.#idle = Promise.withResolvers()
    })
  }
}

class NamedLogger implements Logger {
  readonly #shared: LoggerSettings
  readonly #place: LoggerScope
  /** The verbosity that vmodule grants loggers of this name. */
  readonly #granted: number

  constructor(shared: LoggerSettings, place: LoggerScope) {
    this.#shared = shared
    this.#place = place
    this.#granted = levelFor(shared.vmodule, place.name)
  }

  info(message: string, values?: LogValues): void {
    this.#write(this.#shared.out, message, values, undefined)
  }

  error(error: unknown, message: string, values?: LogValues): void {
    this.#write(this.#shared.err, message, values, { error })
  }

  v(level: number): Logger | undefined {
    const wanted = this.#place.level + level
    if (wanted > this.#shared.verbosity && wanted > this.#granted) return undefined
    return level === 0 ? this : new NamedLogger(this.#shared, { ...this.#place, level: wanted })
  }

  withValues(values: LogValues): Logger {
    const added = Object.entries(values)
    return new NamedLogger(this.#shared, {
      ...this.#place,
      values: [...withoutKeys(this.#place.values, added), ...added],
    })
  }

  withName(name: string): Logger {
    const full = this.#place.name === '' ? name : `${this.#place.name}.${name}`
    return new NamedLogger(this.#shared, { ...this.#place, name: full })
  }

  /** Called by `info` and `error` only: the caller is looked for two frames up. */
  #write(sink: Sink, message: string, values: LogValues | undefined, failure: { error: unknown } | undefined): void {
    const { caller, clock, render } = this.#shared
    if (sink.isFull()) return
    const lost = sink.takeLost()
    if (lost > 0) sink.write(render(this.#lostLine(lost)))
    const given = values === undefined ? [] : Object.entries(values)
    const error = failure?.error ?? undefined
    const own = error === undefined ? given : withoutKeys(given, ERR)
    const line: Line = {
      nowMs: clock.now(),
      caller: caller ? callerAbove(2) : UNKNOWN_CALLER,
      name: this.#place.name,
      message,
      level: failure === undefined ? this.#place.level : undefined,
      error,
      values: withoutKeys(this.#place.values, error === undefined ? own : [...own, ...ERR]),
      own,
    }
    sink.write(render(line))
  }

  #lostLine(count: number): Line {
    return {
      nowMs: this.#shared.clock.now(),
      caller: UNKNOWN_CALLER,
      name: this.#place.name,
      message: 'Dropped log lines because the stream was too slow',
      level: undefined,
      error: undefined,
      values: [],
      own: [['count', count]],
    }
  }
}

/** Stands for the key an error takes. */
const ERR: readonly Pair[] = [['err', undefined]]

/** The pairs whose keys are not given anew. */
function withoutKeys(pairs: readonly Pair[], anew: readonly Pair[]): readonly Pair[] {
  if (pairs.length === 0 || anew.length === 0) return pairs
  return pairs.filter(([key]) => !anew.some(([other]) => other === key))
}
