/** Starts the console of one cluster in the test process, with a small page and an API server that echoes requests. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type IncomingMessage, request as requestHttp, type ServerResponse } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { brotliCompressSync, gzipSync } from 'node:zlib'

import type { ConsoleOptions } from '#component/console/one-cluster/options.ts'
import { type ConsolePort, openConsolePort } from '#component/console/one-cluster/port.ts'
import type { SessionUser } from '#component/console/session-view.ts'
import { type Clock, realClock } from '#lib/clock.ts'
import { createHttpClient, type HttpClient } from '#lib/http/client.ts'
import { createLog } from '#lib/log/log.ts'
import { secureRandom } from '#lib/random.ts'

export interface Answer {
  readonly status: number
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>
  readonly body: Buffer
  readonly text: string
}

export interface RequestOptions {
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string
}

export interface ConsoleBed extends AsyncDisposable {
  readonly console: ConsolePort
  readonly port: number
  readonly links: readonly string[]
  readonly logged: () => string
  /** The API server. */
  readonly api: EchoApi
  /** Sends the path and the headers exactly so. The Host is that of the console by default. */
  send(method: string, path: string, options?: RequestOptions): Promise<Answer>
  /** Logs in and returns the header `Cookie`. */
  logIn(): Promise<string>
}

/** Responds with the request as JSON, or as `answer` does. */
export interface EchoApi {
  readonly requests: IncomingMessage[]
  answer: ((request: IncomingMessage, response: ServerResponse) => void) | undefined
}

/** The headers of a request of our page. */
export function ownPage(port: number): Readonly<Record<string, string>> {
  return { origin: `http://127.0.0.1:${port}`, 'sec-fetch-site': 'same-origin', 'x-hk': '1' }
}

const INDEX =
  '<!doctype html><meta name="csp-nonce" content="__NONCE__"><script type="module" src="/ui/assets/main-1.js"></script>'
export const MAIN: string = 'export const answer = 42\n'.repeat(100)

/** A folder as `scripts/build-console.ts` makes it. `size`: of index.html, in bytes. */
export function writePage(folder: string, size = 0): URL {
  mkdirSync(join(folder, 'assets'), { recursive: true })
  writeFileSync(join(folder, 'index.html'), INDEX + ' '.repeat(Math.max(0, size - INDEX.length)))
  writeFileSync(join(folder, 'icon.svg'), '<svg xmlns="http://www.w3.org/2000/svg"/>')
  writeFileSync(join(folder, 'assets', 'main-1.js'), MAIN)
  writeFileSync(join(folder, 'assets', 'main-1.js.br'), brotliCompressSync(MAIN))
  writeFileSync(join(folder, 'assets', 'main-1.js.gz'), gzipSync(MAIN))
  writeFileSync(join(folder, 'assets', 'main-1.css'), 'body { margin: 0 }')
  writeFileSync(join(folder, 'assets', 'secret.sh'), 'not served')
  return pathToFileURL(`${folder}/`)
}

export async function startConsoleBed(
  more: Partial<ConsoleOptions> & {
    readonly hasPage?: boolean
    readonly base?: string
    readonly clock?: Clock
    /** In place of the upgrades of the API server. */
    readonly upgrade?: HttpClient['upgrade']
  } = {},
): Promise<ConsoleBed> {
  const { hasPage = true, base = '', upgrade, ...changes } = more
  const closing = new AsyncDisposableStack()
  const folder = mkdtempSync(join(tmpdir(), 'console-'))
  closing.defer(() => rmSync(folder, { recursive: true, force: true }))
  const pageFolder = hasPage ? writePage(join(folder, 'page')) : pathToFileURL(join(folder, 'nothing/'))
  let logged = ''
  const stream = { write: (text: string, done: () => void) => ((logged += text), done()) }
  const { api, url } = await startEchoApi(closing)
  const client = createHttpClient({ clock: realClock })
  closing.defer(() => client.close())
  const links: string[] = []
  const console = await openConsolePort({
    clock: realClock,
    random: secureRandom,
    log: createLog({ clock: realClock, stream, errorStream: stream }).logger,
    port: 0,
    target: { client: upgrade === undefined ? client : { ...client, upgrade }, server: url + base },
    displayName: 'A cluster',
    version: '1.2.3',
    user: () => Promise.resolve(USER),
    newLinkCommand: 'hyperkube status',
    onLink: async (link) => void links.push(link),
    pageFolder,
    ...changes,
  })
  closing.defer(() => console.close())
  const send: ConsoleBed['send'] = (method, path, options) => sendTo(console.port, method, path, options)
  return {
    console,
    port: console.port,
    links,
    logged: () => logged,
    api,
    send,
    logIn: () => logInTo(console.port, console.link),
    [Symbol.asyncDispose]: () => closing.disposeAsync(),
  }
}

