/**
 * Starts a kubelet, ours or upstream's, as a process on a private containerd and API server, to test both under the
 * same conditions. A test can cut its connection to the server.
 */
import { type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { access, mkdir, readdir, readFile, rmdir, writeFile } from 'node:fs/promises'
import { request } from 'node:https'
import { createServer, type Server as NetServer, type Socket, connect } from 'node:net'
import { join } from 'node:path'

import { type Containerd } from '#containerd/start.ts'
import { realClock, sleep } from '#lib/clock.ts'
import { unmountBelow } from '#lib/files/mount-table.ts'
import { secureRandom } from '#lib/random.ts'
import { loadAuthority } from '#lib/x509/authority.ts'

import { installed } from '../bench/server-under-test.ts'
import { type Bed as ContainerdBed, createBed } from '../integration/kubelet/containerd-bed.ts'
import { end, freePort, launch } from './kube-apiserver.ts'
import { ask, HYPERKUBE, type Server, startOurs } from './ours.ts'
import { upstreamPrograms } from './programs.ts'

/** `sources`: ours as it stands in the tree, for who measures nothing. */
export type Make = 'ours' | 'sources' | 'upstream'

/** The connection between a kubelet and its server, which tests can cut. */
export class Link {
  readonly #sockets = new Set<Socket>()
  readonly #server: NetServer
  readonly #target: number
  #isCut = false
  /** Bytes that came from the kubelet. */
  sentBytes = 0

  constructor(target: number) {
    this.#target = target
    this.#server = createServer((near) => this.#join(near))
  }

  async listen(): Promise<number> {
    this.#server.listen(0, '127.0.0.1')
    await once(this.#server, 'listening')
    const address = this.#server.address()
    return typeof address === 'object' && address !== null ? address.port : 0
  }

  #join(near: Socket): void {
    if (this.#isCut) return void near.destroy()
    const far = connect(this.#target, '127.0.0.1')
    near.on('data', (bytes) => void (this.sentBytes += bytes.length))
    for (const [one, other] of [
      [near, far],
      [far, near],
    ] as const) {
      this.#sockets.add(one)
      one.on('error', () => other.destroy())
      one.on('close', () => void (this.#sockets.delete(one), other.destroy()))
      one.pipe(other)
    }
  }

  cut(): void {
    this.#isCut = true
    for (const socket of this.#sockets) socket.destroy()
  }

  mend(): void {
    this.#isCut = false
  }

  close(): void {
    this.cut()
    this.#server.close()
  }
}

export interface RunningKubelet {
  readonly make: Make
  readonly child: ChildProcess
  readonly port: number
  readonly rootDir: string
  readonly log: string
  stop(signal: 'SIGTERM' | 'SIGKILL'): Promise<void>
}

export interface KubeletBed {
  readonly folder: string
  readonly server: Server
  readonly containerd: Containerd
  readonly machine: ContainerdBed
  /** Every kubelet of the bed talks to its server by it. */
  readonly link: Link
  readonly node: string
  /** Resolves when the node is ready. `settings`: of the KubeletConfiguration, `flags`: both besides the usual. */
  start(make: Make, settings?: object, flags?: readonly string[]): Promise<RunningKubelet>
  /** Sends a request as the administrator. Throws if it fails. */
  ask<T>(method: string, path: string, body?: unknown): Promise<T>
}

/** Everything is taken away with `closing`. */
export async function startKubeletBed(node: string, closing: AsyncDisposableStack): Promise<KubeletBed> {
  const machine = closing.use(createBed())
  const { dataDir: folder } = machine.options
  // Volumes that pods left; upstream's kubelet mounts its folder on itself.
  closing.defer(() => unmountBelow([folder]))
  const server = await startOurs(folder)
  closing.defer(() => server.stop())
  const containerd = await machine.start(closing)
  const link = new Link(server.port)
  closing.defer(() => link.close())
  await writeNodeConfig(folder, { ...server, port: await link.listen() }, node)
  const lives = new Set<RunningKubelet>()
  closing.defer(async () => {
    for (const kubelet of lives) await kubelet.stop('SIGKILL')
    await removeCgroups(machine.places.cgroupParent)
  })
  const bed: KubeletBed = {
    folder,
    server,
    containerd,
    machine,
    link,
    node,
    async start(make, settings = {}, flags = []) {
      const kubelet = await launchKubelet(bed, make, { settings, flags })
      lives.add(kubelet)
      await untilNodeReady(server, node, kubelet)
      return kubelet
    },
    async ask<T>(method: string, path: string, body?: unknown): Promise<T> {
      const told = await ask(server, { method, path, ...(body !== undefined && { body }) })
      if (told.status >= 300) throw new Error(`${method} ${path}: ${told.status} ${JSON.stringify(told.body)}`)
      return told.body as T
    },
  }
  await bed.ask('POST', '/api/v1/namespaces/default/serviceaccounts', { metadata: { name: 'default' } })
  return bed
}

/** A restart finds the files, the ports and the pods of the life before. */
const ports = new Map<string, number>()

interface KubeletOptions {
  readonly settings: object
  readonly flags: readonly string[]
}

async function launchKubelet(
  bed: KubeletBed,
  make: Make,
  { settings, flags: more }: KubeletOptions,
): Promise<RunningKubelet> {
  const { folder, node, machine } = bed
  const own = join(folder, make)
  const port = ports.get(own) ?? (await freePort())
  ports.set(own, port)
  const file = `${own}.yaml`
  const usual = configuration(bed, { port, podLogsDir: `${own}-logs` })
  await writeFile(file, JSON.stringify({ ...usual, ...settings }))
  if (make === 'upstream') await makeCgroups(machine.places.cgroupParent)
  const [command = '', ...first] = await programOf(make)
  const flags = [
    `--config=${file}`,
    `--kubeconfig=${folder}/node.json`,
    `--hostname-override=${node}`,
    '--node-ip=127.0.0.1',
    ...more,
  ]
  const child = await launch(command, [...first, ...flags, `--root-dir=${own}`, `--cert-dir=${own}-pki`], `${own}.log`)
  return { make, child, port, rootDir: own, log: `${own}.log`, stop: (signal) => end(child, signal) }
}

async function programOf(make: Make): Promise<string[]> {
  if (make === 'sources') return [HYPERKUBE, 'kubelet']
  if (make === 'ours') return [await installed(), 'kubelet']
  return [(await upstreamPrograms(['kubelet'], (line) => process.stderr.write(`${line}\n`))).kubelet]
}

function configuration(
  { folder, containerd, machine }: KubeletBed,
  { port, podLogsDir }: { readonly port: number; readonly podLogsDir: string },
): object {
  return {
    apiVersion: 'kubelet.config.k8s.io/v1beta1',
    kind: 'KubeletConfiguration',
    address: '127.0.0.1',
    port,
    healthzPort: 0,
    failCgroupV1: false,
    failSwapOn: false,
    containerRuntimeEndpoint: containerd.endpoint,
    cgroupRoot: machine.places.cgroupParent,
    podLogsDir,
    makeIPTablesUtilChains: false,
    authentication: { x509: { clientCAFile: join(folder, 'pki', 'ca.crt') } },
    authorization: { mode: 'AlwaysAllow' },
    clusterDomain: 'cluster.local',
  }
}

const CGROUPS = '/sys/fs/cgroup'

async function hierarchies(): Promise<string[]> {
  const isUnified = await access(join(CGROUPS, 'cgroup.controllers')).then(
    () => true,
    () => false,
  )
  return isUnified ? [CGROUPS] : (await readdir(CGROUPS)).map((name) => join(CGROUPS, name))
}

/** Upstream's wants its root to be there. */
async function makeCgroups(parent: string): Promise<void> {
  for (const folder of await hierarchies()) await mkdir(join(folder, parent), { recursive: true })
  const inherited = ['cpuset.cpus', 'cpuset.mems']
  for (const name of inherited) {
    const text = await readFile(join(CGROUPS, 'cpuset', name), 'utf8').catch(() => undefined)
    if (text !== undefined) await writeFile(join(CGROUPS, 'cpuset', parent, name), text.trim())
  }
}

async function removeCgroups(parent: string): Promise<void> {
  for (const folder of await hierarchies()) await removeFolders(join(folder, parent))
}

async function removeFolders(folder: string): Promise<void> {
  const below = await readdir(folder, { withFileTypes: true }).catch(() => [])
  for (const entry of below) if (entry.isDirectory()) await removeFolders(join(folder, entry.name))
  await rmdir(folder).catch(() => undefined)
}

/** The kubelet's response to the administrator. */
export function pageOf({ server: { tls } }: KubeletBed, { port }: RunningKubelet, path: string): Promise<string> {
  const { cert, key } = tls
  return new Promise((resolve, reject) => {
    const asking = request({ host: '127.0.0.1', port, path, cert, key, rejectUnauthorized: false }, (answer) => {
      const pieces: Buffer[] = []
      answer.on('data', (piece: Buffer) => pieces.push(piece))
      answer.on('end', () => resolve(Buffer.concat(pieces).toString()))
    })
    asking.on('error', reject)
    asking.end()
  })
}

const PATIENCE_MS = 90_000

interface Condition {
  readonly type: string
  readonly status: string
  readonly reason: string
  readonly message: string
  readonly lastHeartbeatTime: string
}

export async function conditionsOf(server: Server, node: string): Promise<readonly Condition[]> {
  const { body } = await ask(server, { path: `/api/v1/nodes/${node}` })
  return (body as { status?: { conditions?: Condition[] } }).status?.conditions ?? []
}

/** A node that was ready before is looked at only once the kubelet lives. */
async function untilNodeReady(
  server: Server,
  node: string,
  { child, log }: Pick<RunningKubelet, 'child' | 'log'>,
): Promise<void> {
  for (let waitedMs = 0; waitedMs < PATIENCE_MS; waitedMs += 100) {
    const conditions = await conditionsOf(server, node)
    if (conditions.some(({ type, status }) => type === 'Ready' && status === 'True')) return
    if (child.exitCode !== null) break
    await sleep(realClock, 100)
  }
  throw new Error(`The node is not ready:\n${(await readFile(log, 'utf8')).slice(-3000)}`)
}

/** Writes the kubelet's credentials and the address of its server. */
export async function writeNodeConfig(folder: string, { port, tls }: Server, node: string): Promise<void> {
  const [certificate, key] = await Promise.all(
    ['ca.crt', 'ca.key'].map((name) => readFile(join(folder, 'pki', name), 'utf8')),
  )
  const authority = loadAuthority(
    { certificate: certificate ?? '', key: key ?? '' },
    { clock: realClock, random: secureRandom },
  )
  const who = { commonName: `system:node:${node}`, organizations: ['system:nodes'] }
  const { certificatePem, keyPem } = authority.issue({ ...who, purpose: 'client' })
  const data = (pem: string): string => Buffer.from(pem).toString('base64')
  const cluster = { server: `https://127.0.0.1:${port}`, 'certificate-authority-data': data(tls.ca) }
  const user = { 'client-certificate-data': data(certificatePem), 'client-key-data': data(keyPem) }
  const config = {
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [{ name: 'a', cluster }],
    users: [{ name: 'a', user }],
    contexts: [{ name: 'a', context: { cluster: 'a', user: 'a' } }],
    'current-context': 'a',
  }
  await writeFile(join(folder, 'node.json'), JSON.stringify(config))
}
