/**
 * Tests that `hyperkube server` builds a cluster on machines that it cannot reach: namespaces of this machine, whose agents
 * connect to the server. No SSH key is on them. An agent is killed in the middle, and a machine joins. Needs root, sshd,
 * etcd, containerd and CNI's plugins.
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

import { makeMachines, type Names, type TestMachine } from './build/machines.ts'
import { BuiltCluster, check, fileFor, say } from './built-cluster.ts'
import { startManagementServer } from './management-server.ts'
import { HYPERKUBE } from './ours.ts'

const run = promisify(execFile)
const { values: options } = parseArgs({ options: { keep: { type: 'boolean', default: false } } })

const NAMES: Names = { prefix: 'hkn', host: 'n', network: '10.197.0' }
const HOST = `${NAMES.network}.1`
const PORT = 18444
const SERVER_URL = `https://${HOST}:${PORT}`
const ROLES: readonly (readonly string[])[] = [['etcd', 'controlplane'], ['worker'], ['worker']]

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
  readonly cluster: BuiltCluster
  readonly agents: MachineAgent[] = []

  constructor(cluster: BuiltCluster) {
    this.cluster = cluster
  }

  /** Starts the agent with the command that the server returns. */
  async connect(machine: TestMachine, roles: readonly string[]): Promise<void> {
    const { server, path } = this.cluster
    const body = { roles, nodeName: machine.name }
    const made = await server.request('POST', `${path}/machines/registration`, body)
    const agent = new MachineAgent(machine, String((made as { foregroundCommand: unknown }).foregroundCommand))
    agent.start()
    this.agents.push(agent)
    await this.cluster.until(`${machine.name} is connected`, async () => {
      const { items } = (await server.request('GET', `${path}/machines`)) as { items: MachineView[] }
      const found = items.find(({ spec }) => spec.nodeName === machine.name)
      return found?.status?.conditions?.some(({ type, status }) => type === 'Connected' && status === 'True')
    })
    say(`machine ${machine.name} has connected`)
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
  const server = await startManagementServer(join(folder, 'server'), { host: HOST, port: PORT, serverUrl: SERVER_URL })
  closing.use(server)
  const story = new Story(new BuiltCluster(server, folder))
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
  const { cluster } = story
  await cluster.create('behind', fileFor(machines, ROLES))
  const refused = await cluster.reached('Apply', 'Failed')
  say(refused.status?.message ?? '')
  for (const [at, machine] of machines.entries()) await story.connect(machine, ROLES[at] ?? [])
  const retry = (name: string): Promise<unknown> =>
    cluster.server.request('POST', `${cluster.path}/operations/${name}/retry`)
  await retry(refused.metadata.name)
  const planned = await cluster.reached('Apply', 'Planned')
  check((planned.status?.plan?.steps.length ?? 0) > 20, 'the plan has steps')
  await cluster.approve(planned)
  await cluster.until('etcd starts', async () =>
    (await cluster.newest()).status?.stages?.some(
      ({ name, steps }) => name === 'etcd' && steps.some(({ state }) => state !== 'Waiting'),
    ),
  )
  say('kill -9 of the agent of the control plane')
  story.agents[0]?.kill()
  await sleep(realClock, 3000)
  story.agents[0]?.start()
  await cluster.until('the operation has succeeded', async () => {
    const { metadata, status } = await cluster.newest()
    if (status?.phase === 'Failed') await retry(metadata.name)
    return status?.phase === 'Succeeded'
  })
  say('the killed operation continued and ended')
  await cluster.ready(2)
}

async function addMachine(story: Story, machines: readonly TestMachine[]): Promise<void> {
  const [, , third] = machines
  if (third === undefined) throw new Error('There is no third machine')
  await story.connect(third, ['worker'])
  await story.cluster.apply(fileFor(machines, ROLES))
  await story.cluster.ready(3)
}

/** The agent of the cluster is stopped. Its keeper starts only agents that end, so requests use a machine's tunnel. */
async function fallBack({ cluster }: Story): Promise<void> {
  const { stdout } = await run('pgrep', ['-f', `cluster-agent --server=${SERVER_URL}`]).catch(() => ({ stdout: '' }))
  const pids = stdout.split('\n').filter(Boolean).map(Number)
  check(pids.length > 0, 'the agent of the cluster runs')
  for (const pid of pids) process.kill(pid, 'SIGSTOP')
  say('the agent of the cluster is stopped')
  const startedMs = realClock.elapsed()
  const whoami = ['auth', 'whoami', '-o', 'jsonpath={.status.userInfo.username}', '--request-timeout=2s']
  const user = await cluster.until('kubectl works', () => cluster.kubectl(...whoami))
  const seconds = Math.round((realClock.elapsed() - startedMs) / 1000)
  check(user.startsWith('u-'), `kubectl works through the machine after ${seconds} s, as ${user}`)
  await cluster.until('the cluster is served by a machine', async () =>
    (await cluster.view()).status?.conditions?.some(
      ({ type, reason }) => type === 'Connected' && reason === 'MachineConnected',
    ),
  )
  for (const pid of pids) process.kill(pid, 'SIGCONT')
}

async function remove({ cluster }: Story): Promise<void> {
  const { server, path } = cluster
  await server.request('DELETE', path)
  await cluster.until('the cluster is gone', async () => (await server.statusOf('GET', path)) === 404)
  say('the cluster is removed')
}

await main()
