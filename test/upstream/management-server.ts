/** Runs `hyperkube server` and imports clusters with `hyperkube cluster-agent`, as separate programs. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createWriteStream, readFileSync } from 'node:fs'
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'

import { realClock, sleep } from '#lib/clock.ts'
import { createHttpClient, type HttpClient } from '#lib/http/client.ts'

import { end, freePort } from './kube-apiserver.ts'
import { HYPERKUBE } from './ours.ts'

/** Of all users. */
export const PASSWORD = 'correct horse battery staple'
const FIRST_PASSWORD = 'a password for one day'
const MAX_BYTES = 16 << 20

export interface ManagementServerOptions {
  /** The address it listens on; 127.0.0.1 unless given. */
  readonly host?: string
  /** A free port unless given. */
  readonly port?: number
  /** The value of --server-url; the flag is omitted unless given. */
  readonly serverUrl?: string
}

/** Starts a server with its data and logs in `folder`, and logs in as the administrator. */
export async function startManagementServer(
  folder: string,
  { host = '127.0.0.1', port, serverUrl }: ManagementServerOptions = {},
): Promise<ManagementServer> {
  await mkdir(folder, { recursive: true })
  const server = new ManagementServer(folder, `${host}:${port ?? (await freePort())}`, serverUrl)
  await server.start()
  await server.login()
  return server
}

export interface TestUser {
  /** `u-x7k2p`. */
  readonly name: string
  readonly token: string
}

export class ManagementServer implements AsyncDisposable {
  readonly #folder: string
  readonly #address: string
  readonly #serverUrl: string | undefined
  readonly #closing = new AsyncDisposableStack()
  #child: ChildProcess | undefined
  #http: HttpClient | undefined
  #token = ''

