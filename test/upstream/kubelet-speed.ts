/**
 * Measures pod starts and the cost of our kubelet and upstream's: `node test/upstream/kubelet-speed.ts` as root. Ours
 * and upstream's run one after the other on the same containerd and API server. They start one pod a second, then many
 * at once, with present images. Then memory, processor time and requests with idle pods are measured. A start lasts
 * from the response to the creation until the pod is Ready. On a shared machine processor time says more than elapsed
 * time.
 */
import { readFile } from 'node:fs/promises'
import { request } from 'node:https'
import { createInterface } from 'node:readline'
import { parseArgs } from 'node:util'

import type { Pod } from '#apis/core/v1.ts'
import { realClock, sleep } from '#lib/clock.ts'

import { IMAGE, whyNoContainerd } from '../integration/kubelet/containerd-bed.ts'
import { type KubeletBed, type Make, type RunningKubelet, startKubeletBed } from './kubelet-bed.ts'
import { ask, type Server } from './ours.ts'

const { values } = parseArgs({
  options: {
    steady: { type: 'string', default: '100' },
    burst: { type: 'string', default: '50' },
    idle: { type: 'string', default: '60' },
    make: { type: 'string', multiple: true, default: ['ours', 'upstream'] },
  },
})
const PODS = '/api/v1/namespaces/default/pods'
const say = (line: string): void => void process.stdout.write(`${line}\n`)

/** When each pod was ready, by name; on the clock of this process. */
class Watching {
  readonly readyMs = new Map<string, number>()
  readonly present = new Set<string>()
  readonly #request: ReturnType<typeof request>

  constructor({ port, tls }: Server) {
    const path = `${PODS}?watch=true`
    this.#request = request({ host: '127.0.0.1', port, path, agent: false, ...tls }, (answer) => {
      const lines = createInterface({ input: answer })
      lines.on('line', (line) => this.#learn(JSON.parse(line) as { type: string; object: Pod }))
      // Its end is ours.
      lines.on('error', () => undefined)
    })
    this.#request.on('error', () => undefined)
    this.#request.end()
  }

  #learn({ type, object: { metadata, status } }: { type: string; object: Pod }): void {
    const { name = '' } = metadata
    if (type === 'DELETED') return void this.present.delete(name)
    this.present.add(name)
    const isReady = status.conditions?.some((condition) => condition.type === 'Ready' && condition.status === 'True')
    if (isReady === true && !this.readyMs.has(name)) this.readyMs.set(name, realClock.elapsed())
  }

  async until(isSo: () => boolean): Promise<void> {
    for (let waitedMs = 0; !isSo(); waitedMs += 50) {
      if (waitedMs > 120_000) throw new Error('Pods do not become as they should')
      await sleep(realClock, 50)
    }
  }

  close(): void {
    this.#request.destroy()
  }
}

async function startPods(
  bed: KubeletBed,
  watching: Watching,
  names: readonly string[],
  gapMs: number,
): Promise<number[]> {
  const createdMs = new Map<string, number>()
  const container = { name: 'c', image: IMAGE, imagePullPolicy: 'Never', command: ['sleep', '1000000'] }
  const spec = {
    nodeName: bed.node,
    containers: [container],
    terminationGracePeriodSeconds: 1,
    automountServiceAccountToken: false,
  }
  const make = async (name: string): Promise<void> => {
    await bed.ask('POST', PODS, { metadata: { name }, spec })
    createdMs.set(name, realClock.elapsed())
  }
  const startedMs = realClock.elapsed()
  const making: Promise<void>[] = []
  for (const [at, name] of names.entries()) {
    await sleep(realClock, Math.max(startedMs + at * gapMs - realClock.elapsed(), 0))
    making.push(make(name))
  }
  await Promise.all(making)
  await watching
    .until(() => names.every((name) => watching.readyMs.has(name)))
    .catch(async (cause: unknown) => {
      const { items } = await bed.ask<{ items: Pod[] }>('GET', PODS)
      const late = items.filter(({ metadata }) => !watching.readyMs.has(metadata.name ?? ''))
      throw new Error(late.map(({ metadata, status }) => `${metadata.name}: ${JSON.stringify(status)}`).join('\n'), {
        cause,
      })
    })
  return names.map((name) => (watching.readyMs.get(name) ?? 0) - (createdMs.get(name) ?? 0)).sort((a, b) => a - b)
}

