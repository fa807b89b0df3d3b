/**
 * Compares single decisions with upstream's kube-scheduler. A pod is created with a scheduling gate, and our scheduler
 * predicts the decision. Then the gate is removed and upstream's scheduler decides. Feasible nodes and their scores, or
 * the message and the preemption victims, must be equal.
 */
import {
  Namespaces,
  type Node,
  Nodes,
  type PersistentVolume,
  type PersistentVolumeClaim,
  PersistentVolumeClaims,
  PersistentVolumes,
  type Pod,
  Pods,
} from '#apis/core/v1.ts'
import type { Kind } from '#apis/kinds.ts'
import { PodDisruptionBudgets } from '#apis/policy/v1.ts'
import { CSIDrivers, CSINodes, CSIStorageCapacities, StorageClasses, VolumeAttachments } from '#apis/storage/v1.ts'
import type { ApiClient } from '#client/api-client.ts'
import { realClock, sleep } from '#lib/clock.ts'
import { type KubeObject, objectKey } from '#meta/object.ts'
import { timeOf } from '#meta/time.ts'
import { explain } from '#scheduler/framework/explanation.ts'
import type { Candidate } from '#scheduler/framework/framework.ts'
import { isBetter } from '#scheduler/preemption/victims.ts'
import type { DryRunResult } from '#scheduler/scheduling-cycle/scheduling-cycle.ts'
import type { RunningScheduler } from '#scheduler/start.ts'

import { HOST, type Loose, NAMESPACES } from './draw.ts'
import type { SchedulerPair } from './scheduler-pair.ts'
import { PRIORITIES, type SchedulingCase, schedulingCase } from './scheduling-cases.ts'
import { type Given, PROVISIONER } from './scheduling-volumes.ts'

const LOOK_EVERY_MS = 5
const AT_ONCE = 25
/** Longer than the longest backoff. */
const PATIENCE_MS = 12_000
/** Below this number of candidates, upstream's preemption considers all of them; otherwise a random part. */
const ALL_CANDIDATES = 100
const SELECTED = 'volume.kubernetes.io/selected-node'
/** The kinds of objects that cases leave behind, in the order of their deletion. */
const GIVEN: readonly Kind[] = [
  VolumeAttachments,
  PersistentVolumeClaims,
  PersistentVolumes,
  CSIStorageCapacities,
  CSINodes,
  CSIDrivers,
  StorageClasses,
  PodDisruptionBudgets,
]

interface Decided {
  readonly node: string
  readonly message: string
  readonly nominated: string
}

/** Results of the decisions about pods with a common property. */
export interface Tally {
  decisions: number
  placed: number
  /** The number of nodes whose scores were compared. */
  points: number
  preempting: number
  differ: number
}

export class Comparison {
  readonly #client: ApiClient
  readonly #ours: RunningScheduler
  readonly #news: () => Promise<string>
  #started = 0
  readonly tallies: Map<string, Tally> = new Map()
  readonly differences: string[] = []

  constructor({ client, ours, news }: SchedulerPair) {
    this.#client = client
    this.#ours = ours
    this.#news = news
  }

  async prepare(): Promise<void> {
    for (const name of NAMESPACES) await this.#client.create(Namespaces, { metadata: { name, labels: { n: name } } })
    for (const [kind, object] of PRIORITIES) await this.#client.create(kind, object as KubeObject)
  }

