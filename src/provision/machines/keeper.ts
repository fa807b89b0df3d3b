/**
 * Keeps services alive where there is no systemd: one process for all of them, which starts what the folder describes, starts
 * it again when it ends, and takes orders on a socket. What a keeper that was killed has left behind is ended first.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { mkdir, open, readdir, readFile, rename, rm, stat } from 'node:fs/promises'
import { createServer, type Server, type Socket } from 'node:net'

import { aborted } from '#lib/abort.ts'
import { writeFileAtomically } from '#lib/atomic-file.ts'
import { type Clock, sleep } from '#lib/clock.ts'
import { keepProcess } from '#lib/kept-process.ts'
import type { Logger } from '#lib/log.ts'
import { beganAt } from '#lib/process-began.ts'
import type { Random } from '#lib/random.ts'

import type { ServiceSpec } from '../machine.ts'
import { askKeeper, type Order, type Reply } from './keeper-orders.ts'
import { keeperPlaces, type KeeperPlaces } from './keeper-places.ts'

export interface KeeperOptions {
  /** Where machines keep what the builder needs. */
  readonly home: string
  readonly clock: Clock
  readonly random: Random
  readonly log: Logger
  readonly env: Readonly<Record<string, string | undefined>>
}

interface Running {
  readonly closing: AsyncDisposableStack
  /** When its first process is there. */
  started: Promise<unknown>
  child: ChildProcess | undefined
}

const STOP_SECONDS = 30
const LOG_BYTES = 32 << 20

/** Until `signal` is aborted; then everything it keeps ends too. False: there is another keeper. */
export async function runKeeper(options: KeeperOptions, signal: AbortSignal): Promise<boolean> {
  const places = keeperPlaces(options.home)
  if ((await askKeeper(places.socket, { order: 'state', name: '' })) !== undefined) return false
  for (const folder of [places.state, places.logs]) await mkdir(folder, { recursive: true, mode: 0o700 })
  const left = new AbortController()
  const keeper = new Keeper(options, places, () => left.abort())
  await rm(places.socket, { force: true })
  const server = createServer({ allowHalfOpen: true }, (socket) => void takeOrder(socket, keeper))
  await listening(server, places.socket)
  const files = (await readdir(places.specs).catch(() => [])).filter((file) => file.endsWith('.json'))
  await Promise.allSettled(files.map((file) => keeper.start(file.slice(0, -'.json'.length))))
  await aborted(AbortSignal.any([signal, left.signal]))
  server.close()
  await keeper.stopAll()
  await rm(places.socket, { force: true })
  return true
}

function listening(server: Server, path: string): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject)
    server.listen(path, resolve)
  })
}

async function takeOrder(socket: Socket, keeper: Keeper): Promise<void> {
  socket.on('error', () => undefined)
  try {
    const { order, name } = JSON.parse(await readAll(socket)) as Order
    const reply = await keeper[order](name).catch((error: Error): Reply => ({ problem: error.message }))
    socket.end(`${JSON.stringify(reply)}\n`)
  } catch {
    socket.destroy()
  }
}

/** Whoever iterates over a socket closes it in both directions at the end: the reply would not get out. */
function readAll(socket: Socket): Promise<string> {
  let text = ''
  socket.setEncoding('utf8').on('data', (chunk: string) => (text += chunk))
  return new Promise((resolve, reject) => {
    socket.once('end', () => resolve(text)).once('close', () => reject(new Error('Whoever asked has gone')))
  })
}

class Keeper {
  readonly #options: KeeperOptions
  readonly #places: KeeperPlaces
  readonly #left: () => void
  readonly #running = new Map<string, Running>()

  constructor(options: KeeperOptions, places: KeeperPlaces, left: () => void) {
    this.#options = options
    this.#places = places
    this.#left = left
  }

  async leave(): Promise<Reply> {
    await this.stopAll()
    this.#left()
    return { isRunning: false }
  }

  state(name: string): Promise<Reply> {
    const child = this.#running.get(name)?.child
    const isRunning = child?.pid !== undefined && child.exitCode === null && child.signalCode === null
    return Promise.resolve({ isRunning })
  }

  async start(name: string): Promise<Reply> {
    const known = this.#running.get(name)
    if (known === undefined) {
      const running: Running = { closing: new AsyncDisposableStack(), started: Promise.resolve(), child: undefined }
      this.#running.set(name, running)
      running.started = this.#begin(name, running)
      running.started.catch(() => this.#running.delete(name))
    }
    await this.#running.get(name)?.started
    return this.state(name)
  }

  async #begin(name: string, running: Running): Promise<void> {
    const service = JSON.parse(await readFile(this.#places.spec(name), 'utf8')) as ServiceSpec
    await this.#endForgotten(name)
    const { clock, random, log } = this.#options
    const stopMs = (service.stopSeconds ?? STOP_SECONDS) * 1000
    const born = async (): Promise<ChildProcess> => (running.child = await this.#spawn(service))
    await keepProcess({ name, spawn: born, stopMs, clock, random, log }, running.closing)
  }

  async stop(name: string): Promise<Reply> {
    const running = this.#running.get(name)
    await running?.started.catch(() => undefined)
    this.#running.delete(name)
    await running?.closing.disposeAsync()
    await this.#endForgotten(name)
    return { isRunning: false }
  }

  async stopAll(): Promise<void> {
    await Promise.all([...this.#running.keys()].map((name) => this.stop(name)))
  }

  async #spawn({ name, command, env = {}, envFile }: ServiceSpec): Promise<ChildProcess> {
    const file = this.#places.log(name)
    const { size } = await stat(file).catch(() => ({ size: 0 }))
    if (size > LOG_BYTES) await rename(file, `${file}.1`)
    await using log = await open(file, 'a', 0o600)
    const [program = '', ...args] = command
    const said = envFile === undefined ? {} : readEnvironment(await readFile(envFile, 'utf8').catch(() => ''))
    const child = spawn(program, args, {
      detached: true,
      stdio: ['ignore', log.fd, log.fd],
      cwd: '/',
      env: { ...this.#options.env, ...said, ...env },
    })
    child.on('error', () => undefined)
    if (child.pid !== undefined) {
      const mark = JSON.stringify({ pid: child.pid, began: await beganAt(child.pid) })
      await writeFileAtomically(this.#places.mark(name), mark, { mode: 0o600 })
    }
    return child
  }

  /** Of a keeper that was killed: only a child can be watched. */
  async #endForgotten(name: string): Promise<void> {
    const text = await readFile(this.#places.mark(name), 'utf8').catch(() => undefined)
    if (text === undefined) return
    const { pid, began } = JSON.parse(text) as { pid: number; began?: string }
    for (const [order, waitMs] of ENDING) {
      if (began === undefined || (await beganAt(pid)) !== began) break
      process.kill(pid, order)
      for (let waited = 0; waited < waitMs && (await beganAt(pid)) === began; waited += LOOK_MS)
        await sleep(this.#options.clock, LOOK_MS)
    }
    await rm(this.#places.mark(name), { force: true })
  }
}

const LOOK_MS = 50
const ENDING = [
  ['SIGTERM', 30_000],
  ['SIGKILL', 5000],
] as const

/** As systemd reads such a file, without its quotes: lines of `NAME=value`. Pure. */
export function readEnvironment(text: string): Record<string, string> {
  const lines = text.split('\n').filter((line) => /^[A-Za-z_]\w*=/.test(line))
  return Object.fromEntries(lines.map((line) => [line.slice(0, line.indexOf('=')), line.slice(line.indexOf('=') + 1)]))
}
