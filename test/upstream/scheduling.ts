/**
 * Decisions beside upstream's kube-scheduler: `node test/upstream/scheduling.ts [--seed N] [--clusters N] [--pods N]`. Clusters and
 * pods by chance; upstream's program decides about one pod after the other on our server and tells its points for every node
 * (verbosity 10); ours is asked what it would have decided with the same in view. Compared: which nodes fit, the points of each,
 * and the message when none does.
 */
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'

import { Namespaces, type Node, Nodes, type Pod, Pods } from '#apis/core/v1.ts'
import { ApiClient } from '#client/api-client.ts'
import { createGates } from '#control-plane/flags/gates.ts'
import { realClock, sleep } from '#lib/clock.ts'
import { createHttpClient } from '#lib/http/client.ts'
import { createSeededRandom } from '#lib/random.ts'
import { explain } from '#scheduler/explanation.ts'
import { DEFAULT_PROFILE } from '#scheduler/profiles.ts'
import type { Consideration } from '#scheduler/scheduler.ts'
import { type RunningScheduler, startScheduler } from '#scheduler/start.ts'
import { errorLog } from '#testing/control-plane.ts'

import { end, launch } from './kube-apiserver.ts'
import { type Server, startOurs, writeKubeconfig } from './ours.ts'
import { upstreamPrograms } from './programs.ts'
import { schedulingCase, SPACES } from './scheduling-cases.ts'

const { values: options } = parseArgs({
  options: {
    seed: { type: 'string', default: '1' },
    clusters: { type: 'string', default: '50' },
    pods: { type: 'string', default: '40' },
  },
})

const LOOK_EVERY_MS = 5
const SHOWN = 40

interface Decided {
  readonly node: string
  readonly message: string
}

class Comparison {
  readonly #client: ApiClient
  readonly #ours: RunningScheduler
  readonly #log: string
  #read = 0
  compared = 0
  /** How many nodes had their points compared, and how many pods fitted nowhere. */
  points = 0
  nowhere = 0
  readonly differences: string[] = []

  constructor(client: ApiClient, ours: RunningScheduler, log: string) {
    this.#client = client
    this.#ours = ours
    this.#log = log
  }

  get summary(): string {
    const { compared, points, nowhere, differences } = this
    return `${compared} decisions (${points} nodes with points, ${nowhere} nowhere), ${differences.length} differ`
  }

  async play(seed: number, podCount: number): Promise<void> {
    const { nodes, placed, pods } = schedulingCase(seed, podCount)
    for (const { status, ...node } of nodes) {
      const made = await this.#client.create(Nodes, node as Node)
      const where = { name: made.metadata.name ?? '', subresource: 'status' }
      await this.#client.patch(Nodes, where, { type: 'merge', value: { status } })
      // The server keeps new nodes free until somebody says that they are ready.
      await this.#client.patch(
        Nodes,
        { name: where.name },
        { type: 'merge', value: { spec: { taints: node.spec?.taints ?? null } } },
      )
    }
    for (const pod of placed) await this.#client.create(Pods, pod as Pod)
    await this.#until(
      () => this.#ours.cluster.nodes.length === nodes.length && this.#ours.cluster.podCount === placed.length,
    )
    // Upstream's has as long to see the same.
    await sleep(realClock, 200)
    for (const pod of pods) await this.#one(seed, pod as Pod)
    await this.#clear()
  }

  async #one(seed: number, draft: Pod): Promise<void> {
    const made = await this.#client.create(Pods, draft)
    const { namespace, name = '' } = made.metadata
    const theirs = await this.#decided(made)
    await this.#until(() => theirs.node === '' || this.#ours.cluster.placed(made.metadata.uid ?? '') === theirs.node)
    const ours = this.#ours.consider(made)
    this.compared++
    if (ours === undefined) throw new Error('nobody decides about it')
    const said =
      theirs.node === ''
        ? this.#compareRefusal(ours, theirs)
        : await this.#comparePoints(ours, theirs, `${namespace}/${name}`)
    if (said !== undefined)
      this.differences.push(`seed ${seed} ${namespace}/${name} ${said}\n    ${JSON.stringify(draft.spec)}`)
    if (theirs.node === '') await this.#client.delete(Pods, { namespace, name }, { gracePeriodSeconds: 0 })
  }

  #compareRefusal({ search, nodes }: Consideration, theirs: Decided): string | undefined {
    this.nowhere++
    const fits = search.feasible.map(({ name }) => name)
    if (fits.length > 0) return `fits on ${fits.join(' ')}, theirs: ${theirs.message}`
    const message = explain(search, nodes, [])
    return theirs.message.startsWith(message) ? undefined : `says\n    ${message}\n    ${theirs.message}`
  }

  async #comparePoints(ours: Consideration, theirs: Decided, pod: string): Promise<string | undefined> {
    const { search } = ours
    const { totals, plugins } = await this.#points(pod)
    this.points += totals.size
    const own = new Map(search.feasible.map(({ name }, at) => [name, sumAt(ours.points, at)]))
    if (!own.has(theirs.node))
      return `does not fit on ${theirs.node}: ${search.refusals.get(theirs.node)?.reasons.join()}`
    // A single node that fits gets no points.
    if (totals.size === 0) return own.size === 1 ? undefined : `fits on ${own.size} nodes, theirs on one`
    const wrong = [...totals].filter(([node, total]) => own.get(node) !== total)
    if (wrong.length === 0 && totals.size === own.size) return undefined
    const shown = wrong.slice(0, 3).map(([node, total]) => {
      return `${node}: ${own.get(node)} for ${total} (${pluginsAt(ours, node)}; ${plugins.get(node)?.join(' ')})`
    })
    return `points ${shown.join(', ')}; ${own.size} nodes for ${totals.size}`
  }
  async #decided({ metadata: { namespace, name = '' } }: Pod): Promise<Decided> {
    for (;;) {
      const { spec, status } = await this.#client.get(Pods, { namespace, name })
      if ((spec.nodeName ?? '') !== '') return { node: spec.nodeName ?? '', message: '' }
      const condition = status.conditions?.find(({ type }) => type === 'PodScheduled')
      if (condition?.status === 'False') return { node: '', message: condition.message ?? '' }
      await sleep(realClock, LOOK_EVERY_MS)
    }
  }

  /** What upstream's said about a pod in its log since the last one. */
  async #points(pod: string): Promise<{ totals: Map<string, number>; plugins: Map<string, string[]> }> {
    const text = await readFile(this.#log, 'utf8')
    const fresh = text.slice(this.#read)
    this.#read = text.length
    const totals = new Map<string, number>()
    const plugins = new Map<string, string[]>()
    for (const line of fresh.split('\n')) {
      const said =
        /"(Calculated node's final score for pod|Plugin scored node for pod)" pod="([^"]+)" (?:plugin="([^"]+)" )?node="([^"]+)" score=(-?\d+)/.exec(
          line,
        )
      if (said === null || said[2] !== pod) continue
      const [, , , plugin, node = '', score = ''] = said
      if (plugin === undefined) totals.set(node, Number(score))
      else plugins.set(node, [...(plugins.get(node) ?? []), `${plugin}=${score}`])
    }
    return { totals, plugins }
  }

  async #clear(): Promise<void> {
    for (const namespace of SPACES) await this.#client.deleteCollection(Pods, { namespace }, { gracePeriodSeconds: 0 })
    await this.#client.deleteCollection(Nodes, {})
    await this.#until(() => this.#ours.cluster.nodes.length === 0 && this.#ours.cluster.podCount === 0)
    await sleep(realClock, 100)
  }

  async #until(isSo: () => boolean): Promise<void> {
    while (!isSo()) await sleep(realClock, LOOK_EVERY_MS)
  }
}

