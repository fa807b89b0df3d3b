/**
 * Compares many simulated nodes with kwok on upstream's control plane. It measures the time until all nodes are
 * ready, all pods run and all pods are deleted. It also measures the cost of the idle cluster. kwok's own targets are
 * 60 s for 5,000 nodes and 60 s for 10,000 pods. The client is a separate process. On a shared machine, processor
 * time and memory say more than elapsed time.
 */
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { performance } from 'node:perf_hooks'
import { Worker } from 'node:worker_threads'

import { startKwok } from '../upstream/kwok.ts'
import type { Bench } from './bench.ts'
import { encodeRequest, pause, sendAll } from './http-load.ts'
import { followPresence } from './presence.ts'
import { usageOfAll } from './server-under-test.ts'
import { besides, figure, type Figures, toTable } from './table.ts'
import { type ClusterUnderTest, startUp, type Target } from './up-under-test.ts'

/** `SIZES='1000x2000 10000x100000' npm run bench -- scale`: nodes and pods of each run. */
const { SIZES = '1000x10000 5000x10000' } = process.env
/** A program that exceeds the time for one step or the memory is stopped, and its figures so far are shown. */
const { LIMIT_SECONDS = '600', LIMIT_MB = '8000' } = process.env
/** The last step that is of interest, by its name; all of them if none is named. */
const { UNTIL = '' } = process.env
const COLUMNS = ['', 'seconds', 'CPU seconds', 'resident MB', 'without file pages', 'most MB', 'slowest answer ms']
const IDLE_MS = 20_000
const LOOK_MS = 200
const NAMESPACE = '/api/v1/namespaces/default'

interface Size {
  readonly nodes: number
  readonly pods: number
}

type Start = (folder: string, size: Size) => Promise<ClusterUnderTest>

export const bench: Bench = {
  about: `nodes x pods: ${SIZES}. Ours is one process; the reference is etcd, upstream's control plane and kwok`,
  async run({ reference }) {
    const tables = []
    for (const text of SIZES.split(' ')) {
      const [nodes = 0, pods = 0] = text.split('x').map(Number)
      const size = { nodes, pods }
      const ours = await play((folder) => startUp(folder, nodes), size)
      tables.push(reference ? besides(ours, await play(startTheirs, size)) : toTable(ours))
    }
    return tables
  },
}

async function play(start: Start, size: Size): Promise<Figures> {
  const { nodes, pods } = size
  const folder = await mkdtemp(join(tmpdir(), 'hyperkube-scale-bench-'))
  const rows: { name: string; values: number[] }[] = []
  const cluster = await start(folder, size)
  const phase = async (name: string, work: () => Promise<unknown>, seen = () => ''): Promise<void> => {
    const { cpuMs } = await usageOfAll(cluster.pids)
    const startMs = performance.now()
    const [pinging, watching] = [ping(cluster), watchMemory(cluster.pids)]
    // This timeout does not keep the process running.
    const tooLong = once(AbortSignal.timeout(Number(LIMIT_SECONDS) * 1000), 'abort')
    const isDone = await Promise.race([work().then(() => true), watching.tooMuch, tooLong])
    const seconds = isDone === true ? (performance.now() - startMs) / 1000 : Number.NaN
    const after = await usageOfAll(cluster.pids)
    const cpu = (after.cpuMs - cpuMs) / 1000
    const values = [seconds, cpu, after.residentMb, after.anonymousMb, await watching.stop(), await pinging.stop()]
    rows.push({ name, values })
    // A run takes long, so each figure is printed immediately.
    process.stderr.write(`${nodes} nodes, ${pods} pods, ${name}: ${values.map(figure).join(' ')}\n`)
    if (isDone !== true) throw new Stopped(`"${name}" was not done within the limits${seen()}`)
    if (name === UNTIL) throw new Stopped(`"${name}" was the last step asked for`)
  }
  try {
    await phase('nodes ready', cluster.nodesReady)
    using running = await followPresence(cluster, `${NAMESPACE}/pods?fieldSelector=status.phase%3DRunning`)
    const run = (): Promise<unknown> =>
      Promise.all([sendAll(cluster, podRequests('POST', pods)), running.reached(pods)])
    await phase('pods running', run, () => `: ${running.size()} ran by then`)
    await phase(`${IDLE_MS / 1000} s of nothing`, () => pause(IDLE_MS))
    using there = await followPresence(cluster, `${NAMESPACE}/pods`)
    await phase('pods deleted', () => Promise.all([sendAll(cluster, podRequests('DELETE', pods)), there.emptied()]))
  } catch (error) {
    if (!(error instanceof Stopped)) throw error
    process.stderr.write(`${nodes} nodes, ${pods} pods: ${error.message}\n`)
  } finally {
    await cluster.stop()
    await rm(folder, { recursive: true, force: true })
  }
  return { title: `${nodes} simulated nodes, ${pods} pods`, columns: COLUMNS, rows }
}

/** Before the last step. */
class Stopped extends Error {}

/** Looks again and again at how much memory they have together. */
function watchMemory(pids: readonly number[]): { readonly tooMuch: Promise<void>; stop(): Promise<number> } {
  const over = new AbortController()
  const tooMuch = Promise.withResolvers<void>()
  let mostMb = 0
  const running = (async () => {
    while (!over.signal.aborted) {
      const { residentMb } = await usageOfAll(pids)
      mostMb = Math.max(mostMb, residentMb)
      if (mostMb > Number(LIMIT_MB)) tooMuch.resolve()
      await pause(LOOK_MS)
    }
  })()
  return {
    tooMuch: tooMuch.promise,
    async stop() {
      over.abort()
      await running
      return mostMb
    },
  }
}

/** The control plane is there before the clock starts. */
async function startTheirs(folder: string, { nodes }: Size): Promise<ClusterUnderTest> {
  const kwok = await startKwok(folder)
  using accounts = await followPresence(kwok, `${NAMESPACE}/serviceaccounts`)
  await accounts.reached(1)
  return {
    ...kwok,
    async nodesReady() {
      const isReady = (line: string): boolean => !line.includes('"node.kubernetes.io/not-ready"')
      using ready = await followPresence(kwok, '/api/v1/nodes', isReady)
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

function podRequests(method: 'POST' | 'DELETE', pods: number): Buffer[] {
  const resources = { requests: { cpu: '10m', memory: '10Mi' } }
  const spec = { containers: [{ name: 'c', image: 'img:1', resources }] }
  return Array.from({ length: pods }, (_, at) => {
    const name = `pod-${at}`
    if (method === 'DELETE') return encodeRequest({ method, path: `${NAMESPACE}/pods/${name}` })
    const body = JSON.stringify({ metadata: { name, labels: { app: 'bench' } }, spec })
    return encodeRequest({ method, path: `${NAMESPACE}/pods`, body })
  })
}

/** How long the slowest answer took to whether it is alive. */
function ping({ port, tls }: Target): { stop(): Promise<number> } {
  const worker = new Worker(new URL('ping.worker.ts', import.meta.url), { workerData: { port, tls } })
  return {
    async stop() {
      const slowest = once(worker, 'message') as Promise<[number]>
      worker.postMessage('stop')
      return (await slowest)[0]
    },
  }
}
