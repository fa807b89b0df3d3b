/**
 * The real `kube-apiserver` as a separate process that a test can start, kill and restart on its data. Its TLS port
 * stays the same after restarts. Clients are one of four users: an administrator, a user with all permissions, a user
 * without any, and an anonymous one.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { type AddressInfo, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { performance } from 'node:perf_hooks'
import { fileURLToPath } from 'node:url'

import { realClock } from '#lib/clock.ts'
import { secureRandom } from '#lib/random.ts'
import { createAuthority } from '#lib/x509/authority.ts'
import { createKey, keyToPem } from '#lib/x509/key.ts'

import { pause } from '../pause.ts'
import type { ProbeSample } from './probe.ts'
import { openConnection } from './raw-http.ts'

const SOURCES = fileURLToPath(new URL('../../../src/cmd/entry.ts', import.meta.url))
/** The bundle of `npm run build`, which starts several times as fast as the sources. */
const BUILT = fileURLToPath(new URL('../../../dist/hyperkube.mjs', import.meta.url))
const PROBE = new URL('probe.ts', import.meta.url).href

/** Longer than any start should take, on a busy machine. */
const START_TIMEOUT_MS = 60_000
const READY_POLL_MS = 5
/** The part of the output that reports keep. */
const KEPT_OUTPUT = 20_000

/** Where the program listens, and whom its certificate is from: all a client needs, and fit to be sent to a worker. */
export interface Target {
  readonly port: number
  readonly ca: string
}

/** The users of requests and their tokens in the token file. */
export const TOKENS = { root: 'token-of-root', user: 'token-of-user', nobody: 'token-of-nobody' } as const
export type Person = keyof typeof TOKENS | 'anonymous'

/** The header that says so. */
export function credentials(person: Person): Record<string, string> {
  return person === 'anonymous' ? {} : { authorization: `Bearer ${TOKENS[person]}` }
}

export interface ProgramOptions {
  /** `memory`, `sqlite` (a file of its own) or the URLs of an etcd. */
  readonly datastore: string
  readonly flags?: readonly string[]
  /** Run what was built last instead of the sources. */
  readonly isBuilt?: boolean
  /** URLs of further modules that the program loads before its first line. */
  readonly imports?: readonly string[]
}

export class ApiProgram {
  readonly #options: ProgramOptions
  readonly #folder = mkdtempSync(join(tmpdir(), 'reliability-api-'))
  readonly target: Target
  #child: ChildProcess | undefined
  #exited: Promise<unknown> = Promise.resolve()
  /** The end of what it wrote to stderr. */
  output = ''
  #unread = ''
  /** Those who wait for a reply of a module of `imports`, in the order of their commands. */
  readonly #replies: ((reply: unknown) => void)[] = []
  samples: ProbeSample[] = []

  /** Everything it needs is made here; nothing runs yet. */
  static async create(options: ProgramOptions): Promise<ApiProgram> {
    return new ApiProgram(options, await freePort())
  }

