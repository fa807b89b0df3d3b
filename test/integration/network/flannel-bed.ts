/** Starts nodes for tests in network namespaces on one switch, with an API server and a flanneld on each node. */
import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { promisify } from 'node:util'

import { Nodes } from '#apis/core/v1.ts'
import type { ApiClient } from '#client/api-client.ts'
import { connect } from '#client/connection/connect.ts'
import { secureRandom } from '#lib/random.ts'

import { HYPERKUBE } from '../../upstream/ours.ts'
import {
  createNamespace,
  createNetwork,
  type Host,
  made,
  type Network,
  type NetworkNamespace,
} from '../proxy/network-bed.ts'

const run = promisify(execFile)

/** Its link to the switch, in each node. */
export const UPLINK = 'up0'

export interface FlannelNode {
  readonly name: string
  readonly address: string
  readonly subnet: string
  /** Where its pods are wired to. */
  readonly host: Host
  readonly pod: Host
  readonly podIp: string
  /** `subnet.env`. */
  subnetFile(): Promise<string>
  start(): Promise<void>
  stop(signal: NodeJS.Signals): Promise<void>
}

export interface FlannelBed extends AsyncDisposable {
  readonly client: ApiClient
  /** Of who may do everything, reached from all nodes. */
  readonly kubeconfig: string
  readonly nodes: readonly FlannelNode[]
  /** Creates the Node object of a node. */
  register(node: FlannelNode): Promise<void>
}

export interface FlannelBedOptions {
  /** The flanneld program of each node; default: ours. */
  readonly programs?: Readonly<Record<string, readonly string[]>>
  /** How often rules and links are looked after; default: as soon as tests want it. */
  readonly resyncSeconds?: number
}

export function createFlannelBed(
  backend: object,
  names: readonly string[],
  options: FlannelBedOptions = {},
): Promise<FlannelBed> {
  return made((closing) => createBed(backend, names, options, closing))
}

async function createBed(
  backend: object,
  names: readonly string[],
  { programs = {}, resyncSeconds = 2 }: FlannelBedOptions,
  closing: AsyncDisposableStack,
): Promise<FlannelBed> {
  const folder = await mkdtemp(join(tmpdir(), 'hyperkube-flannel-'))
  closing.defer(() => rm(folder, { recursive: true, force: true }))
  const { space, prefix } = await createSwitch(closing)
  const kubeconfig = join(folder, 'kubeconfig')
  await startServer(folder, kubeconfig, `${prefix}.1`, closing)
  const { client } = closing.use(await connect({ userAgent: 'flannel-test', kubeconfig }))
  const conf = join(folder, 'net-conf.json')
  await writeFile(conf, JSON.stringify({ Network: '10.244.0.0/16', Backend: backend }))
  const nodes: FlannelNode[] = []
  for (const [at, name] of names.entries()) {
    const network = closing.use(await createNetwork())
    const program = programs[name] ?? [HYPERKUBE, 'flanneld']
    const wiring = { space, address: `${prefix}.${at + 2}`, subnet: at + 1, program, resyncSeconds }
    nodes.push(await createNode({ network, name, folder, kubeconfig, conf, ...wiring }, closing))
  }
  return {
    client,
    kubeconfig,
    nodes,
    register: async ({ name, subnet }) => {
      await client.create(Nodes, { metadata: { name }, spec: { podCIDR: subnet, podCIDRs: [subnet] } })
    },
    [Symbol.asyncDispose]: () => closing.disposeAsync(),
  }
}

const SWITCH = 'br0'

/**
 * Of the range that is for tests of networks, in a namespace of its own: rules of this machine, where other clusters may have pods with the same addresses,
 * see nothing of what crosses it. This machine has the first address.
 */
