/** Starts, calls, kills and restarts the child process with the store. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { rm } from 'node:fs/promises'
import { connect, type Socket } from 'node:net'
import { performance } from 'node:perf_hooks'
import { fileURLToPath } from 'node:url'

import { StorageError } from '#storage/backend.ts'

import { type Batch, type Calls, type Method, NotSentError, type Store, type WatchRequest } from './store.ts'
import { type ChildSettings, type FromChild, hearLines, sendLine } from './wire.ts'

const CHILD = fileURLToPath(new URL('child.ts', import.meta.url))
/** Longer than any start of a store of ours should take, on a busy machine. */
const START_TIMEOUT_MS = 30_000

interface Waiting {
  readonly answer: (message: FromChild) => void
  readonly fail: (error: Error) => void
}

export class Server implements Store {
  readonly #settings: ChildSettings
  readonly #waiting = new Map<number, Waiting>()
  #child: ChildProcess | undefined
  #socket: Socket | undefined
  #ids = 0
  /** The child's output on stderr, for reports. */
  output = ''
  /** The phases of the last start, as the child reports them. */
  startTimes = ''
  /** The time of each start until the store answered. */
  readonly startsMs: number[] = []

  constructor(settings: ChildSettings) {
    this.#settings = settings
  }

  get isUp(): boolean {
    return this.#socket !== undefined
  }

  get pid(): number | undefined {
    return this.#child?.pid
  }

  /** Starts the child; resolves when it serves. Fails with what it said when it does not. */
  async start(): Promise<void> {
    const begun = performance.now()
    await rm(this.#settings.socket, { force: true })
    const child = spawn(process.execPath, [CHILD, JSON.stringify(this.#settings)], { stdio: 'pipe' })
    this.#child = child
    child.stderr.on('data', (chunk: Buffer) => (this.output = (this.output + chunk.toString()).slice(-10_000)))
    const timeout = setTimeout(() => child.kill('SIGKILL'), START_TIMEOUT_MS)
    const [outcome] = await Promise.race([once(child.stdout, 'data'), once(child, 'exit')])
    clearTimeout(timeout)
    this.startTimes = String(outcome).trim()
    if (!(outcome instanceof Buffer)) throw new Error(`The store did not start (${outcome}): ${this.output}`)
    const socket = connect(this.#settings.socket)
    socket.on('close', () => this.#disconnected(socket))
    socket.on('error', () => undefined)
    await once(socket, 'connect')
    hearLines(socket, (heard) => {
      const message = heard as FromChild
      this.#waiting.get(message.id)?.answer(message)
    })
    this.#socket = socket
    this.startsMs.push(performance.now() - begun)
  }

  /** Resolves when the child has gone. */
  async kill(): Promise<void> {
    const child = this.#child
    if (child === undefined) return
    const gone = child.exitCode === null && child.signalCode === null ? once(child, 'exit') : undefined
    child.kill('SIGKILL')
    await gone
    if (this.#socket !== undefined) this.#disconnected(this.#socket)
    this.#child = undefined
  }

  /** Sends a signal to the child; for SIGSTOP and SIGCONT. */
  signal(signal: NodeJS.Signals): void {
    this.#child?.kill(signal)
  }

  /** Lets the child close the store; resolves to its exit code. */
  async stop(): Promise<number | null> {
    const child = this.#child
    if (child === undefined) return null
    const timeout = setTimeout(() => child.kill('SIGKILL'), START_TIMEOUT_MS)
    const gone = child.exitCode === null && child.signalCode === null ? once(child, 'exit') : undefined
    child.stdin?.end()
    await gone
    clearTimeout(timeout)
    this.#child = undefined
    return child.exitCode
  }

  async call<M extends Method>(method: M, argument: Calls[M]['argument']): Promise<Calls[M]['result']> {
    const { id, socket } = this.#next()
    const { promise, resolve, reject } = Promise.withResolvers<unknown>()
    this.#waiting.set(id, {
      answer: (message) => ('result' in message ? resolve(message.result) : reject(asError(message))),
      fail: reject,
    })
    sendLine(socket, { id, method, argument })
    try {
      return (await promise) as Calls[M]['result']
    } finally {
      this.#waiting.delete(id)
    }
  }

  async *watch(request: WatchRequest, signal: AbortSignal): AsyncGenerator<Batch, void, undefined> {
    const { id, socket } = this.#next()
    const queue: FromChild[] = []
    let failure: Error | undefined
    let wake = (): void => undefined
    this.#waiting.set(id, {
      answer: (message) => (queue.push(message), wake()),
      fail: (error) => ((failure = error), wake()),
    })
    const abort = (): void => wake()
    signal.addEventListener('abort', abort)
    sendLine(socket, { id, watch: request })
    try {
      while (!signal.aborted) {
        const message = queue.shift()
        if (message === undefined && failure !== undefined) throw failure
        if (message === undefined) await new Promise<void>((resolve) => (wake = resolve))
        else if ('batch' in message) yield message.batch
        else if ('end' in message) return
        else throw asError(message)
      }
    } finally {
      signal.removeEventListener('abort', abort)
      this.#waiting.delete(id)
      sendLine(socket, { id, cancel: true })
    }
  }

  #next(): { readonly id: number; readonly socket: Socket } {
    if (this.#socket === undefined) throw new NotSentError('The store is not running')
    return { id: ++this.#ids, socket: this.#socket }
  }

  #disconnected(socket: Socket): void {
    if (this.#socket !== socket) return
    this.#socket = undefined
    socket.destroy()
    const error = new StorageError('unavailable', 'The connection to the store broke')
    for (const { fail } of this.#waiting.values()) fail(error)
  }
}

function asError(message: FromChild): Error {
  return 'error' in message
    ? new StorageError(message.error.code, message.error.message)
    : new Error('Unexpected answer')
}