  constructor(options: ProgramOptions, port: number) {
    this.#options = options
    this.target = { port, ca: writeFiles(this.#folder) }
    process.on('exit', this.#end)
  }

  get pid(): number {
    return this.#child?.pid ?? 0
  }

  get isRunning(): boolean {
    const child = this.#child
    return child !== undefined && child.exitCode === null && child.signalCode === null
  }

  /** Where the store is; undefined for one that is not a file. */
  get storeFile(): string | undefined {
    return this.#options.datastore === 'sqlite' ? join(this.#folder, 'state.db') : undefined
  }

  /** Starts it; resolves to the time until /readyz said ok. Throws what it said when it does not come up. */
  async start(): Promise<number> {
    const begun = performance.now()
    const entry = this.#options.isBuilt === true ? BUILT : SOURCES
    const imports = [PROBE, ...(this.#options.imports ?? [])].flatMap((url) => ['--import', url])
    const args = ['--disable-warning=ExperimentalWarning', ...imports, entry, 'kube-apiserver', ...this.#flags()]
    const child = spawn(process.execPath, args, { cwd: this.#folder, stdio: ['ignore', 'ignore', 'pipe', 'ipc'] })
    this.#child = child
    this.#exited = once(child, 'exit')
    child.stderr?.on('data', (piece: Buffer) => this.#hear(piece.toString()))
    child.on('message', (message: object) => {
      if ('cost' in message) this.#replies.shift()?.(message.cost)
      else this.samples.push(message as ProbeSample)
    })
    while (!(await this.isReady())) {
      const isLate = performance.now() - begun > START_TIMEOUT_MS
      if (isLate) child.kill('SIGKILL')
      if (isLate || !this.isRunning) throw new Error(`The server did not come up: ${this.output}`)
      await pause(READY_POLL_MS)
    }
    return performance.now() - begun
  }

  /** The reply of a module of `imports`; rejects when the program has ended. */
  async ask(command: string): Promise<unknown> {
    const reply = new Promise((resolve) => this.#replies.push(resolve))
    this.#child?.send(command)
    const ended = this.#exited.then(() => Promise.reject(new Error(`The server ended: ${this.output.slice(-3000)}`)))
    return Promise.race([reply, ended])
  }

  #hear(text: string): void {
    this.output = (this.output + text).slice(-KEPT_OUTPUT)
    this.#unread = (this.#unread + text).slice(-KEPT_OUTPUT)
  }

  /** Returns new log output if it contains stacks or warnings. */
  takeComplaint(): string | undefined {
    const text = this.#unread
    this.#unread = ''
    return /Warning:|\n\s+at /.test(text) ? text.slice(0, 1500) : undefined
  }

  async isReady(): Promise<boolean> {
    try {
      const connection = await openConnection(this.target)
      const { status } = await connection.send({ path: '/readyz', timeoutMs: 2000 })
      connection.close()
      return status === 200
    } catch {
      return false
    }
  }

  /** SIGKILL; resolves when it has gone. */
  async kill(): Promise<void> {
    this.#child?.kill('SIGKILL')
    await this.#exited
  }

  /** SIGTERM; resolves to its exit code and how long it took. One that does not end is killed: its code is null. */
  async terminate(limitMs: number): Promise<{ readonly code: number | null; readonly tookMs: number }> {
    const begun = performance.now()
    this.#child?.kill('SIGTERM')
    const timer = setTimeout(() => this.#child?.kill('SIGKILL'), limitMs)
    await this.#exited
    clearTimeout(timer)
    return { code: this.#child?.exitCode ?? null, tookMs: performance.now() - begun }
  }

  /** Ends it and removes every trace. */
  async close(): Promise<void> {
    if (this.isRunning) await this.kill()
    this.#end()
    process.off('exit', this.#end)
  }

  readonly #end = (): void => {
    this.#child?.kill('SIGKILL')
    rmSync(this.#folder, { recursive: true, force: true })
  }

  #flags(): string[] {
    const { datastore, flags = [] } = this.#options
    const store = datastore.startsWith('http')
      ? `--etcd-servers=${datastore}`
      : `--datastore=${datastore === 'sqlite' ? 'sqlite:state.db' : datastore}`
    return [...FLAGS, store, `--secure-port=${this.target.port}`, ...flags]
  }
}

/** The flags envtest gives, but for the store, and with tokens for the four people. */
const FLAGS = [
  '--bind-address=127.0.0.1',
  '--cert-dir=certs',
  '--service-cluster-ip-range=10.0.0.0/24',
  '--allow-privileged=true',
  '--disable-admission-plugins=ServiceAccount',
  '--authorization-mode=Node,RBAC',
  '--service-account-signing-key-file=sa.key',
  '--service-account-key-file=sa.pub',
  '--service-account-issuer=https://127.0.0.1/',
  '--client-ca-file=ca.crt',
  '--tls-cert-file=server.crt',
  '--tls-private-key-file=server.key',
  '--token-auth-file=tokens.csv',
]

const PEOPLE = [
  `${TOKENS.root},root,1,"system:masters"`,
  `${TOKENS.user},user,2,"users"`,
  `${TOKENS.nobody},nobody,3,"nobodies"`,
]

/** Returns the authority of the server's certificate. */
function writeFiles(folder: string): string {
  const authority = createAuthority({ commonName: 'reliability' }, { clock: realClock, random: secureRandom })
  const { certificatePem, keyPem } = authority.issue({
    commonName: 'server',
    names: { ips: ['127.0.0.1'], dns: ['localhost'] },
    purpose: 'server',
  })
  const accounts = createKey('ecdsa-p256')
  const write = (name: string, text: string): void => writeFileSync(join(folder, name), text, { mode: 0o600 })
  write('ca.crt', authority.certificatePem)
  write('server.crt', certificatePem)
  write('server.key', keyPem)
  write('sa.key', keyToPem(accounts))
  write('sa.pub', keyToPem(accounts))
  write('tokens.csv', `${PEOPLE.join('\n')}\n`)
  return readFileSync(join(folder, 'ca.crt'), 'utf8')
}

/** The ordinary user may do everything, as far as RBAC goes; only the root is above all limits. */
export async function allowUser(target: Target): Promise<void> {
  const connection = await openConnection(target)
  const body = JSON.stringify({
    metadata: { name: 'user-may-do-everything' },
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'cluster-admin' },
    subjects: [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'User', name: 'user' }],
  })
  const { status, body: text } = await connection.send({
    method: 'POST',
    path: '/apis/rbac.authorization.k8s.io/v1/clusterrolebindings',
    headers: { ...credentials('root'), 'content-type': 'application/json' },
    body,
  })
  connection.close()
  if (status !== 201 && status !== 409) throw new Error(`The user got no rights: ${status} ${text.toString()}`)
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  server.close()
  await once(server, 'close')
  return port
}