  async play(seed: number, podCount: number): Promise<void> {
    const drawn = schedulingCase(seed, podCount)
    await together(drawn.nodes, (node) => this.#addNode(node))
    for (const one of drawn.given) await this.#give(one)
    await this.#untilBound()
    await together(drawn.placed, async (pod, at) => this.#begin(await this.#client.create(Pods, pod as Pod), at))
    this.#started = drawn.placed.length
    const { cluster } = this.#ours
    await until(() => cluster.nodes.length === drawn.nodes.length && cluster.podCount === drawn.placed.length)
    await this.#catchUp(GIVEN)
    // Gives upstream's scheduler time to receive the same events.
    await sleep(realClock, 300)
    for (const pod of drawn.pods) await this.#one(seed, drawn, pod as Pod)
    await this.#clear()
  }

  async #addNode({ status, ...node }: Loose<Node>): Promise<void> {
    const { metadata } = await this.#client.create(Nodes, node as Node)
    const { name = '' } = metadata
    await this.#client.patch(Nodes, { name, subresource: 'status' }, { type: 'merge', value: { status } })
    // The server taints new nodes as not ready.
    const taints = node.spec?.taints ?? null
    await this.#client.patch(Nodes, { name }, { type: 'merge', value: { spec: { taints } } })
  }

  async #give([kind, object]: Given): Promise<void> {
    const { status, ...rest } = object as KubeObject & { status?: object }
    const { namespace, name = '' } = (await this.#client.create(kind, rest)).metadata
    if (status === undefined) return
    const value = { status: { ...status, observedGeneration: 1 } }
    await this.#client.patch(kind, { namespace, name, subresource: 'status' }, { type: 'merge', value })
  }

  /** Waits until claims that name a volume are bound or lost. */
  async #untilBound(): Promise<void> {
    for (let isDone = false; !isDone;) {
      const { items } = await this.#client.list(PersistentVolumeClaims, {})
      isDone = items.every(({ spec, status }) => (spec.volumeName ?? '') === '' || status.phase !== 'Pending')
      if (!isDone) await sleep(realClock, LOOK_EVERY_MS)
    }
  }

