/**
 * Runs `hyperkube server` as a process that the load test kills and restarts, and sends the administrator's requests.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'

import { realClock } from '#lib/clock.ts'
import { createHttpClient, type HttpClient } from '#lib/http/client.ts'

const BIN = join(import.meta.dirname, '..', '..', '..', 'bin', 'hyperkube')
const PASSWORD = 'correct horse battery staple'

export class ServerProcess {
  readonly port: number
  readonly #dataDir: string
  #child: ChildProcess | undefined
  #http: HttpClient | undefined
  #token = ''
  maxRssBytes = 0

  constructor(dataDir: string, port: number) {
    this.#dataDir = dataDir
    this.port = port
  }

  get url(): string {
    return `https://127.0.0.1:${this.port}`
  }

  get ca(): string {
    return readFileSync(join(this.#dataDir, 'hyperkube-ca.crt'), 'utf8')
  }

  /** Resolves when the server is ready. */
  async start(): Promise<void> {
    const args = ['server', '--data-dir', this.#dataDir, '--listen', `127.0.0.1:${this.port}`]
    const child = spawn(BIN, args, { stdio: ['ignore', 'pipe', 'pipe'] })
    this.#child = child
    let text = ''
    child.stderr.on('data', (piece: Buffer) => (text = (text + piece.toString()).slice(-4000)))
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    child.stdout.on('data', (piece: Buffer) => {
      if (piece.includes('Ready in')) resolve()
    })
    child.once('exit', () => reject(new Error(`The server has ended:\n${text}`)))
    await promise
  }

  async kill(): Promise<void> {
    const child = this.#child
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return
    child.kill('SIGKILL')
    await once(child, 'exit')
  }

  /** Reads the memory of the process. */
  sample(): void {
    try {
      const [, kib = '0'] = /VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${this.#child?.pid}/status`, 'utf8')) ?? []
      this.maxRssBytes = Math.max(this.maxRssBytes, Number(kib) * 1024)
    } catch {
      // It was killed.
    }
  }

  async logIn(): Promise<void> {
    const link = new URL(readFileSync(join(this.#dataDir, 'first-login'), 'utf8'))
    const body = { code: link.searchParams.get('code'), password: PASSWORD, responseType: 'token' }
    this.#token = (await this.ask('POST', '/v3-public/first-login', body))['token'] as string
  }

  /** As the administrator. */
  async ask(method: string, path: string, body?: object): Promise<Record<string, unknown>> {
    this.#http ??= createHttpClient({ clock: realClock, tls: { ca: this.ca } })
    const headers = {
      'content-type': 'application/json',
      ...(this.#token !== '' && { authorization: `Bearer ${this.#token}` }),
    }
    const sent = body === undefined ? {} : { body: JSON.stringify(body) }
    const answer = await this.#http.request({ method, url: this.url, path, headers, ...sent })
    const text = await answer.text(1 << 26)
    if (answer.status >= 300) throw new Error(`${method} ${path}: ${answer.status} ${text}`)
    return JSON.parse(text) as Record<string, unknown>
  }

  close(): Promise<void> {
    this.#http?.close()
    return this.kill()
  }
}
