/**
 * Parses untrusted YAML. Small texts are parsed immediately; large texts are parsed one at a time on a worker thread,
 * because parsing is slow.
 */
import { Worker } from 'node:worker_threads'

import type { Clock, Timer } from '../clock.ts'
import { parseJson } from '../json/json.ts'
import { JsonError, type JsonValue } from '../json/value.ts'
import { YamlError, type YamlErrorCode } from './error.ts'
import { parseYaml } from './yaml.ts'

export interface ReadYaml {
  readonly value: JsonValue
  /** As `parseYaml` gives them. */
  readonly duplicates: readonly string[]
}

export interface YamlReader {
  /** As `parseYaml`. Throws a YamlError, `busy` when too much is waiting; the signal's reason when it is aborted. */
  read(text: Buffer, signal: AbortSignal): Promise<ReadYaml>
  /** Ends the thread; what waits for it is refused. */
  close(): Promise<void>
}

export type FromYamlThread =
  | { readonly json: string; readonly duplicates: readonly string[] }
  | { readonly error: { readonly code: YamlErrorCode; readonly message: string } }

export interface YamlLimits {
  /** Up to here a text is read at once: some 10 ms. */
  readonly inlineBytes: number
  /** How much of what is not quite YAML may be read again at once. */
  readonly inlineRetried: number
  /** How long the thread may take for one text. */
  readonly timeoutMs: number
  /** How much may wait for the thread. */
  readonly waitingBytes: number
  /** The thread ends when it had nothing to do for so long. */
  readonly idleMs: number
}

const DEFAULT_LIMITS: YamlLimits = {
  inlineBytes: 16 << 10,
  inlineRetried: 32 << 10,
  timeoutMs: 10_000,
  waitingBytes: 32 << 20,
  idleMs: 60_000,
}

/** The memory limit of one text in the worker: an alias may expand to a lot. */
const HEAP_MEBIBYTES = 512

interface Task {
  readonly text: Buffer
  readonly signal: AbortSignal
  readonly done: PromiseWithResolvers<ReadYaml>
}

export function createYamlReader(clock: Clock, limits: Partial<YamlLimits> = {}): YamlReader {
  const reader = new ThreadedReader(clock, { ...DEFAULT_LIMITS, ...limits })
  return {
    async read(text, signal) {
      return reader.readAtOnce(text) ?? (await reader.readLater(text, signal))
    },
    close: () => reader.close(),
  }
}

class ThreadedReader {
  readonly #clock: Clock
  readonly #limits: YamlLimits
  /** The first is with the thread, if there is one. */
  readonly #queue: Task[] = []
  #waitingBytes = 0
  #thread: Worker | undefined
  /** Of the text under way, or of the thread's idleness. */
  #timer: Timer | undefined
  #isClosed = false

  constructor(clock: Clock, limits: YamlLimits) {
    this.#clock = clock
    this.#limits = limits
  }

  /** Nothing when it would take too long. */
  readAtOnce(text: Buffer): ReadYaml | undefined {
    const { inlineBytes, inlineRetried } = this.#limits
    if (text.length > inlineBytes) return undefined
    const duplicates: string[] = []
    try {
      return { value: parseYaml(text, { duplicates, maxRetriedLength: inlineRetried }), duplicates }
    } catch (cause) {
      if (cause instanceof YamlError && cause.code === 'effort') return undefined
      throw cause
    }
  }

  readLater(text: Buffer, signal: AbortSignal): Promise<ReadYaml> {
    signal.throwIfAborted()
    if (this.#isClosed || this.#waitingBytes + text.length > this.#limits.waitingBytes) {
      throw new YamlError('busy', 'yaml: too many large documents are being read: try again later')
    }
    const task = { text, signal, done: Promise.withResolvers<ReadYaml>() }
    this.#waitingBytes += text.length
    this.#queue.push(task)
    if (this.#queue.length === 1) this.#begin(task)
    // In virtual time it cannot take too long, then: time does not pass.
    return this.#clock.during(task.done.promise)
  }

  async close(): Promise<void> {
    this.#isClosed = true
    const waiting = this.#queue.splice(0)
    await this.#endThread()
    for (const { done } of waiting) done.reject(new YamlError('busy', 'yaml: the server is stopping'))
  }

  #begin(task: Task): void {
    this.#timer?.cancel()
    this.#timer = this.#clock.after(this.#limits.timeoutMs, () => {
      this.#giveUp('limit', 'yaml: document takes too long to read: send it as JSON')
    })
    this.#thread ??= this.#startThread()
    this.#thread.postMessage(task.text)
  }

  #startThread(): Worker {
    const thread = new Worker(new URL('./yaml.worker.ts', import.meta.url), {
      name: 'yaml',
      resourceLimits: { maxOldGenerationSizeMb: HEAP_MEBIBYTES },
    })
    thread.unref()
    thread.on('message', (answer: FromYamlThread) => this.#finish((task) => settle(task, answer)))
    // Out of memory, nearly always.
    thread.on('error', () => {
      if (this.#thread === thread) this.#giveUp('limit', 'yaml: document is too large to read: send it as JSON')
    })
    return thread
  }

  /** The text under way is refused, and the thread that may still be at it is replaced. */
  #giveUp(code: YamlErrorCode, message: string): void {
    void this.#endThread()
    this.#finish(({ done }) => done.reject(new YamlError(code, message)))
  }

  #finish(settleTask: (task: Task) => void): void {
    const task = this.#queue.shift()
    if (task === undefined) return
    this.#waitingBytes -= task.text.length
    settleTask(task)
    this.#next()
  }

  /** Skips aborted requests. */
  #next(): void {
    for (let task = this.#queue[0]; task !== undefined; task = this.#queue[0]) {
      if (!task.signal.aborted) return this.#begin(task)
      this.#queue.shift()
      this.#waitingBytes -= task.text.length
      task.done.reject(task.signal.reason as Error)
    }
    this.#timer?.cancel()
    if (this.#thread === undefined) return
    this.#timer = this.#clock.after(this.#limits.idleMs, () => void this.#endThread(), { background: true })
  }

  async #endThread(): Promise<void> {
    const thread = this.#thread
    this.#thread = undefined
    this.#timer?.cancel()
    await thread?.terminate()
  }
}

function settle({ done }: Task, answer: FromYamlThread): void {
  if ('error' in answer) return done.reject(new YamlError(answer.error.code, answer.error.message))
  try {
    done.resolve({ value: parseJson(answer.json), duplicates: answer.duplicates })
  } catch (cause) {
    const message = cause instanceof JsonError ? cause.message : String(cause)
    done.reject(new YamlError('limit', message, { cause }))
  }
}
