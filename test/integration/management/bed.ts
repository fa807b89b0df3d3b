/** Starts a management server and managed clusters in the test process. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { PassThrough } from 'node:stream'

import { Namespaces } from '#apis/core/v1.ts'
import { ApiClient } from '#client/api-client.ts'
import { programConfig } from '#client/connection/config.ts'
import { openConnection } from '#client/connection/connection.ts'
import { runClusterAgent } from '#cluster-agent/agent.ts'
import { createApiProxy } from '#cluster-agent/api-proxy.ts'
import { realClock, sleep } from '#lib/clock.ts'
import { createHttpClient, type HttpClient } from '#lib/http/client.ts'
import { createLog } from '#lib/log/log.ts'
import { secureRandom } from '#lib/random.ts'
import type { AuditEvent } from '#management/port/port.ts'
import { type RunningManagement, startManagement } from '#management/server.ts'
import type { UpPrograms } from '#management/up-clusters/programs.ts'

import { writePage } from '../console/bed.ts'

export interface ManagementBed extends AsyncDisposable {
  readonly running: RunningManagement
  readonly url: string
  readonly ca: string
  readonly audit: readonly AuditEvent[]
  /** The log of the server and its agents. */
  readonly logged: () => string
  /** The token of an administrator whose password is set. */
  readonly administrator: string
  request(method: string, path: string, options?: RequestOptions): Promise<Answer>
  /** Creates a user and returns a token of it. */
  createUser(username: string): Promise<{ readonly name: string; readonly token: string }>
  /** Connects a cluster; returns a function that stops its agent. A credential from before needs no token. */
  runAgent(kubeconfig: string, registrationToken: string, credential?: string): () => Promise<void>
}

export interface RequestOptions {
  readonly token?: string
  readonly body?: unknown
  readonly headers?: Readonly<Record<string, string>>
}

export interface Answer {
  readonly status: number
  readonly headers: Readonly<Record<string, unknown>>
  readonly text: string
  readonly body: Record<string, any> // eslint-disable-line @typescript-eslint/no-explicit-any
}

type BuildTools = Parameters<typeof startManagement>[1]['build']

export const PASSWORD = 'correct horse battery staple'
const FIRST_PASSWORD = 'a password for one day'
const MAX_BYTES = 256 << 20

/** A machine on which no cluster starts. */
const NO_CLUSTERS: UpPrograms = {
  find: () => Promise.resolve(undefined),
  start: () => Promise.reject(new Error('no programs in this test')),
  stop: () => Promise.resolve(),
  remove: () => Promise.resolve(),
}

/** `build`: tools with which clusters are built, instead of none. `consolePage`: default: a small page. */
export async function startManagementBed(
  upPrograms: UpPrograms = NO_CLUSTERS,
  build: Partial<BuildTools> = {},
  consolePage?: URL,
): Promise<ManagementBed> {
  const dataDir = mkdtempSync(join(tmpdir(), 'management-'))
  const closing = new AsyncDisposableStack()
  closing.defer(() => rmSync(dataDir, { recursive: true, force: true }))
  let logged = ''
  const stream = { write: (text: string, done: () => void) => ((logged += text), done()) }
  const log = createLog({ clock: realClock, stream, errorStream: stream }).logger
  const audit: AuditEvent[] = []
  const running = await startServer({ dataDir, log, audit, upPrograms, build, consolePage }, closing)
  const request = createRequest(running, closing)
  const administrator = await administratorLogin(request, running.firstLogin?.url ?? '')
  const { url, ca = '' } = running
  return {
    running,
    url,
    ca,
    audit,
    logged: () => logged,
    administrator,
    request,
    async createUser(name) {
      const body = { username: name, password: FIRST_PASSWORD }
      const made = await request('POST', '/v3/users', { token: administrator, body })
      const user = (made.body['user'] ?? made.body) as { readonly name?: string }
      return { name: user.name ?? '', token: await firstLogin(request, name, FIRST_PASSWORD) }
    },
    runAgent(kubeconfig, registrationToken, credential = newCredential()) {
      const stop = new AbortController()
      const ended = runAgent({ url, ca, kubeconfig, registrationToken, credential, dataDir, log }, stop.signal)
      const end = async (): Promise<void> => {
        stop.abort()
        await ended
      }
      closing.defer(end)
      return end
    },
    [Symbol.asyncDispose]: () => closing.disposeAsync(),
  }
}

function startServer(
  {
    dataDir,
    log,
    audit,
    upPrograms,
    build,
    consolePage = writePage(join(dataDir, 'page')),
  }: Pick<AgentPlan, 'dataDir' | 'log'> & {
    readonly audit: AuditEvent[]
    readonly upPrograms: UpPrograms
    readonly build: Partial<BuildTools>
    readonly consolePage: URL | undefined
  },
  closing: AsyncDisposableStack,
): Promise<RunningManagement> {
  const around = {
    clock: realClock,
    random: secureRandom,
    log,
    cwd: process.cwd(),
    stdout: new PassThrough().resume(),
    readFile: (path: string) => readFile(path, 'utf8'),
    graceMs: 1000,
    host: 'test',
    audit: (event: AuditEvent) => void audit.push(event),
    lostAuditLines: () => 0,
    build: { env: {}, kubectl: () => Promise.reject(new Error('There is no kubectl in this test')), ...build },
    upPrograms,
    onFirstLogin: () => Promise.resolve(),
    consolePage,
  }
  const plan = {
    dataDir,
    datastore: 'memory',
    etcd: { ca: '', certificate: '', key: '' },
    replicaToken: undefined,
    peerAddress: undefined,
    listen: { host: '127.0.0.1', port: 0 },
    apiPort: 0,
    serverUrl: undefined,
    certificate: undefined,
    agentImage: 'example.com/agent:1',
    etcdBinary: '',
    trustedProxies: [],
    version: '0.0.0',
  }
  return startManagement(plan, around, closing)
}

