/**
 * Tests that `hyperkube server` builds a cluster on machines that it cannot reach: namespaces of this machine, whose agents
 * connect to the server. No SSH key is on them. An agent is killed in the middle, and a machine joins and leaves. Needs
 * root, sshd, etcd, containerd and CNI's plugins.
 *
 *     node test/upstream/management-machines.ts [--keep]
 */
import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { createWriteStream } from 'node:fs'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs, promisify } from 'node:util'

import { realClock, sleep } from '#lib/clock.ts'
import { stringifyYaml } from '#lib/yaml/yaml.ts'

import { makeMachines, type Names, type TestMachine } from './build/machines.ts'
import { LiveServer } from './management-builds/live-server.ts'
import { HYPERKUBE } from './ours.ts'

const run = promisify(execFile)
const { values: options } = parseArgs({ options: { keep: { type: 'boolean', default: false } } })

const NAMES: Names = { prefix: 'hkn', host: 'n', network: '10.197.0' }
const ROLES: readonly (readonly string[])[] = [['etcd', 'controlplane'], ['worker'], ['worker']]

interface OperationView {
  readonly metadata: { readonly name: string }
  readonly spec: { readonly type: string }
  readonly status?: {
    readonly phase?: string
    readonly message?: string
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

/** The agent of a machine, as its service would run it. */
class MachineAgent {
  readonly #machine: TestMachine
  readonly #flags: readonly string[]
  #child: ChildProcess | undefined

  constructor(machine: TestMachine, command: string) {
    this.#machine = machine
    this.#flags = command.replace(/^.* node agent /, '').split(' ')
  }

  start(): void {
    const { pid, folder } = this.#machine
    const within = ['-t', String(pid), '--mount', '--net', '--uts', '--', 'sh', '-c', 'cd / && exec "$@"', 'sh']
    const flags = [...this.#flags, '--internal-address', this.#machine.address, '--events=false']
    const child = spawn('nsenter', [...within, HYPERKUBE, 'node', 'agent', ...flags], {
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    const log = createWriteStream(join(folder, 'agent.log'), { flags: 'a' })
    for (const stream of [child.stdout, child.stderr]) stream.pipe(log, { end: false })
    this.#child = child
  }

  kill(): void {
    this.#child?.kill('SIGKILL')
  }
}

class Story {
  readonly server: LiveServer
  readonly folder: string
  readonly agents: MachineAgent[] = []
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
    const name = items[0]?.metadata.name ?? ''
    return (await this.server.request('GET', `${this.path}/operations/${name}`)) as OperationView
  }

  async until<T>(what: string, ask: () => Promise<T | undefined | false>): Promise<T> {
    for (let tries = 0; ; tries++) {
      const found = await ask().catch(() => undefined)
      if (found !== undefined && found !== false) return found
      if (tries > 1200) throw new Error(`It did not come to be that ${what}: ${JSON.stringify(await this.newest())}`)
      await sleep(realClock, 500)
    }
  }

  async reached(phase: string): Promise<OperationView> {
    const found = await this.until(`the operation is ${phase}`, async () => {
      const newest = await this.newest()
      return newest.status?.phase === phase && newest
    })
    say(`${found.spec.type} ${found.metadata.name} is ${phase}`)
    return found
  }

  async approve({ metadata, status }: OperationView): Promise<void> {
    const path = `${this.path}/operations/${metadata.name}/approve`
    await this.server.request('POST', path, { plan: status?.plan?.digest })
  }

  /** Starts the agent with the command that the server returns. */
  async connect(machine: TestMachine, roles: readonly string[]): Promise<void> {
    const body = { roles, nodeName: machine.name }
    const made = await this.server.request('POST', `${this.path}/machines/registration`, body)
    const agent = new MachineAgent(machine, String((made as { foregroundCommand: unknown }).foregroundCommand))
    agent.start()
    this.agents.push(agent)
    await this.until(`${machine.name} is connected`, async () => {
      const { items } = (await this.server.request('GET', `${this.path}/machines`)) as { items: MachineView[] }
      const found = items.find(({ spec }) => spec.nodeName === machine.name)
      return found?.status?.conditions?.some(({ type, status }) => type === 'Connected' && status === 'True')
    })
    say(`machine ${machine.name} has connected`)
  }

  async ready(nodes: number): Promise<void> {
    await this.until(`${nodes} nodes are ready`, async () => {
      const found = await this.kubectl('get', 'nodes', '--no-headers')
      return (
        found
          .trim()
          .split('\n')
          .filter((line) => / Ready /.test(line)).length === nodes
      )
    })
    say(`${nodes} nodes are ready`)
  }

  /** Through the server, with the kubeconfig that it gives to its users. */
  async kubectl(...args: string[]): Promise<string> {
    const file = join(this.folder, 'user.kubeconfig')
    await writeFile(file, await this.server.text('POST', `${this.path}/kubeconfig`, {}), { mode: 0o600 })
    const { stdout } = await run(HYPERKUBE, ['kubectl', `--kubeconfig=${file}`, ...args])
    return stdout
  }
}

interface MachineView {
  readonly metadata: { readonly name: string }
  readonly spec: { readonly nodeName: string }
  readonly status?: { readonly conditions?: readonly { readonly type: string; readonly status: string }[] }
}

async function main(): Promise<void> {
  await using closing = new AsyncDisposableStack()
  const folder = await mkdtemp(join(tmpdir(), 'hyperkube-management-machines-'))
  closing.defer(() => (options.keep ? undefined : rm(folder, { recursive: true, force: true })))
  const { machines } = await makeMachines(folder, ROLES.length, closing, NAMES)
  // No machine admits an SSH key.
  for (const machine of machines) await writeFile(join(machine.folder, 'etc', 'authorized'), '', { mode: 0o600 })
  const server = new LiveServer(join(folder, 'server'), `${NAMES.network}.1:18444`)
  closing.use(server)
  await server.start()
  const story = new Story(server, folder)
  closing.defer(() => {
    for (const agent of story.agents) agent.kill()
  })
  await build(story, machines.slice(0, 2))
  await addMachine(story, machines)
  await fallBack(story)
  await remove(story)
  say('all steps passed: built through tunnels, killed in the middle, a machine joined, served, removed')
}

async function build(story: Story, machines: readonly TestMachine[]): Promise<void> {
  const { server } = story
  const body = { displayName: 'behind', source: 'built', file: fileFor(machines) }
  const made = (await server.request('POST', '/v3/clusters', body)) as { cluster: { metadata: { name: string } } }
  story.cluster = made.cluster.metadata.name
  const refused = await story.reached('Failed')
  say(refused.status?.message ?? '')
  for (const [at, machine] of machines.entries()) await story.connect(machine, ROLES[at] ?? [])
  await server.request('POST', `${story.path}/operations/${refused.metadata.name}/retry`)
  const planned = await story.reached('Planned')
  check((planned.status?.plan?.steps.length ?? 0) > 20, 'the plan has steps')
  await story.approve(planned)
  await story.until('etcd starts', async () =>
    (await story.newest()).status?.stages?.some(
      ({ name, steps }) => name === 'etcd' && steps.some(({ state }) => state !== 'Waiting'),
    ),
  )
  say('kill -9 of the agent of the control plane')
  story.agents[0]?.kill()
  await sleep(realClock, 3000)
  story.agents[0]?.start()
  await story.until('the operation has succeeded', async () => {
    const { metadata, status } = await story.newest()
    if (status?.phase === 'Failed') await server.request('POST', `${story.path}/operations/${metadata.name}/retry`)
    return status?.phase === 'Succeeded'
  })
  say('the killed operation continued and ended')
  await story.ready(2)
}

async function addMachine(story: Story, machines: readonly TestMachine[]): Promise<void> {
  const [, , third] = machines
  if (third === undefined) throw new Error('There is no third machine')
  await story.connect(third, ['worker'])
  await story.server.request('PUT', `${story.path}/build`, { file: fileFor(machines) })
  await story.approve(await story.reached('Planned'))
  await story.reached('Succeeded')
  await story.ready(3)
}

/** The agent of the cluster is killed; its keeper starts it again, but requests do not wait for that. */
async function fallBack(story: Story): Promise<void> {
  const { stdout } = await run('pgrep', ['-f', 'cluster-agent --server=https://10.197.0.1:18444']).catch(() => ({
    stdout: '',
  }))
  const pids = stdout.split('\n').filter(Boolean).map(Number)
  check(pids.length > 0, 'the agent of the cluster runs')
  for (const pid of pids) process.kill(pid, 'SIGSTOP')
  say('the agent of the cluster is stopped')
  const startedMs = realClock.elapsed()
  const whoami = ['auth', 'whoami', '-o', 'jsonpath={.status.userInfo.username}', '--request-timeout=2s']
  const user = await story.until('kubectl works', () => story.kubectl(...whoami))
  const seconds = Math.round((realClock.elapsed() - startedMs) / 1000)
  check(user.startsWith('u-'), `kubectl works through the machine after ${seconds} s, as ${user}`)
  await story.until('the cluster is served by a machine', async () => {
    const view = (await story.server.request('GET', story.path)) as {
      status?: { conditions?: readonly { type: string; reason: string }[] }
    }
    return view.status?.conditions?.some(({ type, reason }) => type === 'Connected' && reason === 'MachineConnected')
  })
  for (const pid of pids) process.kill(pid, 'SIGCONT')
}

async function remove(story: Story): Promise<void> {
  await story.server.request('DELETE', story.path)
  await story.until('the cluster is gone', async () => (await story.server.status('GET', story.path)) === 404)
  say('the cluster is removed')
}

await main()
