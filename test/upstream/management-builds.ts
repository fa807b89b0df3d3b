/**
 * Tests that `hyperkube server` builds a cluster on machines that are namespaces of this one, each with sshd. The server is
 * killed in the middle, a machine joins, a snapshot is saved, and the cluster is removed. Needs root, sshd, etcd,
 * containerd and CNI's plugins.
 *
 *     node test/upstream/management-builds.ts [--keep]
 */
import { execFile } from 'node:child_process'
import { appendFile, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs, promisify } from 'node:util'

import { realClock, sleep } from '#lib/clock.ts'
import { stringifyYaml } from '#lib/yaml/yaml.ts'

import { filesOf, makeMachines, type Names, type TestMachine, plugIn, unplug } from './build/machines.ts'
import { LiveServer } from './management-builds/live-server.ts'
import { HYPERKUBE } from './ours.ts'

const run = promisify(execFile)
const { values: options } = parseArgs({ options: { keep: { type: 'boolean', default: false } } })

const NAMES: Names = { prefix: 'hkm', host: 's', network: '10.198.0' }
const ROLES: readonly (readonly string[])[] = [
  ['etcd', 'controlplane'],
  ['controlplane', 'worker'],
  ['worker'],
  ['worker'],
]

interface Condition {
  readonly type: string
  readonly status: string
  readonly reason: string
  readonly message: string
}

interface ClusterView {
  readonly metadata: { readonly name: string }
  readonly status?: {
    readonly conditions?: readonly Condition[]
    readonly nodes?: { readonly total: number; readonly ready: number }
    readonly agent?: { readonly address?: string }
    readonly build?: { readonly sshPublicKey?: string; readonly hostKeys?: readonly object[] }
  }
}

interface OperationView {
  readonly metadata: { readonly name: string }
  readonly spec: { readonly type: string }
  readonly status?: {
    readonly phase?: string
    readonly message?: string
    readonly completed?: number
    readonly left?: readonly string[]
    readonly plan?: { readonly steps: readonly object[]; readonly digest: string }
    readonly stages?: readonly { readonly name: string; readonly steps: readonly { readonly state: string }[] }[]
  }
}

function say(text: string): void {
  process.stdout.write(`${new Date(realClock.now()).toISOString().slice(11, 19)} ${text}\n`)
}

function check(isTrue: boolean, what: string): void {
  if (!isTrue) throw new Error(`Not true: ${what}`)
  say(`  ok: ${what}`)
}

function fileFor(machines: readonly TestMachine[]): string {
  const nodes = machines.map(({ name, address }, at) => ({
    address,
    user: 'root',
    hostname_override: name,
    role: ROLES[at],
  }))
  const none = { provider: 'none' }
  return stringifyYaml({ nodes, network: { plugin: 'flannel' }, ingress: none, monitoring: none, dns: none })
}

class Story {
  readonly server: LiveServer
  readonly folder: string
  cluster = ''

  constructor(server: LiveServer, folder: string) {
    this.server = server
    this.folder = folder
  }

  get path(): string {
    return `/v3/clusters/${this.cluster}`
  }

  async newest(): Promise<OperationView> {
    const { items } = (await this.server.request('GET', `${this.path}/operations`)) as { items: OperationView[] }
    const [first] = items
    if (first === undefined) return { metadata: { name: '' }, spec: { type: '' } }
    return (await this.server.request('GET', `${this.path}/operations/${first.metadata.name}`)) as OperationView
  }

  async until<T>(what: string, ask: () => Promise<T | undefined | false>, timeoutMs = 600_000): Promise<T> {
    const limit = realClock.elapsed() + timeoutMs
    for (;;) {
      const found = await ask().catch(() => undefined)
      if (found !== undefined && found !== false) return found
      if (realClock.elapsed() > limit) {
        const last = JSON.stringify(await this.newest().catch(() => undefined))
        throw new Error(`It did not come to be that ${what}: ${last.slice(0, 3000)}`)
      }
      await sleep(realClock, 500)
    }
  }

