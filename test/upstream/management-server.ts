/** Runs `hyperkube server` and imports clusters with `hyperkube cluster-agent`, as separate programs. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createWriteStream } from 'node:fs'
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'

import { realClock, sleep } from '#lib/clock.ts'
import { createHttpClient, type HttpClient } from '#lib/http/client.ts'

import { end } from './kube-apiserver.ts'
import { HYPERKUBE } from './ours.ts'

const PASSWORD = 'correct horse battery staple'
const MAX_BYTES = 16 << 20

/** Starts a server with its data and logs in `folder`, and logs in as the administrator. */
export async function startManagementServer(folder: string): Promise<ManagementServer> {
  await mkdir(folder, { recursive: true })
  const dataDir = join(folder, 'data')
  const program = startProgram(['server', `--data-dir=${dataDir}`, '--listen=127.0.0.1:0'], join(folder, 'server.log'))
  const [, url = ''] = await program.printed(/^Ready in \d+ ms: (\S+)/m)
  const authority = join(dataDir, 'hyperkube-ca.crt')
  const http = createHttpClient({ clock: realClock, tls: { ca: await readFile(authority, 'utf8') } })
  const server = new ManagementServer({ url, folder, authority, http }, program.child)
  await server.login(new URL(await readFile(join(dataDir, 'first-login'), 'utf8')).searchParams.get('code') ?? '')
  return server
}

interface ServerFiles {
  readonly url: string
  readonly folder: string
  /** The file with the authority of the server. */
  readonly authority: string
  readonly http: HttpClient
}

export class ManagementServer implements AsyncDisposable {
  readonly #files: ServerFiles
  readonly #closing = new AsyncDisposableStack()
  #token = ''

  constructor(files: ServerFiles, child: ChildProcess) {
    this.#files = files
    this.#closing.defer(() => end(child, 'SIGTERM'))
    this.#closing.defer(() => files.http.close())
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#closing.disposeAsync()
  }

  /** Sets the administrator's password with the code of the link that the server printed. */
  async login(code: string): Promise<void> {
    const body = { code, password: PASSWORD, responseType: 'token' }
    this.#token = ((await this.request('POST', '/v3-public/first-login', body)) as { readonly token: string }).token
  }

  async request(method: string, path: string, body?: object): Promise<unknown> {
    return JSON.parse(await this.#send(method, path, body)) as unknown
  }

  /** Imports the cluster of an administrator's kubeconfig. Returns a file with a kubeconfig that leads through the server. */
  async importCluster(name: string, kubeconfig: string): Promise<string> {
    const { url, folder, authority } = this.#files
    const made = (await this.request('POST', '/v3/clusters', { displayName: name })) as Imported
    const id = made.cluster.metadata.name
    await applyManifest(kubeconfig, await this.#send('GET', new URL(made.manifestUrl).pathname))
    const flags = [
      `--server=${url}`,
      `--certificate-authority=${authority}`,
      `--token=${made.token}`,
      `--kubeconfig=${kubeconfig}`,
      `--credential-file=${join(folder, `${id}.credential`)}`,
    ]
    const agent = startProgram(['cluster-agent', ...flags], join(folder, `${id}.log`))
    this.#closing.defer(() => end(agent.child, 'SIGTERM'))
    await agent.printed(/Connected to the management server/)
    const file = join(folder, `${id}.kubeconfig`)
    await writeFile(file, await this.#send('POST', `/v3/clusters/${id}/kubeconfig`, {}), { mode: 0o600 })
    await untilReady(() => this.request('GET', `/v3/clusters/${id}`))
    return file
  }

  async #send(method: string, path: string, body?: object): Promise<string> {
    const { http, url } = this.#files
    const authorization = this.#token === '' ? {} : { authorization: `Bearer ${this.#token}` }
    const headers = { 'content-type': 'application/json', ...authorization }
    const sent = body === undefined ? {} : { body: JSON.stringify(body) }
    const answer = await http.request({ method, url: url + path, headers, ...sent })
    const text = await answer.text(MAX_BYTES)
    if (answer.status >= 300) throw new Error(`${method} ${path}: ${answer.status} ${text}`)
    return text
  }
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
  const file = createWriteStream(log)
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
        if (child.exitCode !== null) throw new Error(`hyperkube ${args[0]} ended; its log is ${log}`)
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
