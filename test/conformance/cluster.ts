/**
 * Starts a cluster for one conformance run. It is `hyperkube up` with simulated nodes, or with containers and the
 * images of the suite; or separate programs, if some of them are upstream's.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createWriteStream } from 'node:fs'
import { mkdir, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { createInterface } from 'node:readline'

import type { Transport } from '#client/api-client.ts'
import { realClock } from '#lib/clock.ts'
import { createHttpClient } from '#lib/http/client.ts'
import { createLog } from '#lib/log/log.ts'
import { secureRandom } from '#lib/random.ts'
import { type SimulatedNodes, startSimulatedNodes } from '#simulated-node/start.ts'

import { makeImages } from '../images/main.ts'
import { startRegistry } from '../images/registry.ts'
import { type Make, startComponents } from '../upstream/components.ts'
import { startEtcd } from '../upstream/etcd.ts'
import { end } from '../upstream/kube-apiserver.ts'
import { HYPERKUBE, type Server, startOurs, writeKubeconfig } from '../upstream/ours.ts'
import { startReference } from '../upstream/reference.ts'

export interface Cluster extends AsyncDisposable {
  readonly kubeconfig: string
  readonly nodes: number
}

/** Starts a cluster whose files and log are in `folder`, with simulated nodes. Rejects when it ends before it is ready. */
export function startCluster(folder: string): Promise<Cluster> {
  return startUp(folder, ['--runtime=simulated', `--nodes=${NODES}`])
}

/**
 * With containers: this machine is the node, or one of several, and all have these images of the catalog, or all that the suite asks
 * for. Leaves nothing on the machine. `HYPERKUBE_CONTAINERD` may name a folder with another containerd than that of the machine
 * (`test/upstream/containerd.ts`).
 */
export async function startRealCluster(
  folder: string,
  nodes = 1,
  images: readonly string[] = [],
  flags: readonly string[] = [],
): Promise<Cluster> {
  const say = (line: string): void => void process.stderr.write(`${line}\n`)
  const archives = await makeImages(join(folder, 'images'), images, say)
  const data = `--data-dir=${join(folder, 'data')}`
  const cluster = await startUp(folder, ['--runtime=containerd', `--nodes=${nodes}`, ...flags])
  await using starting = new AsyncDisposableStack()
  starting.defer(async () => {
    await cluster[Symbol.asyncDispose]()
    await hyperkube('reset', data)
  })
  for (const archive of archives) await hyperkube('image', 'load', data, archive)
  starting.defer(() => rm(join(folder, 'images'), { recursive: true }))
  const registry = starting.use(await startRegistry(archives))
  const mirror = join(folder, 'data', 'containerd', 'certs.d', 'registry.k8s.io')
  await mkdir(mirror, { recursive: true })
  await writeFile(join(mirror, 'hosts.toml'), `[host."${registry.url}"]\n`)
  const started = starting.move()
  return { ...cluster, [Symbol.asyncDispose]: () => started.disposeAsync() }
}

async function hyperkube(...args: string[]): Promise<void> {
  const child = spawn(HYPERKUBE, args, { stdio: ['ignore', 'ignore', 'inherit'] })
  const [code] = (await once(child, 'close')) as [number | null]
  if (code !== 0) throw new Error(`hyperkube ${args.join(' ')} ended with ${code}`)
}

async function startUp(folder: string, own: readonly string[]): Promise<Cluster> {
  const kubeconfig = join(folder, 'kubeconfig')
  const flags = ['--data-dir', join(folder, 'data'), '--kubeconfig', kubeconfig, '--secure-port', '0', '-o', 'json']
  const { HYPERKUBE_CONTAINERD = '', PATH = '' } = process.env
  const env = HYPERKUBE_CONTAINERD === '' ? process.env : { ...process.env, PATH: `${HYPERKUBE_CONTAINERD}:${PATH}` }
  const child = spawn(HYPERKUBE, ['up', ...own, ...flags], { stdio: ['ignore', 'pipe', 'pipe'], env })
  child.stderr.pipe(createWriteStream(join(folder, 'hyperkube.log')))
  const [ready] = await Promise.race([once(createInterface({ input: child.stdout }), 'line'), once(child, 'exit')])
  if (typeof ready !== 'string')
    throw new Error(`The cluster did not start; its log is ${join(folder, 'hyperkube.log')}`)
  const { nodes } = JSON.parse(ready) as { nodes: number }
  return { kubeconfig, nodes, [Symbol.asyncDispose]: () => stop(child) }
}

async function stop(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  const closed = once(child, 'close')
  child.kill('SIGTERM')
  await closed
}

/** As many as tests of roll-outs, evictions and preemption look at. */
const NODES = 2

export interface ProgramsPlan {
  readonly server: Make
  readonly manager: Make
  /** Upstream's kube-apiserver always is. */
  readonly isOnEtcd: boolean
}

/**
 * A kube-apiserver and a kube-controller-manager of either make, our kube-scheduler, and simulated nodes. Logs are in
 * `folder`.
 */
export async function startPrograms(folder: string, { server, manager, isOnEtcd }: ProgramsPlan): Promise<Cluster> {
  await using starting = new AsyncDisposableStack()
  const store: string[] = []
  if (server === 'ours' && isOnEtcd) {
    const etcd = await startEtcd(folder)
    starting.defer(() => end(etcd.program, 'SIGTERM'))
    store.push(`--etcd-servers=${etcd.url}`, ...ENDPOINT)
  }
  const running = await (server === 'ours' ? startOurs(folder, store) : startReference(folder, ENDPOINT))
  starting.defer(() => running.stop())
  const kubeconfig = await writeKubeconfig(join(folder, 'kubeconfig'), running)
  const components = await startComponents(folder, kubeconfig, { manager, scheduler: 'ours' })
  for (const child of components.values()) starting.defer(() => end(child, 'SIGTERM'))
  starting.use(await startNodes(running))
  const started = starting.move()
  return { kubeconfig, nodes: NODES, [Symbol.asyncDispose]: () => started.disposeAsync() }
}

/** One test reads the Endpoints of the API server, which a server on the loopback does not publish. */
const ENDPOINT = ['--endpoint-reconciler-type=lease', '--advertise-address=192.0.2.1']

/** Each acts as its kubelet would: the administrator speaks for it. */
async function startNodes({ port, tls: { ca, cert: certificate, key } }: Server): Promise<SimulatedNodes> {
  const http = createHttpClient({ clock: realClock, tls: { ca, certificate, key } })
  return startSimulatedNodes({
    nodes: NODES,
    clock: realClock,
    random: secureRandom,
    log: createLog({ stream: process.stderr, clock: realClock, caller: false }).logger,
    connect: ({ name, groups }) => {
      const as = { 'impersonate-user': name, 'impersonate-group': groups }
      const transport: Transport = {
        request: (asked) => http.request({ ...asked, headers: { ...asked.headers, ...as } }),
      }
      return { server: `https://127.0.0.1:${port}`, transport }
    },
  })
}