  async reached(type: string, phase: string): Promise<OperationView> {
    const found = await this.until(`${type} is ${phase}`, async () => {
      const newest = await this.newest()
      return newest.spec.type === type && newest.status?.phase === phase && newest
    })
    say(`${type} ${found.metadata.name} is ${phase}`)
    return found
  }

  async approve({ metadata, status }: OperationView): Promise<void> {
    const path = `${this.path}/operations/${metadata.name}/approve`
    await this.server.request('POST', path, { plan: status?.plan?.digest })
  }

  async view(): Promise<ClusterView> {
    return (await this.server.request('GET', this.path)) as ClusterView
  }

  async ready(nodes: number): Promise<void> {
    await this.until(`${nodes} nodes are ready`, async () => {
      const { status } = await this.view()
      const isTrue = (type: string): boolean =>
        (status?.conditions ?? []).some((one) => one.type === type && one.status === 'True')
      return isTrue('Ready') && isTrue('Connected') && isTrue('Updated') && status?.nodes?.ready === nodes
    })
    say(`${nodes} nodes are ready, and the agent is connected`)
  }

  /** Through the server, with the kubeconfig that it gives to its users. */
  async kubectl(...args: string[]): Promise<string> {
    const file = join(this.folder, 'user.kubeconfig')
    await writeFile(file, await this.server.text('POST', `${this.path}/kubeconfig`, {}), { mode: 0o600 })
    const { stdout } = await run(HYPERKUBE, ['kubectl', `--kubeconfig=${file}`, ...args])
    return stdout
  }
}

async function main(): Promise<void> {
  await using closing = new AsyncDisposableStack()
  const folder = await mkdtemp(join(tmpdir(), 'hyperkube-management-builds-'))
  closing.defer(() => (options.keep ? undefined : rm(folder, { recursive: true, force: true })))
  const { machines } = await makeMachines(folder, ROLES.length, closing, NAMES)
  const before = new Map(
    await Promise.all(machines.map(async (machine) => [machine.name, await filesOf(machine)] as const)),
  )
  const server = new LiveServer(join(folder, 'server'), `${NAMES.network}.1:18443`)
  closing.use(server)
  await server.start()
  const story = new Story(server, folder)
  await build(story, machines.slice(0, 3))
  await addMachine(story, machines)
  await snapshot(story)
  await loseAgent(story, machines)
  await handOver(story)
  await remove(story, machines, before)
  say('all steps passed: built, killed in the middle, continued, changed, saved, removed')
}

async function build(story: Story, machines: readonly TestMachine[]): Promise<void> {
  const { server } = story
  const body = { displayName: 'built', source: 'built', file: fileFor(machines) }
  const made = (await server.request('POST', '/v3/clusters', body)) as { cluster: ClusterView }
  story.cluster = made.cluster.metadata.name
  const refused = await story.reached('Apply', 'Failed')
  say(refused.status?.message ?? '')
  check((refused.status?.message ?? '').includes('sshPublicKey'), 'a machine without the key says what to do')
  const key = await story.until('there is a key', async () => (await story.view()).status?.build?.sshPublicKey)
  for (const { folder } of machines) await appendFile(join(folder, 'etc', 'authorized'), `${key}\n`)
  await server.request('POST', `${story.path}/operations/${refused.metadata.name}/retry`)
  const planned = await story.reached('Apply', 'Planned')
  check((planned.status?.plan?.steps.length ?? 0) > 20, 'the plan has steps')
  await story.approve(planned)
  await story.until('etcd starts', async () => (await story.newest()).status?.stages?.some(isBegun))
  say('kill -9 of the server')
  await server.kill()
  await server.start()
  await story.reached('Apply', 'Succeeded')
  const log = await server.text('GET', `${story.path}/operations/${planned.metadata.name}/log?follow=true`)
  check(log.includes('It continues.') && log.endsWith('Done.\n'), 'the killed operation continued and ended')
  check(!/PRIVATE KEY/.test(log), 'the log has no keys')
  await story.ready(3)
  check((await story.kubectl('get', 'nodes')).split('\n').length === 5, 'kubectl sees three nodes through the server')
}