async function removePods(bed: KubeletBed, watching: Watching): Promise<void> {
  await bed.ask('DELETE', PODS)
  await watching.until(() => watching.present.size === 0)
}

const at = (sorted: readonly number[], share: number): number =>
  sorted[Math.min(Math.ceil(sorted.length * share) - 1, sorted.length - 1)] ?? 0

/** In seconds, of all its threads. */
async function processorSeconds({ child: { pid } }: RunningKubelet): Promise<number> {
  const stat = await readFile(`/proc/${pid}/stat`, 'utf8')
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  return (Number(fields[11]) + Number(fields[12])) / 100
}

async function residentMiB({ child: { pid } }: RunningKubelet): Promise<number> {
  const [, kib = '0'] = /^VmRSS:\s+(\d+) kB/m.exec(await readFile(`/proc/${pid}/status`, 'utf8')) ?? []
  return Number(kib) / 1024
}

/**
 * The requests to the server so far, by resource, from all clients; only the kubelet sends requests while pods idle.
 */
async function requests(server: Server): Promise<Map<string, number>> {
  const { body } = await ask(server, { path: '/metrics', accept: 'text/plain' })
  const counts = new Map<string, number>()
  for (const line of String(body).split('\n')) {
    if (!line.startsWith('apiserver_request_total{')) continue
    const label = (name: string): string => new RegExp(`[{,]${name}="([^"]*)"`).exec(line)?.[1] ?? ''
    const what = [label('verb'), label('resource'), label('subresource')].filter((part) => part !== '').join(' ')
    counts.set(what, (counts.get(what) ?? 0) + Number(line.slice(line.lastIndexOf(' ') + 1)))
  }
  return counts
}

function between(before: ReadonlyMap<string, number>, after: ReadonlyMap<string, number>): string {
  const changes = [...after].map(([what, count]) => [what, count - (before.get(what) ?? 0)] as const)
  return changes
    .filter(([what, count]) => count > 0 && what.trim() !== 'GET')
    .map(([what, count]) => `${what} ${count}`)
    .join(', ')
}

async function measure(bed: KubeletBed, make: Make): Promise<void> {
  const names = (kind: string, count: string): string[] =>
    Array.from({ length: Number(count) }, (_, index) => `${make}-${kind}-${index}`)
  const kubelet = await bed.start(make)
  const watching = new Watching(bed.server)
  const told = async (what: string, work: () => Promise<number[]>): Promise<void> => {
    const usedSeconds = await processorSeconds(kubelet)
    const took = await work()
    const seconds = (await processorSeconds(kubelet)) - usedSeconds
    const [half, most, all] = [at(took, 0.5), at(took, 0.99), at(took, 1)].map((ms) => `${Math.round(ms)} ms`)
    say(`${make}, ${what}: p50 ${half}, p99 ${most}, slowest ${all}; processor ${seconds.toFixed(1)} s`)
  }
  try {
    // The first starts are slower with either kubelet.
    await startPods(bed, watching, names('first', '3'), 0)
    await told(`${values.steady} pods, one a second`, () =>
      startPods(bed, watching, names('steady', values.steady), 1000),
    )
    await removePods(bed, watching)
    await told(`${values.burst} pods at once`, () => startPods(bed, watching, names('burst', values.burst), 0))
    await sleep(realClock, 20_000)
    const [used, asked, sent] = [await processorSeconds(kubelet), await requests(bed.server), bed.link.sentBytes]
    await sleep(realClock, Number(values.idle) * 1000)
    const seconds = (await processorSeconds(kubelet)) - used
    const share = ((seconds / Number(values.idle)) * 100).toFixed(1)
    const memory = Math.round(await residentMiB(kubelet))
    say(`${make}, ${values.burst} idle pods: memory ${memory} MiB, processor ${share} % of one`)
    const bytes = bed.link.sentBytes - sent
    say(`${make}, requests in ${values.idle} s: ${between(asked, await requests(bed.server))}; ${bytes} bytes sent`)
    await removePods(bed, watching)
  } finally {
    watching.close()
    await kubelet.stop('SIGTERM')
    await bed.ask('DELETE', `/api/v1/nodes/${bed.node}`)
  }
}

async function main(): Promise<void> {
  const fault = await whyNoContainerd()
  if (fault !== undefined) throw new Error(`There can be no containers here: ${fault}`)
  await using closing = new AsyncDisposableStack()
  const bed = await startKubeletBed('measured', closing)
  for (const make of values.make) await measure(bed, make as Make)
}

await main()
