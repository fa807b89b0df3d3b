/**
 * The keeper, which supervises services on machines without systemd. One process starts the services, restarts them
 * when they end, and takes commands on a socket. It first stops the services of a killed keeper.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { mkdir, open, readdir, readFile, rename, rm, stat } from 'node:fs/promises'
import { createServer, type Server, type Socket } from 'node:net'

import { aborted } from '#lib/abort.ts'
import { type Clock, sleep } from '#lib/clock.ts'
import { writeFileAtomically } from '#lib/files/atomic-file.ts'
import type { Logger } from '#lib/log/log.ts'
import { keepProcess } from '#lib/process/kept-process.ts'
import { beganAt } from '#lib/process/start-time.ts'
import type { Random } from '#lib/random.ts'

import type { ServiceSpec } from '../machine.ts'
import { keeperPaths, type KeeperPaths } from './keeper-paths.ts'
import { sendToKeeper, type Order, type Reply } from './keeper-protocol.ts'

export interface KeeperOptions {
  /** The builder's folder. */
  readonly home: string
  readonly clock: Clock
  readonly random: Random
  readonly log: Logger
  readonly env: Readonly<Record<string, string | undefined>>
}

interface KeptProcess {
  readonly closing: AsyncDisposableStack
  /** Resolved when its first process is started. */
  started: Promise<unknown>
  child: ChildProcess | undefined
}

const STOP_SECONDS = 30
const LOG_BYTES = 32 << 20

/** Runs until `signal` is aborted, then stops all services. Returns false if another keeper runs. */
export async function runKeeper(options: KeeperOptions, signal: AbortSignal): Promise<boolean> {
  const paths = keeperPaths(options.home)
  if ((await sendToKeeper(paths.socket, { order: 'state', name: '' })) !== undefined) return false
  for (const folder of [paths.state, paths.logs]) await mkdir(folder, { recursive: true, mode: 0o700 })
  const left = new AbortController()
  const keeper = new Keeper(options, paths, () => left.abort())
  await rm(paths.socket, { force: true })
  const server = createServer({ allowHalfOpen: true }, (socket) => void takeOrder(socket, keeper))
  await listening(server, paths.socket)
  const files = (await readdir(paths.specs).catch(() => [])).filter((file) => file.endsWith('.json'))
  await Promise.allSettled(files.map((file) => keeper.start(file.slice(0, -'.json'.length))))
  await aborted(AbortSignal.any([signal, left.signal]))
  server.close()
  await keeper.stopAll()
  await rm(paths.socket, { force: true })
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

/** Iterating over a socket closes both directions at the end, which would lose the reply. */
function readAll(socket: Socket): Promise<string> {
  let text = ''
  socket.setEncoding('utf8').on('data', (chunk: string) => (text += chunk))
  return new Promise((resolve, reject) => {
    socket.once('end', () => resolve(text)).once('close', () => reject(new Error('The client has disconnected')))
  })
}

class Keeper {
  readonly #options: KeeperOptions
  readonly #paths: KeeperPaths
  readonly #left: () => void
  readonly #running = new Map<string, KeptProcess>()

  constructor(options: KeeperOptions, paths: KeeperPaths, left: () => void) {
    this.#options = options
    this.#paths = paths
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
      const running: KeptProcess = { closing: new AsyncDisposableStack(), started: Promise.resolve(), child: undefined }
      this.#running.set(name, running)
      running.started = this.#begin(name, running)
      running.started.catch(() => this.#running.delete(name))
    }
    await this.#running.get(name)?.started
    return this.state(name)
  }

  async #begin(name: string, running: KeptProcess): Promise<void> {
    const service = JSON.parse(await readFile(this.#paths.spec(name), 'utf8')) as ServiceSpec
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
    const file = this.#paths.log(name)
    const { size } = await stat(file).catch(() => ({ size: 0 }))
    if (size > LOG_BYTES) await rename(file, `${file}.1`)
    await using log = await open(file, 'a', 0o600)
    const [program = '', ...args] = command
    const fileEnv = envFile === undefined ? {} : readEnvironment(await readFile(envFile, 'utf8').catch(() => ''))
    const child = spawn(program, args, {
      detached: true,
      stdio: ['ignore', log.fd, log.fd],
      cwd: '/',
      env: { ...this.#options.env, ...fileEnv, ...env },
    })
    child.on('error', () => undefined)
    if (child.pid !== undefined) {
      const mark = JSON.stringify({ pid: child.pid, began: await beganAt(child.pid) })
      await writeFileAtomically(this.#paths.mark(name), mark, { mode: 0o600 })
    }
    return child
  }

  /** A service of a killed keeper: only children can be watched. */
  async #endForgotten(name: string): Promise<void> {
    const text = await readFile(this.#paths.mark(name), 'utf8').catch(() => undefined)
    if (text === undefined) return
    const { pid, began } = JSON.parse(text) as { pid: number; began?: string }
    for (const [order, waitMs] of ENDING) {
      if (began === undefined || (await beganAt(pid)) !== began) break
      process.kill(pid, order)
      for (let waited = 0; waited < waitMs && (await beganAt(pid)) === began; waited += LOOK_MS)
        await sleep(this.#options.clock, LOOK_MS)
    }
    await rm(this.#paths.mark(name), { force: true })
  }
}

const LOOK_MS = 50
const ENDING = [
  ['SIGTERM', 30_000],
  ['SIGKILL', 5000],
] as const

/** Parses `NAME=value` lines like systemd, without quotes. Pure. */
export function readEnvironment(text: string): Record<string, string> {
  const lines = text.split('\n').filter((line) => /^[A-Za-z_]\w*=/.test(line))
  return Object.fromEntries(lines.map((line) => [line.slice(0, line.indexOf('=')), line.slice(line.indexOf('=') + 1)]))
}
