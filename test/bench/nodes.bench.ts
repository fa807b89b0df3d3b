/**
 * Simulated nodes: `hyperkube up` with many, until all nodes are ready, until all pods run, for some time in which nothing is asked of
 * it, and until the pods are gone again; beside kwok with upstream's control plane. kwok's own measure is 60 s for 5,000
 * nodes and 60 s for 10,000 pods. Who asks is another process, and counts what it hears of.
 */
import { spawn } from 'node:child_process'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { request } from 'node:https'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { performance } from 'node:perf_hooks'

import { end, freePort } from '../upstream/kube-apiserver.ts'
import { startKwok } from '../upstream/kwok.ts'
import type { Bench } from './bench.ts'
import { encodeRequest, openConnection, pause, sendAll } from './http-load.ts'
import { installed, type ServerUnderTest, usageOfAll } from './server-under-test.ts'
import { besides, type Figures, toTable } from './table.ts'

/** `NODES=10000 PODS=100000 npm run bench -- nodes` for more. */
const { NODES = '5000', PODS = '10000' } = process.env
const [nodes, pods] = [Number(NODES), Number(PODS)]
const COLUMNS = ['', 'seconds', 'CPU seconds', 'resident MB', 'slowest answer ms']
const IDLE_MS = 20_000
const PING_MS = 100
const NAMESPACE = '/api/v1/namespaces/default'

export const bench: Bench = {
  about: `${NODES} nodes, ${PODS} pods: ours is one process; the reference is etcd, upstream's control plane and kwok`,
  async run({ reference }) {
    const ours = await play(startOurs)
    return [reference ? besides(ours, await play(startTheirs)) : toTable(ours)]
  },
}

type Target = Pick<ServerUnderTest, 'port' | 'tls'>

interface Cluster extends Target {
  readonly pids: readonly number[]
  /** Resolves when its nodes are ready. */
  readonly nodesReady: () => Promise<void>
  readonly stop: () => Promise<void>
}

async function play(start: (folder: string) => Promise<Cluster>): Promise<Figures> {
  const folder = await mkdtemp(join(tmpdir(), 'hyperkube-nodes-bench-'))
  const rows: { name: string; values: number[] }[] = []
  const cluster = await start(folder)
  const phase = async (name: string, work: () => Promise<unknown>): Promise<void> => {
    const { cpuMs } = await usageOfAll(cluster.pids)
    const startMs = performance.now()
    const pinging = ping(cluster)
    await work()
    const seconds = (performance.now() - startMs) / 1000
    const after = await usageOfAll(cluster.pids)
    rows.push({ name, values: [seconds, (after.cpuMs - cpuMs) / 1000, after.residentMb, await pinging.stop()] })
  }
  try {
    await phase('nodes ready', cluster.nodesReady)
    const running = await count(
      cluster,
      `${NAMESPACE}/pods?watch=1&resourceVersion=0&fieldSelector=status.phase%3DRunning`,
      'ADDED',
    )
    await phase('pods running', () => Promise.all([sendAll(cluster, podRequests('POST')), running.reached(pods)]))
    await phase(`${IDLE_MS / 1000} s of nothing`, () => pause(IDLE_MS))
    const gone = await count(cluster, `${NAMESPACE}/pods?watch=1&resourceVersion=0`, 'DELETED')
    await phase('pods deleted', () => Promise.all([sendAll(cluster, podRequests('DELETE')), gone.reached(pods)]))
  } finally {
    await cluster.stop()
    await rm(folder, { recursive: true, force: true })
  }
  return { title: 'a cluster of simulated nodes', columns: COLUMNS, rows }
}

async function startOurs(folder: string): Promise<Cluster> {
  const port = await freePort()
  const data = join(folder, 'data')
  const where = [`--data-dir=${data}`, `--kubeconfig=${join(folder, 'kubeconfig')}`, `--secure-port=${port}`]
  const up = ['up', '--runtime=simulated', `--nodes=${nodes}`, '-o=json', ...where]
  const child = spawn(await installed(), up, { stdio: ['ignore', 'pipe', 'inherit'] })
  const ready = new Promise<void>((resolve, reject) => {
    child.stdout.once('data', () => resolve())
    child.once('exit', (code) => reject(new Error(`up ended with ${code} before it was ready`)))
  })
  ready.catch(() => undefined)
  const tls = async (): Promise<Target['tls']> => {
    const [ca = '', cert = '', key = ''] = await Promise.all(
      ['ca.crt', 'admin.crt', 'admin.key'].map((name) => readFile(join(data, 'pki', name), 'utf8')),
    )
    return { ca, cert, key }
  }
  let known: Target['tls'] | undefined
  while (known === undefined) {
    await pause(20)
    known = await tls().catch(() => undefined)
  }
  return { port, tls: known, pids: [child.pid ?? 0], nodesReady: () => ready, stop: () => end(child, 'SIGTERM') }
}

