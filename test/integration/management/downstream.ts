/** Fake clusters for tests: an HTTP server behind an agent, and an agent that sends arbitrary bytes. */
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Duplex } from 'node:stream'
import { connect, type TLSSocket } from 'node:tls'

import { runClusterAgent } from '#cluster-agent/agent.ts'
import { realClock } from '#lib/clock.ts'
import { connectWebSocket } from '#lib/http/websocket.ts'
import { createLog } from '#lib/log/log.ts'
import { secureRandom, uuid } from '#lib/random.ts'
import { readHead } from '#lib/tunnel/request-head.ts'
import { Tunnel, TUNNEL_PROTOCOL } from '#lib/tunnel/tunnel.ts'
import { Clusters } from '#management/kinds/cluster.ts'

import { eventually, type ManagementBed, startManagementBed } from './bed.ts'

export interface SeenRequest {
  readonly method: string
  readonly url: string
  /** In lower case, each header on its own. */
  readonly headers: readonly (readonly [name: string, value: string])[]
  readonly isUpgrade: boolean
}

export type Answering = (request: IncomingMessage, response: ServerResponse) => void

export interface EchoCluster extends AsyncDisposable {
  readonly kubeconfig: string
  readonly uid: string
  readonly seen: SeenRequest[]
  /** For paths that no probe of the server uses. */
  answer: Answering
}

const NOT_FOUND: Answering = (_request, response) => void response.writeHead(404).end('{}')

