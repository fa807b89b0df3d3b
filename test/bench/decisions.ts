/**
 * Benchmarks single scheduling decisions without an API server. Pods like those of scheduler_perf get a node one after
 * the other, in a cluster of ten pods per node.
 */
import type { Node, Pod } from '#apis/core/v1.ts'
import type { Kind } from '#apis/kinds.ts'
import type { ApiClient } from '#client/api-client.ts'
import { Informer } from '#client/informer.ts'
import { realClock } from '#lib/clock.ts'
import { createSeededRandom } from '#lib/random.ts'
import type { KubeObject } from '#meta/object.ts'
import { Cluster } from '#scheduler/cluster/cluster.ts'
import { Nominations } from '#scheduler/cluster/nominations.ts'
import { PodInfo } from '#scheduler/cluster/pod-info.ts'
import { Decider } from '#scheduler/decision/decision.ts'
import type { Handle } from '#scheduler/framework/framework.ts'
import { createProfile, DEFAULT_PROFILE } from '#scheduler/profiles.ts'

import type { Figures } from './table.ts'

export interface Shape {
  readonly name: string
  readonly spec: object
  /** Of those that are there before, which want nothing then. */
  readonly labels?: Readonly<Record<string, string>>
}

export interface Samples {
  readonly node: (name: string, at: number) => object
  readonly pod: (name: string, spec: object) => object
}

const SIZES = [500, 5000] as const
const PODS_A_NODE = 10
/** Together fewer than nodes: pods that keep apart need one each. */
const WARM_UP = 150
const COUNTED = 300

export function costOfDecisions(shapes: readonly Shape[], samples: Samples): Figures {
  // For the compiler.
  for (const shape of shapes) measure(shape, SIZES[0], samples)
  const rows = shapes.map((shape) => {
    const [small = 0, large = 0] = SIZES.map((nodes) => measure(shape, nodes, samples))
    return { name: shape.name, values: [small, large, large / small] }
  })
  const columns = ['', ...SIZES.map((nodes) => `${nodes} x ${nodes * PODS_A_NODE}, us`), 'ratio']
  return {
    title: 'one decision, by nodes x pods (of 500 nodes 230 are scored, of 5,000 nodes 500, as upstream has it)',
    columns,
    rows,
  }
}

/** Microseconds of a processor for one, from the pod as it was read to its place. */
function measure(shape: Shape, nodes: number, { node, pod }: Samples): number {
  const cluster = new Cluster(() => undefined)
  const nominations = new Nominations()
  const random = createSeededRandom(1)
  const podOf = (name: string, labels?: Shape['labels']): PodInfo => {
    const made = pod(name, labels === undefined ? shape.spec : {}) as Pod
    const metadata = { namespace: 'bench', uid: name, ...made.metadata, ...(labels !== undefined && { labels }) }
    return new PodInfo({ ...made, metadata, status: {} })
  }
  for (let at = 0; at < nodes; at++) cluster.setNode(node(`node-${at}`, at) as Node)
  for (let at = 0; at < nodes * PODS_A_NODE; at++)
    cluster.setPod(podOf(`before-${at}`, shape.labels), `node-${at % nodes}`)
  const decider = new Decider(createProfile(DEFAULT_PROFILE, handleOf(cluster, nominations)), {
    cluster,
    nominations,
    random,
  })
  let before = process.threadCpuUsage()
  for (let at = 0; at < WARM_UP + COUNTED; at++) {
    if (at === WARM_UP) before = process.threadCpuUsage()
    const info = podOf(`pod-${at}`)
    const search = decider.search(info)
    if (search.feasible.length === 0) throw new Error(`"${shape.name}" fits nowhere`)
    cluster.assume(info, decider.best(search).name)
  }
  const { user, system } = process.threadCpuUsage(before)
  return (user + system) / COUNTED
}

/** Of what plugins ask for: collections with nothing in them. */
function handleOf(cluster: Cluster, nominations: Nominations): Handle {
  const random = createSeededRandom(1)
  const client = { clock: realClock } as ApiClient
  const indexes = { namespace: ({ metadata }: KubeObject) => [metadata.namespace ?? ''] }
  const nothing = new Map<Kind, Informer<never>>()
  const of = (kind: Kind): Informer<never> =>
    nothing.getOrInsertComputed(
      kind,
      () => new Informer<KubeObject>({ client, kind, random, indexes, onError: () => undefined }) as never,
    )
  return { cluster, nominations, random, client, of, clock: realClock, isEnabled: () => false } as unknown as Handle
}