  /** Sets distinct start times, so that the choice of preemption victims is not random. */
  async #begin({ metadata: { namespace, name = '' } }: Pod, at: number): Promise<void> {
    const value = { status: { phase: 'Running', startTime: timeOf(1e12 + at * 60_000) } }
    await this.#client.patch(Pods, { namespace, name, subresource: 'status' }, { type: 'merge', value })
  }

  /** Waits until our scheduler has received everything that is stored. */
  async #catchUp(kinds: readonly Kind[]): Promise<void> {
    for (const kind of kinds) {
      const heard = this.#ours.of(kind)
      const matchesEvent = (one: KubeObject): boolean =>
        heard.get(objectKey(one))?.metadata.resourceVersion === one.metadata.resourceVersion
      // The volume binder may write meanwhile, so the stored objects are listed again.
      for (let isAll = false; !isAll; await sleep(realClock, LOOK_EVERY_MS)) {
        const { items } = await this.#client.list(kind, {})
        isAll = heard.size === items.length && items.every(matchesEvent)
      }
    }
  }

  async #one(seed: number, drawn: SchedulingCase, draft: Pod): Promise<void> {
    const gated = { ...draft, spec: { ...draft.spec, schedulingGates: [{ name: 'later' }] } }
    const made = await this.#client.create(Pods, gated)
    const { namespace, name = '' } = made.metadata
    if (drawn.claims.length > 0) await this.#catchUp([PersistentVolumeClaims, PersistentVolumes])
    await until(() => this.#ours.of(Pods).get(`${namespace}/${name}`) !== undefined)
    const ours = this.#ours.dryRun(made)
    if (ours === undefined) throw new Error('our scheduler made no prediction for the pod')
    const value = { spec: { schedulingGates: null } }
    await this.#client.patch(Pods, { namespace, name }, { type: 'merge', value })
    const theirs = await this.#decided(made)
    const { totals, plugins } = await this.#points(`${namespace}/${name}`)
    const said =
      theirs.node === '' ? await this.#compareRefusal(ours, theirs) : comparePoints(ours, theirs, totals, plugins)
    for (const kind of ['all', drawn.flavour, ...kindsOf(draft, drawn)])
      this.#count(kind, { theirs, points: totals.size, differs: said !== undefined })
    if (said !== undefined)
      this.differences.push(`seed ${seed} ${namespace}/${name} ${said}\n    ${JSON.stringify(draft.spec)}`)
    await (theirs.node === '' ? this.#giveUp(seed, made, theirs) : this.#settle(made, theirs))
  }

  #count(kind: string, { theirs, points, differs }: { theirs: Decided; points: number; differs: boolean }): void {
    const tally = this.tallies.get(kind) ?? { decisions: 0, placed: 0, points: 0, preempting: 0, differ: 0 }
    tally.decisions++
    tally.points += points
    if (theirs.node !== '') tally.placed++
    if (theirs.nominated !== '') tally.preempting++
    if (differs) tally.differ++
    this.tallies.set(kind, tally)
  }

  async #settle(pod: Pod, { node }: Decided): Promise<void> {
    await this.#begin(pod, this.#started++)
    await until(() => this.#ours.cluster.placed(pod.metadata.uid ?? '') === node)
  }

  /** Deletes an unscheduled pod and its preemption victims; or only the victims, after which the pod is scheduled. */
  async #giveUp(seed: number, pod: Pod, { nominated }: Decided): Promise<void> {
    const { namespace, name = '' } = pod.metadata
    const isPlaced = nominated !== '' && pod.spec.volumes === undefined
    if (!isPlaced) await this.#client.delete(Pods, { namespace, name }, { gracePeriodSeconds: 0 })
    const views = nominated === '' ? [] : await this.#endGoing(isPlaced ? pod : undefined)
    if (!isPlaced) return
    const theirs = await this.#placed(pod)
    if (theirs.node === '' && (views.at(-1)?.search.feasible.length ?? 0) > 0) {
      // Its queueing hint requires that the deleted pod matches every term that rejected this pod, so it is retried
      // only after five minutes.
      this.#count('nominated, forgotten', { theirs, points: 0, differs: false })
      await this.#client.delete(Pods, { namespace, name }, { gracePeriodSeconds: 0 })
      return
    }
    const { totals, plugins } = await this.#points(`${namespace}/${name}`)
    const verdicts = views.map((ours) => comparePoints(ours, theirs, totals, plugins))
    const said = verdicts.includes(undefined) ? undefined : verdicts.at(-1)
    for (const kind of ['all', 'nominated'])
      this.#count(kind, { theirs, points: totals.size, differs: said !== undefined })
    if (said !== undefined) this.differences.push(`seed ${seed} ${namespace}/${name} after room was made ${said}`)
    await this.#settle(pod, theirs)
  }

  /**
   * Deletes the victims one by one and returns our prediction after each, because upstream may retry before all are
   * gone and choose another node.
   */
  async #endGoing(pod: Pod | undefined): Promise<DryRunResult[]> {
    const views: DryRunResult[] = []
    const { namespace, name = '' } = pod?.metadata ?? {}
    // Read before the deletions, because the pod may be scheduled after the first one.
    const waiting = pod === undefined ? undefined : await this.#client.get(Pods, { namespace, name })
    for (const { metadata } of await this.#going()) {
      const where = { namespace: metadata.namespace, name: metadata.name ?? '' }
      await this.#client.delete(Pods, where, { gracePeriodSeconds: 0 })
      await until(() => this.#ours.cluster.placed(metadata.uid ?? '') === undefined)
      if (waiting === undefined) continue
      const view = this.#ours.dryRun(waiting)
      if (view === undefined) throw new Error('our scheduler made no prediction for the pod')
      views.push(view)
    }
    return views
  }

  async #going(): Promise<Pod[]> {
    const { items } = await this.#client.list(Pods, {})
    return items.filter(({ metadata }) => metadata.deletionTimestamp !== undefined)
  }

  async #compareRefusal({ search, nodes, postFilter }: DryRunResult, theirs: Decided): Promise<string | undefined> {
    const fits = search.feasible.map(({ name }) => name)
    if (fits.length > 0) return `fits on ${fits.join(' ')}, theirs: ${theirs.message}`
    const { reasons = [], candidates = [] } = (await postFilter) ?? {}
    const message = explain(search, nodes, reasons)
    if (message !== theirs.message) return `says\n    ${message}\n    ${theirs.message}`
    if (theirs.nominated === '') return candidates.length > 0 ? `makes room on ${candidates[0]?.node}` : undefined
    return this.#compareVictims(candidates, theirs.nominated)
  }

  async #compareVictims(candidates: readonly Candidate[], node: string): Promise<string | undefined> {
    const own = candidates.find((one) => one.node === node)
    if (own === undefined) return candidates.length < ALL_CANDIDATES ? `makes no room on ${node}` : undefined
    const better = candidates.length < ALL_CANDIDATES ? candidates.find((one) => isBetter(one, own)) : undefined
    if (better !== undefined) return `would rather make room on ${better.node} than on ${node}`
    const names = own.victims.map(({ pod }) => objectKey(pod)).sort()
    let going: string[] = []
    for (let waitedMs = 0; going.length < names.length && waitedMs < 5000; waitedMs += LOOK_EVERY_MS) {
      await sleep(realClock, LOOK_EVERY_MS)
      going = (await this.#going()).map(objectKey)
    }
    const sent = going.sort().join(' ')
    return sent === names.join(' ') ? undefined : `sends away ${names.join(' ')}, theirs ${sent}`
  }

  async #decided(pod: Pod): Promise<Decided> {
    const { namespace, name = '' } = pod.metadata
    for (;;) {
      const { spec, status } = await this.#client.get(Pods, { namespace, name })
      const nominated = status.nominatedNodeName ?? ''
      if ((spec.nodeName ?? '') !== '') return { node: spec.nodeName ?? '', message: '', nominated: '' }
      const condition = status.conditions?.find(({ type }) => type === 'PodScheduled')
      if (condition?.status === 'False' && condition.reason !== 'SchedulingGated')
        return { node: '', message: condition.message ?? '', nominated }
      if ((spec.volumes ?? []).length > 0) await this.#provision()
      await sleep(realClock, LOOK_EVERY_MS)
    }
  }

  /** Waits for the node of the pod; an empty name after a timeout. */
  async #placed({ metadata: { namespace, name = '' } }: Pod): Promise<Decided> {
    for (let waitedMs = 0; ; waitedMs += LOOK_EVERY_MS) {
      const { nodeName: node = '' } = (await this.#client.get(Pods, { namespace, name })).spec
      if (node !== '' || waitedMs > PATIENCE_MS) return { node, message: '', nominated: '' }
      await sleep(realClock, LOOK_EVERY_MS)
    }
  }

  /** Creates a volume for each claim whose node the scheduler has selected. */
  async #provision(): Promise<void> {
    const { items } = await this.#client.list(PersistentVolumeClaims, {})
    const wanting = items.filter(
      ({ metadata, spec }) => metadata.annotations?.[SELECTED] !== undefined && (spec.volumeName ?? '') === '',
    )
    for (const claim of wanting) await this.#client.create(PersistentVolumes, madeFor(claim)).catch(() => undefined)
  }

  /** The scores of a pod in the log of upstream's scheduler since the previous call. */
  async #points(pod: string): Promise<{ totals: Map<string, number>; plugins: Map<string, string[]> }> {
    const totals = new Map<string, number>()
    const plugins = new Map<string, string[]>()
    for (const line of (await this.#news()).split('\n')) {
      const said = SCORE.exec(line)
      if (said === null || said[2] !== pod) continue
      const [, , , plugin, node = '', score = ''] = said
      if (plugin === undefined) totals.set(node, Number(score))
      else plugins.set(node, [...(plugins.get(node) ?? []), `${plugin}=${score}`])
    }
    return { totals, plugins }
  }

  async #clear(): Promise<void> {
    for (const namespace of NAMESPACES) {
      await this.#client.deleteCollection(Pods, { namespace }, { gracePeriodSeconds: 0 })
      for (const kind of GIVEN.filter(({ namespaced }) => namespaced))
        await this.#client.deleteCollection(kind, { namespace })
    }
    for (const kind of [...GIVEN.filter(({ namespaced }) => !namespaced), Nodes])
      await this.#client.deleteCollection(kind, {})
    await until(() => this.#ours.cluster.nodes.length === 0 && this.#ours.cluster.podCount === 0)
    await this.#catchUp(GIVEN)
    await sleep(realClock, 100)
  }
}

