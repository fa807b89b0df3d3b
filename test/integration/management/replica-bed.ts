/** Test bed for replicas: starts `hyperkube server` processes on one etcd, and a relay that can cut connections. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdtempSync, readFileSync, writeFileSync } from 'node:fs'
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import { realClock, sleep } from '#lib/clock.ts'
import { createHttpClient, type HttpClient } from '#lib/http/client.ts'

import { administratorLogin, type Answer, type RequestOptions, sendRequest } from './bed.ts'

const ENTRY = join(import.meta.dirname, '..', '..', '..', 'src', 'cmd', 'entry.ts')

/** Copies connections to one of several ports, in turn. */
export class Relay {
  readonly #server: Server
  readonly #sockets = new Set<Socket>()
  readonly #targets: () => readonly number[]
  #turn = 0
  #isCut = false

  constructor(targets: () => readonly number[]) {
    this.#targets = targets
    this.#server = createServer({ noDelay: true }, (client) => this.#join(client))
  }

  async listen(): Promise<number> {
    this.#server.listen(0, '127.0.0.1')
    await once(this.#server, 'listening')
    return this.port
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port
  }

  /** Drops all bytes without closing connections, as a network failure does. */
  cut(): void {
    this.#isCut = true
    for (const socket of this.#sockets) socket.pause()
  }

  /** Connections from before the cut are reset. */
  mend(): void {
    this.#isCut = false
    for (const socket of this.#sockets) socket.destroy()
  }

  close(): void {
    this.#server.close()
    for (const socket of this.#sockets) socket.destroy()
  }

  #join(client: Socket): void {
    this.#sockets.add(client)
    client.on('error', () => undefined).on('close', () => this.#sockets.delete(client))
    const targets = this.#targets()
    const port = targets[this.#turn++ % Math.max(1, targets.length)]
    if (this.#isCut) return void client.pause()
    if (port === undefined) return void client.destroy()
    const server = connect({ host: '127.0.0.1', port, noDelay: true })
    this.#sockets.add(server)
    server.on('error', () => client.destroy()).on('close', () => this.#sockets.delete(server))
    client.on('close', () => server.destroy())
    server.on('close', () => client.destroy())
    client.pipe(server)
    server.pipe(client)
  }
}

export interface ReplicaPlan {
  readonly datastore: string
  readonly serverUrl: string
  readonly token: string | undefined
}

export class Replica {
  readonly dataDir: string
  #port: number
  readonly #plan: ReplicaPlan
  #child: ChildProcess | undefined
  #http: HttpClient | undefined
  logged = ''

  constructor(port: number, plan: ReplicaPlan, dataDir: string = mkdtempSync(join(tmpdir(), 'replica-'))) {
    this.dataDir = dataDir
    this.#port = port
    this.#plan = plan
  }

  get port(): number {
    return this.#port
  }

  get url(): string {
    return `https://127.0.0.1:${this.port}`
  }

  get ca(): string {
    return readFileSync(join(this.dataDir, 'hyperkube-ca.crt'), 'utf8')
  }

  get isRunning(): boolean {
    return this.#child !== undefined && this.#child.exitCode === null && this.#child.signalCode === null
  }

  /** The next start uses this port. */
  move(port: number): void {
    this.#port = port
  }

  get isFirst(): boolean {
    return existsSync(join(this.dataDir, 'first-login'))
  }

  file(name: string): string {
    return readFileSync(join(this.dataDir, name), 'utf8')
  }

  /** Resolves when it is ready, and rejects with what it wrote if it ends. */
  async start(): Promise<void> {
    const { datastore, serverUrl, token } = this.#plan
    const tokenFile = join(this.dataDir, 'given-token')
    if (token !== undefined) writeFileSync(tokenFile, token, { mode: 0o600 })
    const listen = ['--listen', `127.0.0.1:${this.port}`, '--server-url', serverUrl, '--datastore', datastore]
    const args = ['server', '--data-dir', this.dataDir, ...listen]
    if (token !== undefined) args.push('--replica-token-file', tokenFile)
    const child = spawn(process.execPath, [ENTRY, ...args], { stdio: ['ignore', 'pipe', 'pipe'] })
    this.#child = child
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    child.stderr.on('data', (piece: Buffer) => (this.logged += piece.toString()))
    child.stdout.on('data', (piece: Buffer) => {
      if (piece.includes('Ready in')) resolve()
    })
    child.once('exit', () => reject(new Error(`The replica has ended:\n${this.logged.slice(-4000)}`)))
    await promise
  }

  async end(signal: 'SIGKILL' | 'SIGTERM'): Promise<void> {
    this.#http?.close()
    this.#http = undefined
    const child = this.#child
    if (child === undefined || !this.isRunning) return
    const exited = once(child, 'exit')
    child.kill(signal)
    await exited
  }

  /** Sends a request on a kept connection, without repeating anything. */
  async request(method: string, path: string, options?: RequestOptions): Promise<Answer> {
    this.#http ??= createHttpClient({ clock: realClock, tls: { ca: this.ca }, http1Only: true })
    return sendRequest(this.#http, { method, url: this.url, path, ...options })
  }

  /** The administrator sets a password, with the link of the replica that has made the account. Returns a token. */
  logIn(at: Replica = this): Promise<string> {
    return administratorLogin((...request) => at.request(...request), this.file('first-login').trim())
  }
}

/** Starts a replica whose address no client has yet: on another port if another process has taken its port. */
export async function startAnywhere(replica: Replica): Promise<void> {
  for (let tries = 0; ; tries++) {
    try {
      return await replica.start()
    } catch (error) {
      if (!String(error).includes('in use') || tries === 5) throw error
      replica.move(await freePort())
    }
  }
}

export async function freePort(): Promise<number> {
  const probe = createServer().listen(0, '127.0.0.1')
  await once(probe, 'listening')
  const { port } = probe.address() as AddressInfo
  probe.close()
  await once(probe, 'close')
  return port
}

/** Waits until `probe` returns true. Longer than the lease of a dead replica. */
export async function eventuallySlow(what: string, probe: () => Promise<boolean> | boolean): Promise<void> {
  for (let tries = 0; tries < 600; tries++) {
    if (await Promise.resolve(probe()).catch(() => false)) return
    await sleep(realClock, 100)
  }
  throw new Error(`It did not happen within 60 s: ${what}`)
}
