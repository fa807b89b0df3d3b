/**
 * Starts a cluster of several nodes on one machine. `hyperkube up` and each further node run in a network namespace.
 * This machine is an outside host, and another namespace is a neighbour on the node network. Needs root. Leaves nothing
 * on the machine, even after a signal.
 */
import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createWriteStream, existsSync } from 'node:fs'
import { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises'
import { hostname, tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { promisify } from 'node:util'

import { extraNode } from '#cluster/machine/node-namespace.ts'
import { nodeAddresses, readRuntimeFile } from '#cluster/runtime-file.ts'
import { containerdPaths } from '#containerd/paths.ts'
import { realClock, sleep } from '#lib/clock.ts'
import { secureRandom } from '#lib/random.ts'

import { makeImages } from '../images/main.ts'
import { createNamespace, made, type NetworkNamespace } from '../integration/proxy/network-bed.ts'
import { end } from './kube-apiserver.ts'
import { HYPERKUBE } from './ours.ts'
import { upstreamPrograms } from './programs.ts'

const run = promisify(execFile)
export const AGNHOST = 'registry.k8s.io/e2e-test-images/agnhost:2.63.0'

export interface ClusterOptions {
  /** Of nodes. */
  readonly many: number
  /** flannel's net-conf.json. */
  readonly conf?: object
  /** More of `up`. */
  readonly flags?: readonly string[]
  /** Of the catalog, beside agnhost. */
  readonly images?: readonly string[]
}

/** One node, and how to be on it. */
export interface NamespacedNode {
  readonly name: string
  readonly addresses: readonly string[]
  /** Its link to the other nodes. */
  readonly link: string
  /** Put before a program that is to run there. */
  readonly within: readonly string[]
}

export interface NamespacedCluster extends AsyncDisposable {
  readonly folder: string
  readonly dataDir: string
  readonly kubeconfig: string
  /** Where the first node is reached from this machine. */
  readonly outer: string
  readonly nodes: readonly NamespacedNode[]
  /** On the switch of the nodes, but none of them. */
  readonly neighbour: NetworkNamespace
  /** Stops `up` as Ctrl-C does and starts it anew with another configuration of flannel. */
  restart(conf?: object, flags?: readonly string[]): Promise<void>
  /** Into all nodes: an archive of images. */
  load(archive: string): Promise<void>
  /** Upstream's; what it wrote. Rejects when it fails. */
  kubectl(...args: readonly string[]): Promise<string>
  apply(...objects: readonly object[]): Promise<void>
  /** Runs a program in a pod. Undefined when it fails there. */
  exec(pod: string, ...command: readonly string[]): Promise<string | undefined>
  /** Sends ten requests a second from a pod until it is stopped. */
  keepAsking(pod: string, url: string): Asking
}

export interface Asking {
  stop(): Promise<{ readonly asked: number; readonly failed: number }>
}

export const say = (line: string): void => void process.stderr.write(`${line}\n`)

/** Runs a program at a place; what it wrote to stdout. */
export async function at({ within }: Pick<NamespacedNode, 'within'>, ...command: readonly string[]): Promise<string> {
  const [first = '', ...args] = [...within, ...command]
  return (await run(first, args)).stdout
}

export async function startNamespacedCluster(options: ClusterOptions): Promise<NamespacedCluster> {
  return made((closing) => start(options, closing))
}

async function start(options: ClusterOptions, closing: AsyncDisposableStack): Promise<NamespacedCluster> {
  const programs = await upstreamPrograms(['kubectl'], say)
  const folder = await mkdtemp(join(tmpdir(), 'hyperkube-nodes-'))
  closing.defer(() => rm(folder, { recursive: true, force: true }))
  const dataDir = join(folder, 'data')
  const kubeconfig = join(folder, 'kubeconfig')
  const archives = await makeImages(join(folder, 'images'), ['agnhost', ...(options.images ?? [])], say)
  const machine = closing.use(await createNamespace('first'))
  const cable = await wire(machine, closing)
  closing.defer(() => hyperkube(machine, 'reset', `--data-dir=${dataDir}`))
  const where = [`--data-dir=${dataDir}`, `--kubeconfig=${kubeconfig}`, `--bind-address=${cable}`, '--secure-port=0']
  const restart = upIn(machine, folder, where, closing)
  await restart(options.conf, [`--nodes=${options.many}`, ...(options.flags ?? [])])
  const load = (archive: string): Promise<void> => hyperkube(machine, 'image', 'load', `--data-dir=${dataDir}`, archive)
  for (const archive of archives) await load(archive)
  const { nodeCidr = '' } = (await readRuntimeFile(dataDir)) ?? {}
  const neighbour = closing.use(await createNamespace('neighbour'))
  await plug(machine, neighbour, containerdPaths(dataDir).nodeBridge, nodeCidr)
  const nodes = Array.from({ length: options.many }, (_, nth) => nodeOf(machine, dataDir, nodeCidr, nth + 1))
  const kubectl = commandOf(programs.kubectl, `--kubeconfig=${kubeconfig}`)
  return {
    folder,
    dataDir,
    kubeconfig,
    outer: cable,
    nodes,
    neighbour,
    kubectl,
    load,
    restart,
    async apply(...objects) {
      const file = join(folder, 'objects.json')
      await writeFile(file, JSON.stringify({ apiVersion: 'v1', kind: 'List', items: objects }))
      await kubectl('apply', '--filename', file)
    },
    keepAsking: (pod, url) => keepAsking(programs.kubectl, [`--kubeconfig=${kubeconfig}`, 'exec', pod], url),
    exec: (pod, ...command) => kubectl('exec', pod, '--', ...command).catch(() => undefined),
    async [Symbol.asyncDispose]() {
      await closing.disposeAsync()
      await judgeLeftovers(dataDir)
    },
  }
}

/** Ends the one that runs, as Ctrl-C does. */
function upIn(
  machine: NetworkNamespace,
  folder: string,
  where: readonly string[],
  closing: AsyncDisposableStack,
): NamespacedCluster['restart'] {
  let up: ChildProcess | undefined
  const stop = async (): Promise<void> => (up === undefined ? undefined : end(up, 'SIGINT'))
  closing.defer(stop)
  return async (conf, flags = []) => {
    await stop()
    const file = join(folder, 'net-conf.json')
    if (conf !== undefined) await writeFile(file, JSON.stringify(conf))
    const asked = [...where, ...(conf === undefined ? [] : [`--net-config-path=${file}`]), ...flags]
    const log = join(folder, 'up.log')
    up = spawnIn(machine, log, ['up', '--runtime=containerd', '-o=json', ...asked])
    await untilReady(up, log)
  }
}

/** For a shell: a line for each answer. */
const ASKING =
  'while sleep 0.1; do curl --silent --max-time 3 --fail --output /dev/null "$1" && echo yes || echo no; done'

function keepAsking(program: string, exec: readonly string[], url: string): Asking {
  const child = spawn(program, [...exec, '--', 'sh', '-c', ASKING, 'sh', url], { stdio: ['ignore', 'pipe', 'inherit'] })
  let said = ''
  child.stdout.on('data', (data: Buffer) => void (said += data.toString()))
  return {
    async stop() {
      await end(child, 'SIGKILL')
      const answers = said.trim().split('\n')
      return { asked: answers.length, failed: answers.filter((answer) => answer !== 'yes').length }
    },
  }
}

function commandOf(program: string, ...first: readonly string[]): NamespacedCluster['kubectl'] {
  return async (...args) => (await run(program, [...first, ...args], { maxBuffer: 1 << 26 })).stdout
}

/** Of the range that is for tests of networks; the address inside. */
async function wire(machine: NetworkNamespace, closing: AsyncDisposableStack): Promise<string> {
  const prefix = `198.18.${secureRandom.int(256)}`
  const link = `hkc-${machine.name.slice(-6)}`
  closing.defer(() => run('ip', ['link', 'delete', link]).then(ignore, ignore))
  await run('ip', ['link', 'add', link, 'type', 'veth', 'peer', 'name', 'out0', 'netns', machine.name])
  await run('ip', ['address', 'add', `${prefix}.1/24`, 'dev', link])
  await run('ip', ['link', 'set', link, 'up'])
  await machine.run('ip', 'address', 'add', `${prefix}.2/24`, 'dev', 'out0')
  await machine.run('ip', 'link', 'set', 'out0', 'up')
  await machine.run('ip', 'route', 'add', 'default', 'via', `${prefix}.1`)
  return `${prefix}.2`
}

/** As another machine of the nodes' network. */
async function plug(machine: NetworkNamespace, other: NetworkNamespace, bridge: string, ranges: string): Promise<void> {
  const port = `hkq-${other.name.slice(-6)}`
  await machine.run('ip', 'link', 'add', port, 'type', 'veth', 'peer', 'name', 'eth0', 'netns', other.name)
  await machine.run('ip', 'link', 'set', port, 'master', bridge, 'up')
  await other.run('ip', 'link', 'set', 'eth0', 'up')
  for (const [nth, address] of nodeAddresses(ranges, NEIGHBOUR).entries()) {
    const length = ranges.split(',')[nth]?.split('/')[1] ?? ''
    const more = address.includes(':') ? ['nodad'] : []
    await other.run('ip', 'address', 'add', `${address}/${length}`, 'dev', 'eth0', ...more)
  }
}

const NEIGHBOUR = 250
const ignore = (): void => undefined

function nodeOf(machine: NetworkNamespace, dataDir: string, nodeCidr: string, number: number): NamespacedNode {
  const addresses = nodeAddresses(nodeCidr, number)
  if (number > 1) {
    const { name, within } = extraNode(dataDir, number)
    return { name, within, link: 'eth0', addresses }
  }
  const within = ['nsenter', `--net=/run/netns/${machine.name}`]
  return { name: hostname().toLowerCase(), within, link: containerdPaths(dataDir).nodeBridge, addresses }
}

function spawnIn(machine: NetworkNamespace, log: string, args: readonly string[]): ChildProcess {
  // In a group of its own: Ctrl-C is for us, who end it in turn.
  const child = spawn('nsenter', [`--net=/run/netns/${machine.name}`, HYPERKUBE, ...args], {
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: true,
  })
  child.stderr.pipe(createWriteStream(log, { flags: 'a' }))
  return child
}

async function untilReady(child: ChildProcess, log: string): Promise<void> {
  const lines = createInterface({ input: child.stdout as NodeJS.ReadableStream })
  const [ready] = (await Promise.race([once(lines, 'line'), once(child, 'exit')])) as [unknown]
  if (typeof ready !== 'string') throw new Error(`up has ended before it was ready; its log is ${log}`)
}

async function hyperkube({ name }: NetworkNamespace, ...args: readonly string[]): Promise<void> {
  await run('nsenter', [`--net=/run/netns/${name}`, HYPERKUBE, ...args])
}

/** Fails if anything remains that has the cluster's name or belongs to it. */
async function judgeLeftovers(dataDir: string): Promise<void> {
  const ids = [containerdPaths(dataDir).id, ...[2, 3, 4, 5].map((number) => extraNode(dataDir, number).places.id)]
  const has = (text: string): boolean => ids.some((id) => text.includes(id))
  const found = async (): Promise<string[]> => {
    const [links, namespaces, tables] = await Promise.all(
      [
        ['ip', 'link'],
        ['ip', 'netns'],
        ['nft', 'list', 'tables'],
      ].map(async ([program = '', ...args]) => (await run(program, args)).stdout.split('\n')),
    )
    const hierarchies = await readdir('/sys/fs/cgroup')
    const cgroups = hierarchies.flatMap((one) => ids.map((id) => join('/sys/fs/cgroup', one, `hyperkube-${id}`)))
    const folders = ids.map((id) => join('/run/hyperkube', id))
    const names = [links, namespaces, tables].flatMap((lines) => lines?.filter(has) ?? [])
    return [...names, ...[...cgroups, ...folders].filter((path) => existsSync(path))]
  }
  // The kernel takes namespaces apart in its own time.
  for (let tries = 0; tries < 50 && (await found()).length > 0; tries++) await sleep(realClock, 100)
  const left = await found()
  if (left.length > 0) throw new Error(`left behind: ${left.join(', ')}`)
}
