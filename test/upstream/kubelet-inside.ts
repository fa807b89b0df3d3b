/**
 * Measures the memory of the kubelet inside `hyperkube up`: `node test/upstream/kubelet-inside.ts` as root. The
 * kubelet's part of the heap cannot be measured directly. So the same pods run in a cluster with a simulated node and
 * in one with containers. The difference counts as the kubelet, including proxy, network and streaming. The reference
 * is upstream's kubelet with as many pods on the same containerd.
 */
import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'

import type { Pod } from '#apis/core/v1.ts'
import { realClock, sleep } from '#lib/clock.ts'

import { installed, usageOf } from '../bench/server-under-test.ts'
import { type ClusterUnderTest, startUp } from '../bench/up-under-test.ts'
import { makeImages } from '../images/main.ts'
import { IMAGE, whyNoContainerd } from '../integration/kubelet/containerd-bed.ts'
import { startKubeletBed } from './kubelet-bed.ts'
import { ask, type Server } from './ours.ts'

const { values } = parseArgs({
  options: { pods: { type: 'string', default: '50' }, idle: { type: 'string', default: '60' } },
})
const COUNT = Number(values.pods)
const IDLE_MS = Number(values.idle) * 1000
const PODS = '/api/v1/namespaces/default/pods'
const say = (line: string): void => void process.stdout.write(`${line}\n`)

/** Resolves when all are ready and have been for a while. */
async function runPods(server: Pick<Server, 'port' | 'tls'>, image: string, nodeName?: string): Promise<void> {
  const container = { name: 'c', image, imagePullPolicy: 'Never', command: ['sleep', '1000000'] }
  const spec = {
    ...(nodeName !== undefined && { nodeName }),
    containers: [container],
    terminationGracePeriodSeconds: 1,
    automountServiceAccountToken: false,
  }
  for (let index = 0; index < COUNT; index++) {
    const { status, body } = await ask(server, {
      method: 'POST',
      path: PODS,
      body: { metadata: { name: `p${index}` }, spec },
    })
    if (status !== 201) throw new Error(JSON.stringify(body))
  }
  const isReady = ({ status }: Pod): boolean =>
    status.conditions?.some(({ type, status: value }) => type === 'Ready' && value === 'True') ?? false
  for (let waitedMs = 0; ; waitedMs += 1000) {
    const { items } = (await ask(server, { path: PODS })).body as { items: Pod[] }
    if (items.filter(isReady).length === COUNT) break
    if (waitedMs > 300_000) throw new Error('The pods do not run')
    await sleep(realClock, 1000)
  }
  await sleep(realClock, IDLE_MS)
}

interface Memory {
  /** Before there were pods. */
  readonly emptyMb: number
  readonly fullMb: number
}

async function memoryOf(pid: number, run: () => Promise<void>): Promise<Memory> {
  await sleep(realClock, IDLE_MS / 2)
  const { residentMb: emptyMb } = await usageOf(pid)
  await run()
  const { residentMb: fullMb } = await usageOf(pid)
  return { emptyMb, fullMb }
}

async function inside(runtime: 'simulated' | 'containerd'): Promise<Memory> {
  const folder = mkdtempSync(join(tmpdir(), 'hyperkube-inside-'))
  const flag = `--data-dir=${join(folder, 'data')}`
  let cluster: ClusterUnderTest | undefined
  try {
    cluster = await startUp(folder, 1, runtime)
    await cluster.nodesReady()
    if (runtime === 'containerd') {
      const [archive = ''] = await makeImages(join(folder, 'images'), ['busybox'], () => undefined)
      execFileSync(await installed(), ['image', 'load', flag, archive])
    }
    const server = cluster
    const told = await memoryOf(cluster.pids[0] ?? 0, () => runPods(server, 'busybox'))
    say(`up, ${runtime}: ${Math.round(told.emptyMb)} MiB, with ${COUNT} idle pods ${Math.round(told.fullMb)} MiB`)
    return told
  } finally {
    await cluster?.stop()
    execFileSync(await installed(), ['reset', flag])
    rmSync(folder, { recursive: true, force: true })
  }
}

async function alone(): Promise<Memory> {
  await using closing = new AsyncDisposableStack()
  const bed = await startKubeletBed('alone', closing)
  const kubelet = await bed.start('upstream')
  const told = await memoryOf(kubelet.child.pid ?? 0, () => runPods(bed.server, IMAGE, bed.node))
  say(`upstream's kubelet: ${Math.round(told.emptyMb)} MiB, with ${COUNT} idle pods ${Math.round(told.fullMb)} MiB`)
  await bed.ask('DELETE', PODS)
  for (let waitedMs = 0; waitedMs < 120_000; waitedMs += 1000) {
    if ((await bed.ask<{ items: Pod[] }>('GET', PODS)).items.length === 0) break
    await sleep(realClock, 1000)
  }
  await kubelet.stop('SIGTERM')
  return told
}

const fault = await whyNoContainerd()
if (fault !== undefined) throw new Error(`There can be no containers here: ${fault}`)
const [simulated, real, reference] = [await inside('simulated'), await inside('containerd'), await alone()]
const own = real.fullMb - simulated.fullMb
const times = (own / reference.fullMb).toFixed(2)
say(`the kubelet inside up: ${Math.round(own)} MiB, ${times} x upstream's`)
process.exitCode = own <= 1.2 * reference.fullMb ? 0 : 1