const SCORE =
  /"(Calculated node's final score for pod|Plugin scored node for pod)" pod="([^"]+)" (?:plugin="([^"]+)" )?node="([^"]+)" score=(-?\d+)/

function madeFor({ metadata, spec }: PersistentVolumeClaim): Pick<PersistentVolume, 'metadata' | 'spec'> {
  const { namespace = '', name = '', uid = '', annotations } = metadata
  const values = [annotations?.[SELECTED] ?? '']
  return {
    metadata: { name: `made-${uid}`, annotations: { 'pv.kubernetes.io/provisioned-by': PROVISIONER } },
    spec: {
      accessModes: spec.accessModes ?? [],
      capacity: spec.resources?.requests ?? {},
      storageClassName: spec.storageClassName ?? '',
      claimRef: { kind: 'PersistentVolumeClaim', apiVersion: 'v1', namespace, name, uid },
      hostPath: { path: '/nowhere' },
      nodeAffinity: {
        required: { nodeSelectorTerms: [{ matchExpressions: [{ key: HOST, operator: 'In', values }] }] },
      },
    },
  }
}

function comparePoints(
  ours: DryRunResult,
  theirs: Decided,
  totals: ReadonlyMap<string, number>,
  plugins: ReadonlyMap<string, readonly string[]>,
): string | undefined {
  const { search } = ours
  const own = new Map(search.feasible.map(({ name }, at) => [name, sumAt(ours.scores, at)]))
  if (!own.has(theirs.node)) {
    const { reasons } = search.refused ?? search.refusals.get(theirs.node) ?? {}
    return `does not fit on ${theirs.node}: ${reasons?.join()}`
  }
  // Upstream does not score a single feasible node.
  if (totals.size === 0) return own.size === 1 ? undefined : `fits on ${own.size} nodes, theirs on one`
  const wrong = [...totals].filter(([node, total]) => own.get(node) !== total)
  if (wrong.length === 0 && totals.size === own.size) return undefined
  const shown = wrong.slice(0, 3).map(([node, total]) => {
    return `${node}: ${own.get(node)} for ${total} (${pluginsAt(ours, node)}; ${plugins.get(node)?.join(' ')})`
  })
  return `points ${shown.join(', ')}; ${own.size} nodes for ${totals.size}`
}