async function createSwitch(
  closing: AsyncDisposableStack,
): Promise<{ readonly space: NetworkNamespace; readonly prefix: string }> {
  const space = closing.use(await createNamespace('switch'))
  const link = `hkt-${space.name.slice(-6)}`
  const prefix = `198.18.${secureRandom.int(256)}`
  await space.run('ip', 'link', 'add', SWITCH, 'type', 'bridge')
  await space.run('ip', 'link', 'set', SWITCH, 'up')
  await run('ip', ['link', 'add', link, 'type', 'veth', 'peer', 'name', 'host0', 'netns', space.name])
  await space.run('ip', 'link', 'set', 'host0', 'master', SWITCH, 'up')
  await run('ip', ['address', 'add', `${prefix}.1/24`, 'dev', link])
  await run('ip', ['link', 'set', link, 'up'])
  return { space, prefix }
}

async function startServer(
  folder: string,
  kubeconfig: string,
  address: string,
  closing: AsyncDisposableStack,
): Promise<void> {
  const own = ['--runtime=simulated', '--nodes=0', `--bind-address=${address}`, '--secure-port=0', '-o', 'json']
  const args = ['up', ...own, `--data-dir=${join(folder, 'data')}`, `--kubeconfig=${kubeconfig}`]
  const child = spawn(HYPERKUBE, args, { stdio: ['ignore', 'pipe', 'inherit'] })
  closing.defer(() => end(child, 'SIGTERM'))
  await once(createInterface({ input: child.stdout }), 'line')
}

interface Wiring {
  readonly network: Network
  readonly name: string
  readonly folder: string
  readonly kubeconfig: string
  readonly conf: string
  /** Where the switch is. */
  readonly space: NetworkNamespace
  readonly address: string
  readonly subnet: number
  readonly program: readonly string[]
  readonly resyncSeconds: number
}

async function createNode(wiring: Wiring, closing: AsyncDisposableStack): Promise<FlannelNode> {
  const { network, name, folder, kubeconfig, conf, space, address, subnet, program, resyncSeconds } = wiring
  const { namespace } = network.node
  const port = `hkp-${namespace.name.slice(-6)}`
  await space.run('ip', 'link', 'add', port, 'type', 'veth', 'peer', 'name', UPLINK, 'netns', namespace.name)
  await space.run('ip', 'link', 'set', port, 'master', SWITCH, 'up')
  await namespace.run('ip', 'address', 'add', `${address}/24`, 'dev', UPLINK)
  await namespace.run('ip', 'link', 'set', UPLINK, 'up')
  const podIp = `10.244.${subnet}.2`
  const pod = await network.add('pod', podIp)
  const file = join(folder, `${name}.env`)
  const flags = [
    '--kube-subnet-mgr',
    `--kubeconfig-file=${kubeconfig}`,
    `--net-config-path=${conf}`,
    `--subnet-file=${file}`,
    `--iface=${UPLINK}`,
    '--ip-masq',
    '--iptables-forward-rules=false',
    `--iptables-resync=${resyncSeconds}`,
  ]
  let child: ChildProcess | undefined
  const stop = async (signal: NodeJS.Signals): Promise<void> => {
    if (child !== undefined) await end(child, signal)
    child = undefined
  }
  closing.defer(() => stop('SIGKILL'))
  return {
    name,
    address,
    subnet: `10.244.${subnet}.0/24`,
    host: network.node,
    pod,
    podIp,
    subnetFile: () => readFile(file, 'utf8'),
    stop,
    async start() {
      // `ip netns exec` would put a shell of mounts around it that a signal does not reach through.
      const enter = `--net=/run/netns/${namespace.name}`
      child = spawn('nsenter', [enter, ...program, ...flags], {
        stdio: ['ignore', 'inherit', 'pipe'],
        env: { ...process.env, NODE_NAME: name },
      })
      const said = createInterface({ input: child.stderr as NodeJS.ReadableStream })
      await new Promise<void>((resolve, reject) => {
        said.on('line', (line) => void (line.includes('Running backend.') && resolve()))
        child?.on('exit', (code) => reject(new Error(`flanneld of ${name} has ended: ${code}`)))
      })
    },
  }
}

async function end(child: ChildProcess, signal: NodeJS.Signals): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  const closed = once(child, 'exit')
  child.kill(signal)
  await closed
}
