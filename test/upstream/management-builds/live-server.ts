/** A `hyperkube server` program that tests kill and start again. */
import { type ChildProcess, spawn } from 'node:child_process'
import { createWriteStream } from 'node:fs'
import { mkdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'

import { realClock, sleep } from '#lib/clock.ts'
import { createHttpClient, type HttpClient } from '#lib/http/client.ts'

import { end } from '../kube-apiserver.ts'
import { HYPERKUBE } from '../ours.ts'

const PASSWORD = 'correct horse battery staple'
const MAX_BYTES = 16 << 20

export class LiveServer implements AsyncDisposable {
  readonly #folder: string
  readonly #address: string
  #child: ChildProcess | undefined
  #http: HttpClient | undefined
  #token = ''

  /** `address`: where it listens. */
  constructor(folder: string, address: string) {
    this.#folder = folder
    this.#address = address
  }

  /** Logs in as the administrator. */
  async start(): Promise<void> {
    await mkdir(this.#folder, { recursive: true })
    const data = join(this.#folder, 'data')
    const url = `https://${this.#address}`
    const flags = [`--data-dir=${data}`, `--listen=${this.#address}`, `--server-url=${url}`]
    const child = spawn(HYPERKUBE, ['server', ...flags], { stdio: ['ignore', 'pipe', 'pipe'] })
    this.#child = child
    const log = createWriteStream(join(this.#folder, 'server.log'), { flags: 'a' })
    let output = ''
    for (const stream of [child.stdout, child.stderr]) {
      stream.pipe(log, { end: false })
      stream.on('data', (chunk: Buffer) => (output += chunk.toString()))
    }
    while (!/^Ready in \d+ ms/m.test(output)) {
      if (child.exitCode !== null) throw new Error(`hyperkube server ended: ${output}`)
      await sleep(realClock, 50)
    }
    this.#http ??= createHttpClient({
      clock: realClock,
      tls: { ca: await readFile(join(data, 'hyperkube-ca.crt'), 'utf8') },
    })
    if (this.#token !== '') return
    const link = new URL((await readFile(join(data, 'first-login'), 'utf8')).trim())
    const body = { code: link.searchParams.get('code'), password: PASSWORD, responseType: 'token' }
    this.#token = ((await this.request('POST', '/v3-public/first-login', body)) as { readonly token: string }).token
  }

  async kill(): Promise<void> {
    if (this.#child !== undefined) await end(this.#child, 'SIGKILL')
  }

  async request(method: string, path: string, body?: object): Promise<unknown> {
    return JSON.parse(await this.text(method, path, body)) as unknown
  }

  /** Rejects for answers that are no success. */
  async text(method: string, path: string, body?: object): Promise<string> {
    const { status, text } = await this.#send(method, path, body)
    if (status >= 300) throw new Error(`${method} ${path}: ${status} ${text}`)
    return text
  }

  async status(method: string, path: string): Promise<number> {
    return (await this.#send(method, path)).status
  }

  async #send(
    method: string,
    path: string,
    body?: object,
  ): Promise<{ readonly status: number; readonly text: string }> {
    if (this.#http === undefined) throw new Error('The server was not started')
    const authorization = this.#token === '' ? {} : { authorization: `Bearer ${this.#token}` }
    const headers = { 'content-type': 'application/json', ...authorization }
    const sent = body === undefined ? {} : { body: JSON.stringify(body) }
    const answer = await this.#http.request({ method, url: `https://${this.#address}${path}`, headers, ...sent })
    return { status: answer.status, text: await answer.text(MAX_BYTES) }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#http?.close()
    if (this.#child !== undefined) await end(this.#child, 'SIGTERM')
  }
}
