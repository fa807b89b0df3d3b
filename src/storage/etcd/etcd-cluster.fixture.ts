/**
 * A real etcd of one or several members on loopback, for tests: members can be stopped, killed, paused and restarted on
 * their data. All of them end with the process that started them.
 */
import { spawn, spawnSync, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { open, mkdtemp, readFile, rm } from 'node:fs/promises'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import { Maintenance, type StatusResponse } from '#apis/wire/etcd.ts'
import { realClock, sleep } from '#lib/clock.ts'
import { createGrpcClient } from '#lib/grpc/client.ts'
import type { ClientTls } from '#lib/http/dial.ts'
import { secureRandom } from '#lib/random.ts'

export interface ClusterOptions {
  /** Default 1. */
  readonly members?: number
  /** More flags for every member. */
  readonly flags?: readonly string[]
  /** Serve clients over TLS; the flags say with what. */
  readonly tls?: ClientTls
  /** A snapshot to begin with, for one member. */
  readonly snapshot?: string
}

export interface TestMember {
  readonly name: string
  /** Where clients connect. */
  readonly url: string
  readonly isRunning: boolean
  /** Starts it on the data it has. Resolves when it has been started, not when it is healthy. */
  start(): Promise<void>
  /** SIGTERM, and waits for its end. */
  stop(): Promise<void>
  /** SIGKILL, and waits for its end. */
  kill(): Promise<void>
  /** SIGSTOP: connections stay open and nothing answers. */
  pause(): void
  resume(): void
  /** Undefined when it does not answer. */
  status(): Promise<StatusResponse | undefined>
}

export interface TestCluster {
  readonly members: readonly TestMember[]
  readonly urls: readonly string[]
  /** Waits until all members that run know the same leader. */
  healthy(): Promise<void>
  /** The member that leads, waiting for one. */
  leader(): Promise<TestMember>
  /** Ends all members and removes their data. */
  stop(): Promise<void>
}

const HEALTHY_MS = 30_000
const STATUS_MS = 1000
const POLL_MS = 50
const START_ATTEMPTS = 3

/** `HYPERKUBE_ETCD` may name another etcd than the one in PATH. */
function program(): string {
  return process.env['HYPERKUBE_ETCD'] ?? 'etcd'
}

/** Why there can be no cluster here; undefined when there can. */
export function whyNoEtcd(): string | undefined {
  const found = spawnSync(program(), ['--version'], { env: environment() })
  return found.status === 0 ? undefined : 'etcd is not installed (Debian: apt-get install etcd-server)'
}

/** Why snapshots cannot be restored here; undefined when they can. */
export function whyNoEtcdctl(): string | undefined {
  const found = spawnSync('etcdctl', ['version'], { env: environment() })
  return found.status === 0 ? undefined : 'etcdctl is not installed (Debian: apt-get install etcd-client)'
}

export async function startCluster(options: ClusterOptions = {}): Promise<TestCluster> {
  for (let attempt = 1; ; attempt++) {
    const cluster = await prepareCluster(options)
    try {
      for (const member of cluster.members) await member.start()
      await cluster.healthy()
      return cluster
    } catch (error) {
      await cluster.stop()
      // Another process may have taken one of the ports meanwhile.
      if (attempt === START_ATTEMPTS) throw error
    }
  }
}

async function prepareCluster(options: ClusterOptions): Promise<TestCluster> {
  const folder = await mkdtemp(join(tmpdir(), 'etcd-cluster-'))
  const count = options.members ?? 1
  const ports = await freePorts(2 * count)
  const peers = Array.from({ length: count }, (_, n) => `m${n}=http://127.0.0.1:${ports[count + n]}`).join(',')
  const members = Array.from({ length: count }, (_, n) => {
    const scheme = options.tls === undefined ? 'http' : 'https'
    const peer = `http://127.0.0.1:${ports[count + n]}`
    return createMember({ name: `m${n}`, folder, peer, peers, url: `${scheme}://127.0.0.1:${ports[n]}`, options })
  })
  if (options.snapshot !== undefined) restore(options.snapshot, folder, peers)
  const leading = async (): Promise<TestMember | undefined> => {
    const running = members.filter((member) => member.isRunning)
    const statuses = await Promise.all(running.map((member) => member.status()))
    const leaders = new Set(statuses.map((status) => status?.leader ?? 0))
    const [leader = 0] = leaders
    if (leaders.size !== 1 || leader === 0) return undefined
    return running.find((_, n) => statuses[n]?.header?.memberId === leader)
  }
  return {
    members,
    urls: members.map((member) => member.url),
    async healthy() {
      await waitFor('a leader all members know', leading, folder)
    },
    leader: () => waitFor('a leader', leading, folder),
    async stop() {
      await Promise.all(members.map((member) => member.kill()))
      await rm(folder, { recursive: true, force: true })
    },
  }
}

async function waitFor<T>(what: string, look: () => Promise<T | undefined>, folder: string): Promise<T> {
  const deadline = realClock.elapsed() + HEALTHY_MS
  for (;;) {
    const found = await look()
    if (found !== undefined) return found
    if (realClock.elapsed() > deadline) {
      const log = await readFile(join(folder, 'm0.log'), 'utf8').catch(() => '')
      throw new Error(`No sign of ${what} within ${HEALTHY_MS} ms; the first member wrote:\n${log.slice(-2000)}`)
    }
    await sleep(realClock, POLL_MS)
  }
}

interface MemberPlan {
  readonly name: string
  readonly folder: string
  readonly url: string
  readonly peer: string
  readonly peers: string
  readonly options: ClusterOptions
}

function createMember(plan: MemberPlan): TestMember {
  let child: ChildProcess | undefined
  const end = async (signal: 'SIGTERM' | 'SIGKILL'): Promise<void> => {
    const ending = child
    if (ending === undefined || ending.exitCode !== null || ending.signalCode !== null) return
    const exited = once(ending, 'exit')
    ending.ref()
    // A paused process hears nothing else before it goes on.
    ending.kill(signal)
    ending.kill('SIGCONT')
    await exited
  }
  return {
    name: plan.name,
    url: plan.url,
    get isRunning() {
      return child !== undefined && child.exitCode === null && child.signalCode === null
    },
    async start() {
      child = await spawnMember(plan)
    },
    stop: () => end('SIGTERM'),
    kill: () => end('SIGKILL'),
    pause: () => void child?.kill('SIGSTOP'),
    resume: () => void child?.kill('SIGCONT'),
    status: () => statusOf(plan),
  }
}

/**
 * The shell starts a watchdog and becomes etcd itself. The watchdog reads from a pipe without data. The pipe ends
 * when the process at its other end exits; then the watchdog kills etcd.
 */
const WATCHDOG = 'exec 3<&0; { read -r _ <&3; kill -9 $$; } >/dev/null 2>&1 & exec "$@" 3<&- </dev/null'

async function spawnMember({ name, folder, url, peer, peers, options }: MemberPlan): Promise<ChildProcess> {
  const flags = [
    ['--name', name],
    ['--data-dir', join(folder, name)],
    ['--listen-client-urls', url],
    ['--advertise-client-urls', url],
    ['--listen-peer-urls', peer],
    ['--initial-advertise-peer-urls', peer],
    ['--initial-cluster', peers],
    ['--initial-cluster-token', folder],
    ['--log-level', 'error'],
  ].flat()
  const log = await open(join(folder, `${name}.log`), 'a')
  try {
    const command = ['-c', WATCHDOG, 'sh', program(), ...flags, ...(options.flags ?? [])]
    const child = spawn('sh', command, { stdio: ['pipe', log.fd, log.fd], env: environment() })
    child.once('exit', () => child.stdin?.destroy())
    // The test may end although a member still runs; the watchdog sees to it then.
    child.unref()
    await once(child, 'spawn')
    return child
  } finally {
    await log.close()
  }
}

async function statusOf({ url, options }: MemberPlan): Promise<StatusResponse | undefined> {
  const { hostname, port } = new URL(url)
  const target = { host: hostname, port: Number(port), ...(options.tls && { tls: options.tls }) }
  const client = createGrpcClient({ targets: [target], clock: realClock, random: secureRandom })
  try {
    return await client.unary(Maintenance.status, {}, { timeoutMs: STATUS_MS })
  } catch {
    return undefined
  } finally {
    client.close()
  }
}

function restore(snapshot: string, folder: string, peers: string): void {
  const flags = ['--data-dir', join(folder, 'm0'), '--name', 'm0', '--initial-cluster', peers]
  const cluster = ['--initial-advertise-peer-urls', peers.slice('m0='.length), '--initial-cluster-token', folder]
  const done = spawnSync('etcdctl', ['snapshot', 'restore', snapshot, ...flags, ...cluster], { env: environment() })
  if (done.status !== 0) throw new Error(`Cannot restore the snapshot: ${done.stderr.toString()}`)
}

/** Variables of etcd in the environment must not reach the members. On arm64, etcd 3.4 starts only with a variable. */
function environment(): NodeJS.ProcessEnv {
  const inherited = Object.entries(process.env).filter(([name]) => !name.startsWith('ETCD'))
  const arm = process.arch === 'arm64' ? { ETCD_UNSUPPORTED_ARCH: 'arm64' } : {}
  return { ...Object.fromEntries(inherited), ETCDCTL_API: '3', ...arm }
}

async function freePorts(count: number): Promise<number[]> {
  const servers = Array.from({ length: count }, () => createServer().listen(0, '127.0.0.1'))
  await Promise.all(servers.map((server) => once(server, 'listening')))
  const ports = servers.map((server) => {
    const address = server.address()
    return typeof address === 'object' && address !== null ? address.port : 0
  })
  await Promise.all(servers.map((server) => once(server.close(), 'close')))
  return ports
}