/** The properties of a pod by which results are counted. */
function kindsOf({ metadata, spec }: Pod, { claims }: SchedulingCase): string[] {
  const used = (spec.volumes ?? []).flatMap(({ persistentVolumeClaim, gcePersistentDisk }) => {
    if (gcePersistentDisk !== undefined) return ['volumes: disk']
    const isIt = ({ namespace, name }: SchedulingCase['claims'][0]): boolean =>
      namespace === metadata.namespace && name === persistentVolumeClaim?.claimName
    return claims.filter(isIt).map(({ sort }) => `volumes: ${sort}`)
  })
  const { affinity, containers } = spec
  const is: Readonly<Record<string, boolean>> = {
    priority: (spec.priorityClassName ?? '') !== '',
    'node affinity': spec.nodeSelector !== undefined || affinity?.nodeAffinity !== undefined,
    'pod affinity': affinity?.podAffinity !== undefined || affinity?.podAntiAffinity !== undefined,
    spread: spec.topologySpreadConstraints !== undefined,
    tolerations: spec.tolerations !== undefined,
    ports: containers.some(({ ports }) => ports !== undefined),
  }
  return [...Object.keys(is).filter((kind) => is[kind]), ...new Set(used)]
}

/** Creates objects with limited concurrency. */
async function together<T>(all: readonly T[], make: (one: T, at: number) => Promise<void>): Promise<void> {
  for (let from = 0; from < all.length; from += AT_ONCE)
    await Promise.all(all.slice(from, from + AT_ONCE).map((one, at) => make(one, from + at)))
}

async function until(isSo: () => boolean): Promise<void> {
  while (!isSo()) await sleep(realClock, LOOK_EVERY_MS)
}

function sumAt(points: ReadonlyMap<string, readonly number[]>, at: number): number {
  let sum = 0
  for (const each of points.values()) sum += each[at] ?? 0
  return sum
}

function pluginsAt({ search, scores }: DryRunResult, node: string): string {
  const at = search.feasible.findIndex(({ name }) => name === node)
  return Array.from(scores, ([plugin, each]) => `${plugin}=${each[at]}`).join(' ')
}
