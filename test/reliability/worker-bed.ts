/**
 * Starts a worker for kill tests: an agent with a minimal server, our kubelet on a private containerd, and pods. It
 * gives access to their processes.
 */
import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmod, mkdir, readdir, readFile, writeFile } from 'node:fs/promises'
import { connect, createServer } from 'node:net'
import { join } from 'node:path'
import { promisify } from 'node:util'

import type { Pod } from '#apis/core/v1.ts'
import { realClock, sleep } from '#lib/clock.ts'
import type { SupervisorStatus } from '#supervisor/supervisor.ts'

import { IMAGE, whyNoContainerd } from '../integration/kubelet/containerd-bed.ts'
import { AgentServer } from '../integration/supervisor/agent-server.ts'
import { end, freePort, launch } from '../upstream/kube-apiserver.ts'
import { type KubeletBed, startKubeletBed } from '../upstream/kubelet-bed.ts'
import { HYPERKUBE, writeKubeconfig } from '../upstream/ours.ts'

export const NAMES = ['kubelet', 'flanneld', 'kube-proxy'] as const
export type Name = (typeof NAMES)[number]

export interface Living {
  readonly pid: number
  readonly parent: number
  /** In ticks of the kernel. */
  readonly began: number
  readonly words: readonly string[]
}

export type Alive = Readonly<Record<Name, Living>>

export interface Worker {
  living(): Promise<Record<Name, readonly Living[]>>
  status(): Promise<Partial<SupervisorStatus>>
  kill(all: readonly Living[]): void
  /** kube-proxy is to have another flag from now on; the agent hears of it in some seconds. */
  changePlan(): void
  readonly proxyFlag: string
  /** Kills it too. */
  restartSupervisor(): Promise<void>
  /** Starts the pods, and returns a description of each container with its process numbers. */
  startPods(): Promise<ReadonlySet<string>>
  /** Those of them that are not there any more, or not as they were. */
  lostContainers(before: ReadonlySet<string>): Promise<readonly string[]>
  /** The supervisor's metrics, and the number of its Events. */
  told(): Promise<readonly string[]>
}

const ADDRESS = '10.99.0.1'
const POD_CIDR = '10.77.0.0/24'
const PATIENCE_MS = 180_000
const PODS = ['one', 'two']

const run = promisify(execFile)

interface WorkerSite {
  readonly bed: KubeletBed
  readonly root: string
  readonly namespace: string
}

/** Ends with `closing`. */
async function makeWorkerSite(closing: AsyncDisposableStack): Promise<WorkerSite & Pick<Ports, 'health'>> {
  const fault = await whyNoContainerd()
  if (fault !== undefined) throw new Error(`There can be no containers here: ${fault}`)
  const bed = await startKubeletBed('worker', closing)
  const root = join(bed.folder, 'worker')
  await mkdir(root)
  const site: WorkerSite = { bed, root, namespace: `hk-worker-${process.pid}` }
  await makeNamespace(site.namespace, closing)
  const health = await freePort()
  await writeFile(`${bed.folder}/ours.yaml`, JSON.stringify(kubeletConfiguration(bed, await freePort(), health)))
  await openWay(site, bed.server.port, closing)
  await writePrograms(site)
  return { ...site, health }
}

/** Ends with `closing`. */
export async function startWorker(closing: AsyncDisposableStack): Promise<Worker> {
  const { health, ...site } = await makeWorkerSite(closing)
  const { bed, root } = site
  const metrics = await freePort()
  const server = closing.use(new AgentServer())
  await server.start()
  const kubeconfig = await readFile(await writeKubeconfig(join(root, 'proxy.kubeconfig'), bed.server), 'utf8')
  let version = 1
  const proxyFlag = (): string => `--v=${version}`
  const plan = (): void => void (server.plan = [200, JSON.stringify(planOf(site, kubeconfig, proxyFlag()))])
  plan()
  const args = agentArguments(site, server, { health, metrics })
  let supervisor = await launch(HYPERKUBE, args, join(root, 'supervisor.log'))
  const living = (): Promise<Record<Name, Living[]>> => livingOf(site)
  closing.defer(async () => {
    await end(supervisor, 'SIGTERM')
    for (const all of Object.values(await living())) kill(all)
  })
  await giveAddresses(bed)
  return {
    living,
    status: async () => JSON.parse(await readFile(join(root, STATUS), 'utf8').catch(() => '{}')) as SupervisorStatus,
    kill,
    changePlan() {
      version = (version % 4) + 1
      plan()
      server.cut()
    },
    get proxyFlag() {
      return proxyFlag()
    },
    async restartSupervisor() {
      await end(supervisor, 'SIGKILL')
      supervisor = await launch(HYPERKUBE, args, join(root, 'supervisor.log'))
    },
    startPods: () => startPods(bed),
    async lostContainers(before) {
      const now = await facesOf(bed)
      return [...before].filter((face) => !now.has(face))
    },
    told: () => toldBy(bed, metrics),
  }
}

interface Ports {
  readonly health: number
  readonly metrics: number
}