function createRequest({ url, ca = '' }: RunningManagement, closing: AsyncDisposableStack): ManagementBed['request'] {
  // HTTP/1.1 takes headers that HTTP/2 does not.
  const http = createHttpClient({ clock: realClock, tls: { ca }, http1Only: true })
  closing.defer(() => http.close())
  return (method, path, options) => sendRequest(http, { method, url, path, ...options })
}

interface SentRequest extends RequestOptions {
  readonly method: string
  readonly url: string
  readonly path: string
}

/** Sends a body that is no string as JSON. The `body` of the answer is empty if it is not JSON. */
export async function sendRequest(http: HttpClient, request: SentRequest): Promise<Answer> {
  const { method, url, path, token, body, headers = {} } = request
  const answer = await http.request({
    method,
    url,
    path,
    headers: {
      ...(token !== undefined && { authorization: `Bearer ${token}` }),
      ...(body !== undefined && { 'content-type': 'application/json' }),
      ...headers,
    },
    ...(body !== undefined && { body: typeof body === 'string' ? body : JSON.stringify(body) }),
  })
  const text = await answer.text(MAX_BYTES)
  return { status: answer.status, headers: answer.headers, text, body: parsed(text) }
}

/** Follows the link that the server printed. Returns an API token. */
export async function administratorLogin(request: ManagementBed['request'], link: string): Promise<string> {
  const code = new URL(link).searchParams.get('code')
  const body = { code, password: PASSWORD, responseType: 'token' }
  const answer = await request('POST', '/v3-public/first-login', { body })
  if (typeof answer.body['token'] !== 'string') throw new Error(`First log-in failed: ${answer.text}`)
  return answer.body['token']
}

/** Replaces the password, as users must at the first log-in. Returns an API token. */
async function firstLogin(request: ManagementBed['request'], username: string, password: string): Promise<string> {
  const body = { username, password, newPassword: PASSWORD, responseType: 'token' }
  const answer = await request('POST', '/v3-public/login', { body })
  if (typeof answer.body['token'] !== 'string') throw new Error(`Log-in failed: ${answer.text}`)
  return answer.body['token']
}

interface AgentPlan {
  readonly url: string
  readonly ca: string
  readonly kubeconfig: string
  readonly registrationToken: string
  readonly credential: string
  readonly dataDir: string
  readonly log: Parameters<typeof createApiProxy>[0]['log']
}

async function runAgent(plan: AgentPlan, signal: AbortSignal): Promise<void> {
  const { url: server, ca, kubeconfig, registrationToken, credential, dataDir, log } = plan
  const file = join(mkdtempSync(join(dataDir, 'agent-')), 'kubeconfig')
  writeFileSync(file, kubeconfig)
  const read = (path: string): Promise<string> => readFile(path, 'utf8')
  const config = await programConfig({ kubeconfig: file, master: '' }, { env: {}, cwd: '/', readFile: read })
  const connection = await openConnection(config, { clock: realClock, readFile: read })
  const proxy = createApiProxy({ connection, clock: realClock, log })
  const client = new ApiClient({ ...connection, clock: realClock, userAgent: 'agent' })
  const describe = async (): Promise<{ uid: string; agentVersion: string }> => {
    const { metadata } = await client.get(Namespaces, { name: 'kube-system' })
    return { uid: metadata.uid ?? '', agentVersion: '0.0.0' }
  }
  try {
    const tools = { clock: realClock, random: secureRandom, log }
    await runClusterAgent({ server, ca, registrationToken, credential, describe, proxy, ...tools }, signal)
  } finally {
    await proxy.close()
    connection.close()
  }
}

/** An agent that is no part of a bed. Returns a function that stops it. */
export function runTestAgent(plan: Omit<AgentPlan, 'dataDir' | 'log'>): () => Promise<void> {
  const dataDir = mkdtempSync(join(tmpdir(), 'test-agent-'))
  const quiet = { write: (_text: string, done: () => void) => done() }
  const log = createLog({ clock: realClock, stream: quiet, errorStream: quiet }).logger
  const stop = new AbortController()
  const ended = runAgent({ ...plan, dataDir, log }, stop.signal)
  return async () => {
    stop.abort()
    await ended
    rmSync(dataDir, { recursive: true, force: true })
  }
}

/** As agents make them. */
export function newCredential(): string {
  return secureRandom.bytes(32).toString('base64url')
}

function parsed(text: string): Answer['body'] {
  try {
    return JSON.parse(text) as Answer['body']
  } catch {
    return {}
  }
}

/** Waits until `probe` returns true. */
export async function eventually(what: string, probe: () => Promise<boolean> | boolean): Promise<void> {
  for (let tries = 0; tries < 400; tries++) {
    if (await probe()) return
    await sleep(realClock, 50)
  }
  throw new Error(`It did not happen within 20 s: ${what}`)
}