function isBegun({
  name,
  steps,
}: {
  readonly name: string
  readonly steps: readonly { readonly state: string }[]
}): boolean {
  return name === 'etcd' && steps.some(({ state }) => state !== 'Waiting')
}

async function addMachine(story: Story, machines: readonly TestMachine[]): Promise<void> {
  const key = (await story.view()).status?.build?.sshPublicKey ?? ''
  await appendFile(join(machines[3]?.folder ?? '', 'etc', 'authorized'), `${key}\n`)
  await story.server.request('PUT', `${story.path}/build`, { file: fileFor(machines) })
  const planned = await story.reached('Apply', 'Planned')
  await story.approve(planned)
  await story.reached('Apply', 'Succeeded')
  await story.ready(4)
  check((await story.view()).status?.build?.hostKeys?.length === 4, 'the host keys of all machines are pinned')
}

async function snapshot(story: Story): Promise<void> {
  await story.server.request('POST', `${story.path}/operations`, { type: 'SaveSnapshot', snapshot: 'before' })
  await story.reached('SaveSnapshot', 'Succeeded')
  const { items } = (await story.server.request('GET', `${story.path}/snapshots`)) as { items: { name: string }[] }
  check(
    items.some(({ name }) => name === 'before'),
    'the snapshot is listed',
  )
}

/** A control plane loses its network: the agent of the other one still connects the cluster. */
async function loseAgent(story: Story, [, second]: readonly TestMachine[]): Promise<void> {
  if (second === undefined) throw new Error('There is no second machine')
  say(`${second.name} loses its network; the agent was at ${(await story.view()).status?.agent?.address}`)
  await unplug(second)
  await story.until('kubectl is answered', async () =>
    (await story.kubectl('get', 'namespaces', '--request-timeout=5s')).includes('kube-system'),
  )
  say('  ok: the cluster answers through the server')
  await story.until('the node is missed', async () => (await story.view()).status?.nodes?.ready === 3)
  await plugIn(second)
  await story.ready(4)
}

/** The files of the owner are enough for `hyperkube build`. */
async function handOver(story: Story): Promise<void> {
  for (const file of ['cluster.yml', 'cluster.rkestate', 'cluster.known_hosts', 'ssh_key']) {
    const text = await story.server.text('POST', `${story.path}/files`, { file })
    await writeFile(join(story.folder, file), text, { mode: 0o600 })
  }
  await appendFile(join(story.folder, 'cluster.yml'), 'ssh_key_path: ssh_key\n')
  const kubeconfig = await story.server.text('POST', `${story.path}/files`, { file: 'kube_config_cluster.yml' })
  await writeFile(join(story.folder, 'kube_config_cluster.yml'), kubeconfig, { mode: 0o600 })
  const { stdout } = await run(HYPERKUBE, ['build', 'plan', '-o', 'json'], { cwd: story.folder })
  const { steps, faults } = JSON.parse(stdout) as { steps: { describe: string }[]; faults: string[] }
  const others = steps.filter(({ describe }) => !/cluster-agent|files|state|addon/.test(describe))
  say(`  hyperkube build would: ${steps.map(({ describe }) => describe).join('; ')}`)
  check(
    faults.length === 0 && others.length === 0,
    'hyperkube build goes on with the files, and removes the agent only',
  )
}

async function remove(
  story: Story,
  machines: readonly TestMachine[],
  before: ReadonlyMap<string, readonly string[]>,
): Promise<void> {
  const operations = `${story.path}/operations`
  await story.server.request('DELETE', story.path)
  await story.until('the cluster is gone', async () => (await story.server.status('GET', story.path)) === 404)
  check((await story.server.status('GET', operations)) === 404, 'nothing is listed for a cluster that is gone')
  for (const machine of machines) {
    const old = new Set(before.get(machine.name))
    const left = (await filesOf(machine)).filter(
      (path) => !old.has(path) && !path.startsWith('/opt/rke/etcd-snapshots/'),
    )
    check(left.length === 0, `${machine.name} has no files of the cluster: ${left.slice(0, 5).join(' ')}`)
  }
}

await main()