function agentArguments({ bed, root }: WorkerSite, server: AgentServer, { health, metrics }: Ports): string[] {
  return [
    'node',
    'agent',
    `--root=${root}`,
    `--server=${server.url}`,
    `--token=${server.token}`,
    `--ca-checksum=${server.caChecksum}`,
    `--node-name=${bed.node}`,
    `--internal-address=${ADDRESS}`,
    `--kubelet-health=http://127.0.0.1:${health}/healthz`,
    '--kube-proxy-health=',
    `--metrics-bind-address=127.0.0.1:${metrics}`,
  ]
}

const STATUS = 'run/hyperkube/node/status.json'

function kill(all: readonly Living[]): void {
  for (const { pid } of all) {
    try {
      process.kill(pid, 'SIGKILL')
    } catch {
      // It has just ended.
    }
  }
}

/** Programs of other namespaces reach the API server by a socket, which is a file and known to all. */
async function openWay({ namespace, root }: WorkerSite, port: number, closing: AsyncDisposableStack): Promise<void> {
  const path = join(root, 'api.sock')
  const far = createServer((near) => {
    const on = connect(port, '127.0.0.1')
    near.on('error', () => on.destroy()).on('close', () => on.destroy())
    on.on('error', () => near.destroy()).on('close', () => near.destroy())
    near.pipe(on).pipe(near)
  })
  await once(far.listen(path), 'listening')
  closing.defer(() => void far.close())
  const code =
    'const n=require("net");n.createServer(s=>{const c=n.connect(process.argv[2]);s.on("error",()=>c.destroy());' +
    'c.on("error",()=>s.destroy());s.on("close",()=>c.destroy());c.on("close",()=>s.destroy());s.pipe(c).pipe(s)})' +
    '.listen(+process.argv[1],"127.0.0.1")'
  const args = ['netns', 'exec', namespace, process.execPath, '-e', code, String(port), path]
  const way = spawn('ip', args, { stdio: 'ignore' })
  closing.defer(() => end(way, 'SIGKILL'))
}

async function makeNamespace(name: string, closing: AsyncDisposableStack): Promise<void> {
  const ip = (...args: readonly string[]): Promise<unknown> => run('ip', [...args])
  await ip('netns', 'add', name)
  closing.defer(async () => void (await ip('netns', 'delete', name).catch(() => undefined)))
  await ip('-n', name, 'link', 'set', 'lo', 'up')
  await ip('-n', name, 'link', 'add', 'up0', 'type', 'bridge')
  await ip('-n', name, 'address', 'add', `${ADDRESS}/24`, 'dev', 'up0')
  await ip('-n', name, 'link', 'set', 'up0', 'up')
  await ip('-n', name, 'route', 'add', 'default', 'dev', 'up0')
}

async function writePrograms({ root, namespace }: WorkerSite): Promise<void> {
  const bin = join(root, 'usr/local/lib/hyperkube/bin')
  await mkdir(bin, { recursive: true })
  for (const name of NAMES) {
    const within = name === 'kubelet' ? '' : `ip netns exec ${namespace} `
    await writeFile(join(bin, name), `#!/bin/sh\nexec ${within}${HYPERKUBE} ${name} "$@"\n`)
    await chmod(join(bin, name), 0o755)
  }
}

function planOf({ bed, root }: WorkerSite, kubeconfig: string, proxyFlag: string): object {
  const own = join(bed.folder, 'ours')
  return {
    files: [
      { name: '/etc/kubernetes/ssl/kubecfg-kube-node.yaml', contents: Buffer.from(kubeconfig).toString('base64') },
    ],
    node: {
      clusterCidr: '10.77.0.0/16',
      clusterDomain: 'cluster.local',
      serviceCidr: '10.96.0.0/16',
      dnsServiceIp: '10.96.0.10',
      cniComponent: 'flannel',
      cniMode: 'host-gw',
      nodeIp: ADDRESS,
      nodeName: bed.node,
      kubeletOptions: [
        `--config=${own}.yaml`,
        `--kubeconfig=${bed.folder}/node.json`,
        `--hostname-override=${bed.node}`,
        '--node-ip=127.0.0.1',
        `--root-dir=${own}`,
        `--cert-dir=${own}-pki`,
      ],
      kubeProxyOptions: [`--kubeconfig=${root}/proxy.kubeconfig`, `--hostname-override=${bed.node}`, proxyFlag],
    },
  }
}

/** Text in the command line of each of our processes that no other process of the machine has. */
function marksOf({ bed, root }: WorkerSite): Record<Name, string> {
  return {
    kubelet: `--config=${bed.folder}/ours.yaml`,
    flanneld: `--subnet-file=${join(root, 'run/flannel/subnet.env')}`,
    'kube-proxy': `--kubeconfig=${root}/proxy.kubeconfig`,
  }
}