export const USER: SessionUser = {
  name: 'admin',
  username: 'admin',
  displayName: 'admin',
  isAdministrator: true,
  mustChangePassword: false,
  groups: ['system:masters'],
}

/** Opens the link as a browser does and returns the header `Cookie`. */
export async function logInTo(port: number, link: string): Promise<string> {
  const { pathname, search } = new URL(link)
  const { status, headers } = await sendTo(port, 'GET', pathname + search)
  const [cookie = ''] = [headers['set-cookie'] ?? []].flat()
  if (status !== 302) throw new Error(`Log-in failed with ${status}`)
  return cookie.split(';')[0] ?? ''
}

export function sendTo(
  port: number,
  method: string,
  path: string,
  { headers = {}, body }: RequestOptions = {},
): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const sent = { host: `127.0.0.1:${port}`, ...headers }
    const outgoing = requestHttp({ host: '127.0.0.1', port, method, path, headers: sent, agent: false }, (response) => {
      const pieces: Buffer[] = []
      response.on('data', (piece: Buffer) => pieces.push(piece))
      response.on('error', reject)
      response.on('end', () => {
        const whole = Buffer.concat(pieces)
        resolve({ status: response.statusCode ?? 0, headers: response.headers, body: whole, text: whole.toString() })
      })
    })
    outgoing.on('error', reject)
    outgoing.end(body)
  })
}

/** Writes bytes and resolves with everything that comes back until the connection ends or `until` is found. */
export function sendBytes(port: number, bytes: string, until?: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connect(port, '127.0.0.1', () => socket.write(bytes, 'latin1'))
    let text = ''
    const finish = (): void => {
      socket.destroy()
      resolve(text)
    }
    socket.on('data', (piece) => {
      text += piece.toString('latin1')
      if (until !== undefined && text.includes(until)) finish()
    })
    socket.on('error', reject)
    socket.on('close', finish)
  })
}

async function startEchoApi(closing: AsyncDisposableStack): Promise<{ readonly api: EchoApi; readonly url: string }> {
  const api: EchoApi = { requests: [], answer: undefined }
  const sockets = new Set<Socket>()
  const server = createServer((request, response) => {
    api.requests.push(request)
    if (api.answer !== undefined) return api.answer(request, response)
    const { method, url, rawHeaders } = request
    let body = ''
    request.on('data', (piece: Buffer) => (body += piece.toString()))
    request.on('end', () => response.end(JSON.stringify({ method, url, rawHeaders, body })))
  })
  server.on('connection', (socket) => {
    sockets.add(socket)
    socket.on('close', () => sockets.delete(socket))
  })
  server.on('upgrade', (request: IncomingMessage, socket: Socket) => {
    api.requests.push(request)
    const { upgrade = '' } = request.headers
    socket.on('error', () => undefined)
    socket.write(
      `HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: ${upgrade}\r\nSet-Cookie: a=1\r\n\r\n`,
    )
    socket.pipe(socket)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  closing.defer(() => {
    server.close()
    for (const socket of sockets) socket.destroy()
  })
  return { api, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` }
}
