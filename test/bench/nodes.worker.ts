/**
 * A whole cluster in this process: server with its objects on disk, controllers, scheduler, simulated nodes. Says, as JSON
 * lines, when nodes are ready, pods run and pods are gone, and what that has cost.
 */
import { performance } from 'node:perf_hooks'

import { Nodes, type Pod, Pods } from '#apis/core/v1.ts'
import { follow } from '#client/follow.ts'
import { CONTROLLERS } from '#controllers/index.ts'
import { startSimulatedNodes } from '#kubelet/simulated/start.ts'
import { realClock, sleep } from '#lib/clock.ts'
import { secureRandom } from '#lib/random.ts'
import { isReady } from '#model/pods.ts'
import { errorLog, startControlPlane } from '#testing/control-plane.ts'
import { startControllers } from '#testing/controllers.ts'
import { startTestScheduler } from '#testing/scheduler.ts'

const [datastore = 'memory', nodeCount = '100', podCount = '200', events = 'events'] = process.argv.slice(2)
const [nodes, pods] = [Number(nodeCount), Number(podCount)]
const namespace = 'default'
/** How many pods are created at a time. */
const PARALLEL = 64

await using closing = new AsyncDisposableStack()
const plane = await startControlPlane({ settings: { datastore }, random: secureRandom })
closing.defer(() => plane.stop())
const manager = closing.use(startControllers(plane, realClock, CONTROLLERS))
const { client } = manager
closing.use(await startTestScheduler(plane, realClock))
const ending = new AbortController()

let lastMs = performance.now()
let lastCpu = process.cpuUsage()
function tell(what: string): void {
  const { user, system } = process.cpuUsage(lastCpu)
  const residentMb = process.memoryUsage().rss / 2 ** 20
  const figures = { what, seconds: (performance.now() - lastMs) / 1000, cpuSeconds: (user + system) / 1e6, residentMb }
  process.stdout.write(`${JSON.stringify(figures)}\n`)
  lastMs = performance.now()
  lastCpu = process.cpuUsage()
}

closing.use(
  await startSimulatedNodes({
    connect: (user) => ({ transport: plane.running.server.clientAs(user) }),
    clock: realClock,
    random: secureRandom,
    log: errorLog(),
    nodes,
    events: events === 'events',
  }),
)
tell('nodes registered')
for (;;) {
  const { items } = await client.list(Nodes)
  if (items.every(({ spec }) => spec.taints === undefined)) break
  await sleep(realClock, 200)
}
tell('nodes ready')

const seen = countPods()
await inParallel((at) =>
  client.create(Pods, {
    metadata: { namespace, name: `pod-${at}`, labels: { app: 'bench' } },
    spec: { containers: [{ name: 'c', image: 'img:1', resources: { requests: { cpu: '10m', memory: '10Mi' } } }] },
  }),
)
tell('pods created')
await seen.until(({ ready }) => ready === pods)
tell('pods running')
await sleep(realClock, 20_000)
tell('20 s of nothing')
// One by one: all in one request takes longer than a request may.
await inParallel((at) => client.delete(Pods, { namespace, name: `pod-${at}` }))
await seen.until(({ there }) => there === 0)
tell('pods deleted')
ending.abort()

async function inParallel(work: (at: number) => Promise<unknown>): Promise<void> {
  let next = 0
  const worker = async (): Promise<void> => {
    while (next < pods) await work(next++)
  }
  await Promise.all(Array.from({ length: PARALLEL }, worker))
}

interface Count {
  there: number
  ready: number
}

function countPods(): { until(isReached: (count: Count) => boolean): Promise<void> } {
  const known = new Map<string, boolean>()
  const count: Count = { there: 0, ready: 0 }
  const note = (name: string, ready: boolean | undefined): void => {
    const was = known.get(name)
    count.there += (ready === undefined ? 0 : 1) - (was === undefined ? 0 : 1)
    count.ready += Number(ready ?? false) - Number(was ?? false)
    if (ready === undefined) known.delete(name)
    else known.set(name, ready)
  }
  const failed = (error: unknown): void => void process.stderr.write(`${String(error)}\n`)
  void follow<Pod>(
    { client, kind: Pods, random: secureRandom, signal: ending.signal },
    {
      replace: (all) => all.forEach((pod) => note(pod.metadata.name ?? '', isReady(pod))),
      change: ({ type, object }) => note(object.metadata.name ?? '', type === 'DELETED' ? undefined : isReady(object)),
      failed,
    },
  )
  return {
    async until(isReached) {
      while (!isReached(count)) await sleep(realClock, 20)
    },
  }
}