/** An HTTP server that is a healthy cluster for the probes of the management server, and records all other requests. */
export async function startEchoCluster(): Promise<EchoCluster> {
  const uid = uuid(secureRandom)
  const seen: SeenRequest[] = []
  const record = ({ method = '', url = '', rawHeaders }: IncomingMessage, isUpgrade: boolean): void => {
    const headers = Array.from(
      { length: rawHeaders.length / 2 },
      (_none, at) => [(rawHeaders[2 * at] ?? '').toLowerCase(), rawHeaders[2 * at + 1] ?? ''] as const,
    )
    seen.push({ method, url, headers, isUpgrade })
  }
  const server = createServer((request, response) => {
    const body = probeAnswer(request.url ?? '', uid)
    if (body !== undefined) return void response.writeHead(200, { 'content-type': 'application/json' }).end(body)
    // Requests of the server for itself.
    if (request.headers['user-agent']?.startsWith('hyperkube-server') === true) return NOT_FOUND(request, response)
    record(request, false)
    cluster.answer(request, response)
  })
  server.on('upgrade', (request: IncomingMessage, socket: Duplex) => {
    record(request, true)
    const lines = ['HTTP/1.1 101 Switching Protocols', 'Connection: Upgrade', `Upgrade: ${request.headers.upgrade}`]
    socket.on('error', () => undefined)
    socket.end([...lines, 'Set-Cookie: __Host-hk=planted; Path=/; Secure', '', 'hello'].join('\r\n'))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const cluster: EchoCluster = {
    kubeconfig: kubeconfigOf((server.address() as AddressInfo).port),
    uid,
    seen,
    answer: NOT_FOUND,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  }
  return cluster
}

/** The response to a health check of the management server; undefined for other requests. */
export function probeAnswer(url: string, uid: string): string | undefined {
  if (url === '/version') return JSON.stringify({ gitVersion: 'v1.36.0' })
  if (url.startsWith('/api/v1/namespaces/kube-system'))
    return JSON.stringify({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'kube-system', uid } })
  if (!url.startsWith('/api/v1/nodes?')) return undefined
  return JSON.stringify({ apiVersion: 'v1', kind: 'NodeList', metadata: { resourceVersion: '1' }, items: [] })
}

function kubeconfigOf(port: number): string {
  return JSON.stringify({
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [{ name: 'c', cluster: { server: `http://127.0.0.1:${port}` } }],
    users: [{ name: 'u', user: {} }],
    contexts: [{ name: 'x', context: { cluster: 'c', user: 'u' } }],
    'current-context': 'x',
  })
}

export interface Imported {
  readonly id: string
  readonly token: string
}

export async function importCluster(bed: ManagementBed, displayName: string): Promise<Imported> {
  const made = await bed.request('POST', '/v3/clusters', { token: bed.administrator, body: { displayName } })
  return { id: made.body['cluster'].metadata.name as string, token: made.body['token'] as string }
}

export async function connected({ running }: ManagementBed, id: string): Promise<void> {
  await eventually('the agent is connected', () => {
    const { connectedAt, disconnectedAt } = running.objects.get(Clusters, id)?.status?.agent ?? {}
    return connectedAt !== undefined && disconnectedAt === undefined
  })
}

/** A management server with one imported echo cluster. */
export interface EchoBed extends AsyncDisposable {
  readonly bed: ManagementBed
  readonly echo: EchoCluster
  /** The name of the Cluster. */
  readonly id: string
}

/** Resolves when the agent of the echo cluster is connected. */
export async function startEchoBed(answer: Answering = NOT_FOUND): Promise<EchoBed> {
  const bed = await startManagementBed()
  const echo = await startEchoCluster()
  echo.answer = answer
  const { id, token } = await importCluster(bed, 'echo')
  bed.runAgent(echo.kubeconfig, token)
  await connected(bed, id)
  return {
    bed,
    echo,
    id,
    async [Symbol.asyncDispose]() {
      await bed[Symbol.asyncDispose]()
      await echo[Symbol.asyncDispose]()
    },
  }
}

/** The header lines of a WebSocket handshake. */
export const WEBSOCKET_UPGRADE: readonly string[] = [
  'Connection: Upgrade',
  'Upgrade: websocket',
  'Sec-WebSocket-Version: 13',
  'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==',
]

export interface HostileAgent extends AsyncDisposable {
  readonly credential: string
}

/** A tunnel with the credential of an agent, which answers nothing. */
export async function openTunnel(
  { url, ca }: ManagementBed,
  { credential, uid }: { readonly credential: string; readonly uid: string },
): Promise<Tunnel> {
  const socket = await connectWebSocket({
    clock: realClock,
    url: `${url.replace('https', 'wss')}/v3/connect`,
    protocols: [TUNNEL_PROTOCOL],
    headers: {
      'x-api-tunnel-token': credential,
      'x-api-tunnel-params': Buffer.from(JSON.stringify({ uid, agentVersion: '0' })).toString('base64'),
    },
    tls: { ca },
  })
  return new Tunnel(socket, { clock: realClock, side: 'agent' })
}

export interface HostilePlan {
  readonly token: string
  readonly uid: string
  readonly credential?: string
  /** Writes the answer to the request with this head, which is JSON. */
  readonly answer: (stream: Duplex, head: string) => void
}

/** An agent that answers requests with the bytes of `answer`. */
export function startHostileAgent({ url, ca }: ManagementBed, plan: HostilePlan): HostileAgent {
  const { credential = secureRandom.bytes(32).toString('base64url'), token, uid, answer } = plan
  const stop = new AbortController()
  const quiet = { write: (_text: string, done: () => void) => done() }
  const ended = runClusterAgent(
    {
      server: url,
      ca,
      registrationToken: token,
      credential,
      describe: () => Promise.resolve({ uid, agentVersion: '0' }),
      proxy: {
        accept: (stream) => void answerHead(stream, answer).catch(() => undefined),
        close: () => Promise.resolve(),
      },
      clock: realClock,
      random: secureRandom,
      log: createLog({ clock: realClock, stream: quiet, errorStream: quiet }).logger,
    },
    stop.signal,
  )
  return {
    credential,
    async [Symbol.asyncDispose]() {
      stop.abort()
      await ended
    },
  }
}

async function answerHead(stream: Duplex, answer: HostilePlan['answer']): Promise<void> {
  stream.on('error', () => undefined)
  const head = await readHead(stream)
  stream.resume()
  answer(stream, head)
}

export function openTls({ url, ca }: ManagementBed, protocol = 'http/1.1'): Promise<TLSSocket> {
  const { promise, resolve, reject } = Promise.withResolvers<TLSSocket>()
  const port = Number(new URL(url).port)
  const socket = connect({ host: '127.0.0.1', port, ca, servername: 'localhost', ALPNProtocols: [protocol] })
  socket.once('secureConnect', () => resolve(socket))
  socket.on('error', reject)
  return promise
}

const ANSWER_MS = 5000

/** Sends bytes unchanged and returns the answer: what arrives until it is complete, or the connection ends. */
export async function sendRaw(bed: ManagementBed, bytes: string): Promise<string> {
  const socket = await openTls(bed)
  const { promise, resolve } = Promise.withResolvers<string>()
  let text = ''
  const timer = realClock.after(ANSWER_MS, () => resolve(text))
  socket.on('data', (piece: Buffer) => {
    text += piece.toString('latin1')
    if (isWhole(text)) resolve(text)
  })
  socket.on('close', () => resolve(text))
  socket.write(Buffer.from(bytes, 'latin1'))
  const answer = await promise
  timer.cancel()
  socket.destroy()
  return answer
}

function isWhole(text: string): boolean {
  const end = text.indexOf('\r\n\r\n')
  if (end < 0) return false
  const body = text.slice(end + 4)
  if (text.startsWith('HTTP/1.1 101')) return body.includes('hello')
  if (/^HTTP\/1\.1 204/m.test(text)) return true
  const [, length] = /\r\ncontent-length: *(\d+)/i.exec(text.slice(0, end)) ?? []
  return length === undefined ? body.endsWith('0\r\n\r\n') : body.length >= Number(length)
}

export function statusOf(answer: string): number {
  return Number(/^HTTP\/1\.1 (\d{3})/.exec(answer)?.[1] ?? 0)
}
