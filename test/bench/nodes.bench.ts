/**
 * Simulated nodes: `hyperkube up` with many, until all nodes are ready, until all pods run, for some time in which nothing is asked of
 * it, and until the pods are gone again; beside kwok with upstream's control plane. kwok's own measure is 60 s for 5,000
 * nodes and 60 s for 10,000 pods. Who asks is another process, and counts what it hears of.
 */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { performance } from 'node:perf_hooks'

import { startKwok } from '../upstream/kwok.ts'
import type { Bench } from './bench.ts'
import { encodeRequest, openConnection, pause, sendAll } from './http-load.ts'
import { followPresence } from './presence.ts'
import { usageOfAll } from './server-under-test.ts'
import { besides, type Figures, toTable } from './table.ts'
import { type ClusterUnderTest, startUp, type Target } from './up-under-test.ts'

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
    const ours = await play((folder) => startUp(folder, nodes))
    return [reference ? besides(ours, await play(startTheirs)) : toTable(ours)]
  },
}

async function play(start: (folder: string) => Promise<ClusterUnderTest>): Promise<Figures> {
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
    const running = await followPresence(cluster, `${NAMESPACE}/pods?fieldSelector=status.phase%3DRunning`)
    await phase('pods running', () => Promise.all([sendAll(cluster, podRequests('POST')), running.reached(pods)]))
    running.stop()
    await phase(`${IDLE_MS / 1000} s of nothing`, () => pause(IDLE_MS))
    const there = await followPresence(cluster, `${NAMESPACE}/pods`)
    await phase('pods deleted', () => Promise.all([sendAll(cluster, podRequests('DELETE')), there.emptied()]))
    there.stop()
  } finally {
    await cluster.stop()
    await rm(folder, { recursive: true, force: true })
  }
  return { title: 'a cluster of simulated nodes', columns: COLUMNS, rows }
}

/** The control plane is there before the clock starts. */
async function startTheirs(folder: string): Promise<ClusterUnderTest> {
  const kwok = await startKwok(folder)
  const accounts = await followPresence(kwok, `${NAMESPACE}/serviceaccounts`)
  await accounts.reached(1)
  accounts.stop()
  return {
    ...kwok,
    async nodesReady() {
      const isReady = (line: string): boolean => !line.includes('"node.kubernetes.io/not-ready"')
      const ready = await followPresence(kwok, '/api/v1/nodes', isReady)
      const requests = Array.from({ length: nodes }, (_, at) =>
        encodeRequest({ method: 'POST', path: '/api/v1/nodes', body: JSON.stringify(nodeOf(`node-${at}`)) }),
      )
      await Promise.all([sendAll(kwok, requests), ready.reached(nodes)])
      ready.stop()
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