function sumAt(points: ReadonlyMap<string, readonly number[]>, at: number): number {
  let sum = 0
  for (const each of points.values()) sum += each[at] ?? 0
  return sum
}

function pluginsAt({ search, points }: Consideration, node: string): string {
  const at = search.feasible.findIndex(({ name }) => name === node)
  return Array.from(points, ([plugin, each]) => `${plugin}=${each[at]}`).join(' ')
}

function clientOf({ port, tls }: Server): ApiClient {
  const { ca, cert, key } = tls
  const transport = createHttpClient({ clock: realClock, tls: { ca, certificate: cert, key } })
  return new ApiClient({ transport, server: `https://127.0.0.1:${port}`, clock: realClock, userAgent: 'scheduling' })
}

/** Upstream's program, with every node looked at, nothing held back, and its points in the log. */
async function startTheirs(folder: string, server: Server): Promise<{ log: string; stop(): Promise<void> }> {
  const say = (line: string): boolean => process.stderr.write(`${line}\n`)
  const { 'kube-scheduler': program } = await upstreamPrograms(['kube-scheduler'], say)
  const kubeconfig = await writeKubeconfig(join(folder, 'kubeconfig'), server)
  const config = join(folder, 'config.json')
  await writeFile(
    config,
    JSON.stringify({
      apiVersion: 'kubescheduler.config.k8s.io/v1',
      kind: 'KubeSchedulerConfiguration',
      percentageOfNodesToScore: 100,
      leaderElection: { leaderElect: false },
      clientConnection: { kubeconfig, qps: 1000, burst: 1000 },
    }),
  )
  const log = join(folder, 'scheduler.log')
  const child = await launch(program, [`--config=${config}`, '--secure-port=0', '-v=10'], log)
  return { log, stop: () => end(child, 'SIGTERM') }
}

/** Ours, which only looks: it places nobody's pods. */
function startLooking(server: Server): { running: RunningScheduler; stop(): Promise<void> } {
  const stop = new AbortController()
  const running = startScheduler({
    client: clientOf(server),
    clock: realClock,
    random: createSeededRandom(1),
    log: errorLog(),
    signal: stop.signal,
    isEnabled: createGates(new Map()),
    host: 'ours',
    profiles: [{ ...DEFAULT_PROFILE, percentageOfNodesToScore: 100 }],
    isOurs: () => false,
  })
  return { running, stop: () => (stop.abort(), running.ended()) }
}

async function main(): Promise<number> {
  const folder = await mkdtemp(join(tmpdir(), 'hyperkube-scheduling-'))
  const off = 'ServiceAccount,TaintNodesByCondition,DefaultTolerationSeconds'
  const server = await startOurs(folder, [`--disable-admission-plugins=${off}`])
  const theirs = await startTheirs(folder, server)
  const ours = startLooking(server)
  try {
    await ours.running.synced
    const client = clientOf(server)
    for (const name of SPACES) await client.create(Namespaces, { metadata: { name, labels: { n: name } } })
    const comparison = new Comparison(client, ours.running, theirs.log)
    const first = Number(options.seed)
    for (let at = 0; at < Number(options.clusters); at++) await comparison.play(first + at, Number(options.pods))
    for (const one of comparison.differences.slice(0, SHOWN)) process.stdout.write(`${one}\n`)
    process.stdout.write(`${comparison.summary}\n`)
    return comparison.differences.length === 0 ? 0 : 1
  } finally {
    await ours.stop()
    await theirs.stop()
    await server.stop()
    await rm(folder, { recursive: true, force: true })
  }
}

process.exitCode = await main()