/** The control plane is there before the clock starts. */
async function startTheirs(folder: string): Promise<Cluster> {
  const kwok = await startKwok(folder)
  const account = await count(kwok, `${NAMESPACE}/serviceaccounts?watch=1&resourceVersion=0`, 'ADDED')
  await account.reached(1)
  return {
    ...kwok,
    async nodesReady() {
      const ready = await followReadyNodes(kwok)
      const requests = Array.from({ length: nodes }, (_, at) =>
        encodeRequest({ method: 'POST', path: '/api/v1/nodes', body: JSON.stringify(nodeOf(`node-${at}`)) }),
      )
      await Promise.all([sendAll(kwok, requests), ready.reached(nodes)])
    },
  }
}

function nodeOf(name: string): object {
  const capacity = { cpu: '8', memory: '32Gi', 'ephemeral-storage': '100Gi', pods: '110' }
  return {
    metadata: { name, labels: { 'kubernetes.io/hostname': name }, annotations: { 'kwok.x-k8s.io/node': 'fake' } },
    status: { allocatable: capacity, capacity },
  }
}

function podRequests(method: 'POST' | 'DELETE'): Buffer[] {
  const resources = { requests: { cpu: '10m', memory: '10Mi' } }
  const spec = { containers: [{ name: 'c', image: 'img:1', resources }] }
  return Array.from({ length: pods }, (_, at) => {
    const name = `pod-${at}`
    if (method === 'DELETE') return encodeRequest({ method, path: `${NAMESPACE}/pods/${name}` })
    const body = JSON.stringify({ metadata: { name, labels: { app: 'bench' } }, spec })
    return encodeRequest({ method, path: `${NAMESPACE}/pods`, body })
  })
}

interface Counted {
  reached(many: number): Promise<void>
}

/** Events of one type. */
function count(target: Target, path: string, type: string): Promise<Counted> {
  const head = `{"type":"${type}"`
  return countLines(target, path, (line, so) => so + Number(line.startsWith(head)))
}

/** Those that nobody holds for unfit any more. */
function followReadyNodes(target: Target): Promise<Counted> {
  const ready = new Set<string>()
  return countLines(target, '/api/v1/nodes?watch=1&resourceVersion=0', (line) => {
    if (!line.includes('"node.kubernetes.io/not-ready"')) ready.add(/"name":"([^"]+)"/.exec(line)?.[1] ?? '')
    return ready.size
  })
}

/** Resolves when the watch is open; it is closed when as many were counted as were waited for. */
function countLines({ port, tls }: Target, path: string, next: (line: string, so: number) => number): Promise<Counted> {
  let [so, wanted] = [0, Infinity]
  const all = Promise.withResolvers<void>()
  return new Promise((resolve, reject) => {
    const look = (): void => {
      if (so < wanted) return
      all.resolve()
      asked.destroy()
    }
    const asked = request({ port, path, host: '127.0.0.1', ...tls }, (answer) => {
      let rest = ''
      answer.setEncoding('utf8').on('data', (part: string) => {
        const lines = (rest + part).split('\n')
        rest = lines.pop() ?? ''
        for (const line of lines) so = next(line, so)
        look()
      })
      resolve({
        reached(many) {
          wanted = many
          look()
          return all.promise
        },
      })
    })
    asked.on('error', reject).end()
  })
}

/** Asks again and again whether it is alive, and knows how long the slowest answer took. */
function ping(target: Target): { stop(): Promise<number> } {
  const over = new AbortController()
  let slowestMs = 0
  const running = (async () => {
    let connection = await openConnection(target).catch(() => undefined)
    while (!over.signal.aborted) {
      const startMs = performance.now()
      connection ??= await openConnection(target).catch(() => undefined)
      await connection?.send(encodeRequest({ path: '/livez' })).catch(() => (connection = undefined))
      if (connection !== undefined) slowestMs = Math.max(slowestMs, performance.now() - startMs)
      await pause(PING_MS)
    }
    connection?.socket.destroy()
  })()
  return {
    async stop() {
      over.abort()
      await running
      return slowestMs
    },
  }
}