/** Those that live, by the words they were started with; shells on the way to a program are that program already. */
async function livingOf(site: WorkerSite): Promise<Record<Name, Living[]>> {
  const marks = marksOf(site)
  const found: Record<Name, Living[]> = { kubelet: [], flanneld: [], 'kube-proxy': [] }
  for (const entry of await readdir('/proc')) {
    if (!/^\d+$/.test(entry)) continue
    const words = (await readFile(`/proc/${entry}/cmdline`, 'utf8').catch(() => '')).split('\0')
    const name = NAMES.find((each) => words.includes(marks[each]))
    const stat = name === undefined ? '' : await readFile(`/proc/${entry}/stat`, 'utf8').catch(() => '')
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    if (name === undefined || !fields[0] || 'ZX'.includes(fields[0])) continue
    found[name].push({ pid: Number(entry), parent: Number(fields[1]), began: Number(fields[19]), words })
  }
  for (const name of NAMES) found[name] = withoutForks(found[name])
  return found
}

/** One that runs a program, as kube-proxy does nft, is there twice under its own name until the child becomes that program. */
function withoutForks(all: readonly Living[]): Living[] {
  const numbers = new Set(all.map(({ pid }) => pid))
  return all.filter(({ parent }) => !numbers.has(parent))
}

/** By what the API says, and by the numbers of the processes, which no report can make up. */
async function facesOf(bed: KubeletBed): Promise<Set<string>> {
  const path = `/api/v1/namespaces/default/pods?fieldSelector=spec.nodeName%3D${bed.node}`
  const { items } = await bed.ask<{ items: Pod[] }>('GET', path)
  const told = items.map(({ metadata, status }) => {
    const [container] = status?.containerStatuses ?? []
    return `${metadata.name} ${container?.containerID} ${container?.restartCount} ${status?.phase}`
  })
  return new Set([...told, ...(await sleepers())])
}

/** Of this run only. */
const SLEEP = String(100_000 + (process.pid % 100_000))

async function sleepers(): Promise<string[]> {
  const found: string[] = []
  for (const entry of await readdir('/proc')) {
    if (!/^\d+$/.test(entry)) continue
    const words = await readFile(`/proc/${entry}/cmdline`, 'utf8').catch(() => '')
    if (words === `sleep\0${SLEEP}\0`) found.push(`process ${entry}`)
  }
  return found
}

async function startPods(bed: KubeletBed): Promise<ReadonlySet<string>> {
  for (const name of PODS)
    await bed.ask('POST', '/api/v1/namespaces/default/pods', {
      metadata: { name },
      spec: {
        nodeName: bed.node,
        hostNetwork: true,
        automountServiceAccountToken: false,
        containers: [{ name: 'main', image: IMAGE, imagePullPolicy: 'Never', command: ['sleep', SLEEP] }],
      },
    })
  for (let waitedMs = 0; waitedMs < PATIENCE_MS; waitedMs += 200) {
    const faces = await facesOf(bed)
    if ([...faces].filter((face) => face.endsWith('0 Running')).length === PODS.length) return faces
    await sleep(realClock, 200)
  }
  throw new Error(`Pods do not run: ${[...(await facesOf(bed))].join('; ')}`)
}

function kubeletConfiguration({ folder, containerd, machine }: KubeletBed, port: number, healthzPort: number): object {
  return {
    apiVersion: 'kubelet.config.k8s.io/v1beta1',
    kind: 'KubeletConfiguration',
    address: '127.0.0.1',
    port,
    healthzPort,
    failCgroupV1: false,
    failSwapOn: false,
    containerRuntimeEndpoint: containerd.endpoint,
    cgroupRoot: machine.places.cgroupParent,
    podLogsDir: join(folder, 'ours-logs'),
    makeIPTablesUtilChains: false,
    authentication: { x509: { clientCAFile: join(folder, 'pki', 'ca.crt') } },
    authorization: { mode: 'AlwaysAllow' },
    clusterDomain: 'cluster.local',
  }
}

/** As the controller of node addresses would, once kubelet has registered the node. */
async function giveAddresses(bed: KubeletBed): Promise<void> {
  const path = `/api/v1/nodes/${bed.node}`
  for (let waitedMs = 0; waitedMs < PATIENCE_MS; waitedMs += 200) {
    const node = await bed.ask<{ spec: object }>('GET', path).catch(() => undefined)
    const spec = { ...node?.spec, podCIDR: POD_CIDR, podCIDRs: [POD_CIDR] }
    const given = node && (await bed.ask('PUT', path, { ...node, spec }).catch(() => undefined))
    if (given !== undefined) return
    await sleep(realClock, 200)
  }
  throw new Error('kubelet did not register the node')
}

async function toldBy(bed: KubeletBed, port: number): Promise<readonly string[]> {
  const answer = await fetch(`http://127.0.0.1:${port}/metrics`)
  const lines = (await answer.text()).split('\n').filter((line) => line.startsWith('hyperkube_node_'))
  interface EventList {
    readonly items: readonly { readonly reason?: string; readonly source?: { readonly component?: string } }[]
  }
  const { items } = await bed.ask<EventList>('GET', '/api/v1/namespaces/default/events')
  const reasons = items.flatMap(({ reason, source }) => (source?.component === 'hyperkube-node' ? [reason] : []))
  return [...lines, `Events of the supervisor: ${[...new Set(reasons)].join(', ')}`]
}
