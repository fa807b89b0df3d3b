/**
 * Benchmarks requests to a cluster through `hyperkube server` and its agent, in turns with direct requests. All
 * programs run as npm installs them, over TLS on loopback.
 */
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { performance } from 'node:perf_hooks'

import { startManagementServer } from '../upstream/management-server.ts'
import { type Bench, quantile } from './bench.ts'
import { type Connection, encodeRequest, openConnection } from './http-load.ts'
import { figure, type Table } from './table.ts'
import { startUp } from './up-under-test.ts'

const ROUNDS = 5
const ROUND_MS = 2000
const CLIENTS = [1, 16]

/** At least this share of the direct rate, and at most this much more time. */
const GOAL = { ratio: 0.6, addedMs: 3 }

/** A ConfigMap, and all ClusterRoles. */
const PATHS: Readonly<Record<string, string>> = {
  GET: '/api/v1/namespaces/kube-system/configmaps/kubeadm-config',
  LIST: '/apis/rbac.authorization.k8s.io/v1/clusterroles',
}

/** One way to the same API server. */
interface Way {
  readonly open: () => Promise<Connection>
  readonly request: (path: string) => Buffer
}

export const bench: Bench = {
  about: `requests through the management server and directly, in turns of ${ROUND_MS} ms; medians of ${ROUNDS} rounds`,
  async run() {
    const folder = await mkdtemp(join(tmpdir(), 'hyperkube-bench-management-'))
    const cluster = await startUp(folder, 0)
    try {
      await cluster.nodesReady()
      await using server = await startManagementServer(join(folder, 'server'))
      const file = await server.importCluster('bench', join(folder, 'kubeconfig'))
      return [await measureAll([direct(cluster), await through(file)])]
    } finally {
      await cluster.stop()
      await rm(folder, { recursive: true, force: true })
    }
  },
}

function direct(target: Parameters<typeof openConnection>[0]): Way {
  return { open: () => openConnection(target), request: (path) => encodeRequest({ path }) }
}

async function through(kubeconfig: string): Promise<Way> {
  const text = await readFile(kubeconfig, 'utf8')
  const field = (name: string): string => new RegExp(`${name}: "?([^\\s"]+)`).exec(text)?.[1] ?? ''
  const { port, pathname } = new URL(field('server'))
  const ca = Buffer.from(field('certificate-authority-data'), 'base64').toString()
  const headers = { authorization: `Bearer ${field('token')}` }
  return {
    // The server asks for no client certificate.
    open: () => openConnection({ port: Number(port), tls: { ca } as never }),
    request: (path) => encodeRequest({ path: pathname + path, headers }),
  }
}

async function measureAll(ways: readonly [Way, Way]): Promise<Table> {
  const rows: Compared[] = []
  for (const [name, path] of Object.entries(PATHS)) {
    for (const clients of CLIENTS) {
      const [direct, through] = (await inTurns(ways, path, clients)).map((rounds) => summary(rounds))
      if (direct !== undefined && through !== undefined) rows.push(compare(`${name} ${clients}`, direct, through))
    }
  }
  const missesGoal = rows.some(({ ratio, addedMs }) => ratio < GOAL.ratio || addedMs > GOAL.addedMs)
  const ratios = rows.map(({ name, ratio, addedMs }) => `${name}: ${figure(ratio)}x +${figure(addedMs)} ms`)
  return {
    title: 'requests to a cluster, by clients',
    columns: ['', 'direct /s', 'p99 ms', 'through /s', 'p99 ms', 'ratio', 'added p99 ms'],
    rows: rows.map(({ name, figures }) => [name, ...figures.map((value) => figure(value))]),
    result: `goal ${GOAL.ratio}x, p99 +${GOAL.addedMs} ms ${missesGoal ? 'missed' : 'met'}: ${ratios.join('; ')}`,
    missesGoal,
  }
}

interface Compared {
  readonly name: string
  readonly ratio: number
  readonly addedMs: number
  readonly figures: readonly number[]
}

function compare(name: string, direct: Summary, through: Summary): Compared {
  const ratio = through.rate / direct.rate
  const addedMs = through.p99 - direct.p99
  return { name, ratio, addedMs, figures: [direct.rate, direct.p99, through.rate, through.p99, ratio, addedMs] }
}

interface Round {
  readonly rate: number
  readonly latencies: readonly number[]
}

async function inTurns(ways: readonly [Way, Way], path: string, clients: number): Promise<readonly Round[][]> {
  const opened = await Promise.all(
    ways.map(async (way) => Promise.all(Array.from({ length: clients }, () => way.open()))),
  )
  const found: Round[][] = ways.map(() => [])
  for (let round = 0; round <= ROUNDS; round++) {
    for (const [at, way] of ways.entries()) {
      const measured = await load(opened[at] ?? [], way.request(path))
      // The first round warms up.
      if (round > 0) found[at]?.push(measured)
    }
  }
  for (const { socket } of opened.flat()) socket.destroy()
  return found
}

async function load(connections: readonly Connection[], request: Buffer): Promise<Round> {
  const latencies: number[] = []
  const startedMs = performance.now()
  const work = async ({ send }: Connection): Promise<void> => {
    while (performance.now() - startedMs < ROUND_MS) {
      const sentMs = performance.now()
      const { status, text } = await send(request)
      if (status !== 200) throw new Error(`The answer was ${status}: ${text}`)
      latencies.push(performance.now() - sentMs)
    }
  }
  await Promise.all(connections.map((connection) => work(connection)))
  return { rate: (latencies.length / (performance.now() - startedMs)) * 1000, latencies }
}

interface Summary {
  readonly rate: number
  readonly p99: number
}

function summary(rounds: readonly Round[]): Summary {
  const rates = rounds.map(({ rate }) => rate)
  return {
    rate: quantile(rates, 0.5),
    p99: quantile(
      rounds.flatMap(({ latencies }) => latencies),
      0.99,
    ),
  }
}