  constructor(folder: string, address: string, serverUrl?: string) {
    this.#folder = folder
    this.#address = address
    this.#serverUrl = serverUrl
    this.#closing.defer(async () => {
      if (this.#child !== undefined) await end(this.#child, 'SIGTERM')
    })
    this.#closing.defer(() => this.#http?.close())
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#closing.disposeAsync()
  }

  /** Resolves when the server is ready. */
  async start(): Promise<void> {
    const publicUrl = this.#serverUrl === undefined ? [] : [`--server-url=${this.#serverUrl}`]
    const flags = [`--data-dir=${this.#dataDir}`, `--listen=${this.#address}`, ...publicUrl]
    const program = startProgram(['server', ...flags], join(this.#folder, 'server.log'))
    this.#child = program.child
    await program.printed(/^Ready in \d+ ms:/m)
    this.#http ??= createHttpClient({ clock: realClock, tls: { ca: await readFile(this.#authority, 'utf8') } })
  }

  /** Without notice. */
  async kill(): Promise<void> {
    if (this.#child !== undefined) await end(this.#child, 'SIGKILL')
  }

  get url(): string {
    return `https://${this.#address}`
  }

  /** Of the process that runs now, or ran last. */
  get pid(): number | undefined {
    return this.#child?.pid
  }

  /** PEM of the authority of the server. */
  get authority(): string {
    return readFileSync(this.#authority, 'utf8')
  }

  /** The response to a request with any token, or without one. */
  async answer(request: PlainRequest): Promise<{ readonly status: number; readonly text: string }> {
    const { method, path, token = '', body } = request
    const response = await this.#ask(method, path, { token, ...(body !== undefined && { body }) })
    return { status: response.status, text: await response.text(MAX_BYTES) }
  }

  /** Sets the administrator's password with the code of the link that the server printed. */
  async login(): Promise<void> {
    const link = new URL(await readFile(join(this.#dataDir, 'first-login'), 'utf8'))
    const body = { code: link.searchParams.get('code'), password: PASSWORD, responseType: 'token' }
    this.#token = ((await this.request('POST', '/v3-public/first-login', body)) as TestUser).token
  }

  /** As the administrator. Rejects for an error. */
  async request(method: string, path: string, body?: object): Promise<unknown> {
    return JSON.parse(await this.text(method, path, body)) as unknown
  }

  /** The same, for responses that are not JSON. */
  text(method: string, path: string, body?: object): Promise<string> {
    return this.#send(method, path, body)
  }

  /** A merge patch of a management object. */
  async patch(path: string, body: object): Promise<void> {
    await this.#send('PATCH', path, body, 'application/merge-patch+json')
  }

  /** The status of the answer, for the administrator or for another user. */
  async statusOf(method: string, path: string, token: string = this.#token): Promise<number> {
    const answer = await this.#ask(method, path, { token })
    await answer.text(MAX_BYTES)
    return answer.status
  }

  /** Posts as another user. */
  async requestAs({ token }: TestUser, path: string, body: object): Promise<unknown> {
    const answer = await this.#ask('POST', path, { body, token })
    return JSON.parse(await answer.text(MAX_BYTES)) as unknown
  }

  async createUser(username: string): Promise<TestUser> {
    const { name } = (await this.request('POST', '/v3/users', { username, password: FIRST_PASSWORD })) as TestUser
    const body = { username, password: FIRST_PASSWORD, newPassword: PASSWORD, responseType: 'token' }
    return { name, token: ((await this.request('POST', '/v3-public/login', body)) as TestUser).token }
  }

  /** A file with a kubeconfig of the user that leads through the server. */
  async kubeconfigOf(id: string, user?: TestUser): Promise<string> {
    const file = join(this.#folder, `${id}${user === undefined ? '' : `-${user.name}`}.kubeconfig`)
    const token = user?.token ?? this.#token
    const answer = await this.#ask('POST', `/v3/clusters/${id}/kubeconfig`, { body: {}, token })
    await writeFile(file, await answer.text(MAX_BYTES), { mode: 0o600 })
    return file
  }

  /** Imports the cluster of an administrator's kubeconfig. Returns a file with a kubeconfig that leads through the server. */
  async importCluster(name: string, kubeconfig: string): Promise<string> {
    return this.kubeconfigOf(await this.importAs(name, kubeconfig))
  }

  /** The same. Returns the name of the Cluster. */
  async importAs(displayName: string, kubeconfig: string): Promise<string> {
    const made = (await this.request('POST', '/v3/clusters', { displayName })) as Imported
    const id = made.cluster.metadata.name
    await applyManifest(kubeconfig, await this.text('GET', new URL(made.manifestUrl).pathname))
    await this.runAgent(id, made.token, kubeconfig)
    await untilReady(() => this.request('GET', `/v3/clusters/${id}`))
    return id
  }

  /** Starts an agent beside its cluster. Resolves when it has connected. */
  async runAgent(id: string, token: string, kubeconfig: string): Promise<void> {
    const flags = [
      `--server=https://${this.#address}`,
      `--certificate-authority=${this.#authority}`,
      `--token=${token}`,
      `--kubeconfig=${kubeconfig}`,
      `--credential-file=${join(this.#folder, `${id}.credential`)}`,
    ]
    const agent = startProgram(['cluster-agent', ...flags], join(this.#folder, `${id}.log`))
    this.#closing.defer(() => end(agent.child, 'SIGTERM'))
    await agent.printed(/Connected to the management server/)
  }

  get #dataDir(): string {
    return join(this.#folder, 'data')
  }

  get #authority(): string {
    return join(this.#dataDir, 'hyperkube-ca.crt')
  }

  async #send(method: string, path: string, body?: object, type?: string): Promise<string> {
    const answer = await this.#ask(method, path, { ...(body && { body }), ...(type && { type }), token: this.#token })
    const text = await answer.text(MAX_BYTES)
    if (answer.status >= 300) throw new Error(`${method} ${path}: ${answer.status} ${text}`)
    return text
  }

  #ask(
    method: string,
    path: string,
    { body, type = 'application/json', token }: RequestParts,
  ): ReturnType<HttpClient['request']> {
    if (this.#http === undefined) throw new Error('The server has not started')
    const headers = { 'content-type': type, ...(token !== '' && { authorization: `Bearer ${token}` }) }
    const sent = body === undefined ? {} : { body: JSON.stringify(body) }
    return this.#http.request({ method, url: `https://${this.#address}`, path, headers, ...sent })
  }
}

interface RequestParts {
  readonly body?: object
  readonly type?: string
  readonly token: string
}

export interface PlainRequest {
  readonly method: string
  readonly path: string
  readonly token?: string
  readonly body?: object
}

interface Imported {
  readonly cluster: { readonly metadata: { readonly name: string } }
  readonly manifestUrl: string
  readonly token: string
}

interface Started {
  readonly child: ChildProcess
  /** Resolves with the first match in its output. Rejects if the program ends before. */
  printed(line: RegExp): Promise<RegExpExecArray>
}

function startProgram(args: readonly string[], log: string): Started {
  const child = spawn(HYPERKUBE, args, { stdio: ['ignore', 'pipe', 'pipe'] })
  const file = createWriteStream(log, { flags: 'a' })
  let output = ''
  for (const stream of [child.stdout, child.stderr]) {
    stream.pipe(file, { end: false })
    stream.on('data', (chunk: Buffer) => (output += chunk.toString()))
  }
  return {
    child,
    async printed(line) {
      for (let match = line.exec(output); ; match = line.exec(output)) {
        if (match !== null) return match
        if (child.exitCode !== null || child.signalCode !== null)
          throw new Error(`hyperkube ${args[0]} ended; its log is ${log}`)
        await sleep(realClock, 20)
      }
    },
  }
}

/** All but the Deployment, whose image is in no registry here: the agent runs beside the cluster. */
async function applyManifest(kubeconfig: string, manifest: string): Promise<void> {
  const objects = manifest.split('---\n').filter((text) => text !== '' && !text.includes('kind: Deployment'))
  const child = spawn(HYPERKUBE, ['kubectl', '--kubeconfig', kubeconfig, 'apply', '-f', '-'], {
    stdio: ['pipe', 'ignore', 'inherit'],
  })
  child.stdin.end(objects.join('---\n'))
  const [code] = (await once(child, 'exit')) as [number | null]
  if (code !== 0) throw new Error(`kubectl apply ended with ${code}`)
}

async function untilReady(read: () => Promise<unknown>): Promise<void> {
  for (let tries = 0; tries < 300; tries++) {
    const { status } = (await read()) as { status?: { conditions?: { type: string; status: string }[] } }
    const isTrue = (type: string): boolean =>
      status?.conditions?.some((condition) => condition.type === type && condition.status === 'True') === true
    if (isTrue('Ready') && isTrue('RolesApplied')) return
    await sleep(realClock, 100)
  }
  throw new Error('The imported cluster did not become ready within 30 s')
}
