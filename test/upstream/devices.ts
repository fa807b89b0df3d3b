/**
 * Compares device allocation with upstream's kube-scheduler: `node test/upstream/devices.ts [--seed N] [--clusters N]
 * [--pods N]`. Each pod is created with a scheduling gate and its claims, and our scheduler predicts its node and
 * allocation. Then the gate is removed and upstream's scheduler decides. The script compares the node, the allocation,
 * the feasible nodes and their scores, or the message.
 */
import { parseArgs } from 'node:util'

import { Namespaces, Nodes, type Pod, Pods } from '#apis/core/v1.ts'
import type { Kind } from '#apis/kinds.ts'
import {
  type AllocationResult,
  DeviceClasses,
  type ResourceClaim,
  ResourceClaims,
  ResourceSlices,
} from '#apis/resource/v1.ts'
import { DeviceTaintRules } from '#apis/resource/v1beta2.ts'
import { realClock, sleep } from '#lib/clock.ts'
import { createSeededRandom, type Random } from '#lib/random.ts'
import { type KubeObject, objectKey, semanticEqual } from '#meta/object.ts'
import { PodDevices } from '#scheduler/devices/pod-devices.ts'
import { explain } from '#scheduler/framework/explanation.ts'
import type { DryRunResult } from '#scheduler/scheduling-cycle/scheduling-cycle.ts'

import { CLASSES, type DeviceCase, deviceCase, SPACE } from './device-cases.ts'
import { type SchedulerPair, startPair } from './scheduler-pair.ts'

const { values: options } = parseArgs({
  options: {
    seed: { type: 'string', default: '1' },
    clusters: { type: 'string', default: '20' },
    pods: { type: 'string', default: '20' },
  },
})

const LOOK_EVERY_MS = 10
const SHOWN = 30
const KINDS: readonly Kind[] = [Nodes, ResourceSlices, DeviceTaintRules, ResourceClaims, DeviceClasses]

/**
 * A defect of upstream's scheduler. A pod has a claim and an extended resource, and the chosen node offers the resource through
 * a device plugin. PreBind then misses the mappings of a claim that is not needed, and fails each time. Ours binds the pod.
 */
const UPSTREAM_DEFECT = /nil or empty request mappings, no update of pod/

interface Decided {
  readonly node: string
  readonly message: string
}

class Comparison {
  readonly #pair: SchedulerPair
  readonly differences: string[] = []
  readonly #counts = { decisions: 0, placed: 0, claims: 0, points: 0, defects: 0 }

  constructor(pair: SchedulerPair) {
    this.#pair = pair
  }

  get summary(): string {
    const { decisions, placed, claims, points, defects } = this.#counts
    const counted = `${placed} placed, ${claims} claims, ${points} nodes with points`
    return `${decisions} decisions (${counted}), ${this.differences.length} differ, ${defects} listed with their reason`
  }

  async play(seed: number, podCount: number): Promise<void> {
    const { client } = this.#pair
    const drawn = deviceCase(seed, podCount)
    for (const { status, ...node } of drawn.nodes) {
      await client.create(Nodes, node)
      const name = node.metadata.name ?? ''
      await client.patch(Nodes, { name, subresource: 'status' }, { type: 'merge', value: { status } })
    }
    for (const slice of drawn.slices) await client.create(ResourceSlices, slice)
    for (const rule of drawn.rules) await client.create(DeviceTaintRules, rule)
    await this.#catchUp()
    // Upstream's has as long to see the same.
    await sleep(realClock, 300)
    const random = createSeededRandom(seed)
    for (const one of drawn.pods) {
      await this.#one(seed, one)
      if (random.float() < 0.4) await this.#free(random)
    }
    await this.#clear()
  }

  async #one(seed: number, { claims, pod: draft }: DeviceCase['pods'][0]): Promise<void> {
    const { client, ours, news } = this.#pair
    for (const claim of claims) await client.create(ResourceClaims, claim)
    const pod = await client.create(Pods, draft)
    await this.#catchUp()
    const considered = ours.dryRun(pod)
    if (considered === undefined) throw new Error('nobody decides about it')
    const { namespace, name = '' } = pod.metadata
    await client.patch(Pods, { namespace, name }, { type: 'merge', value: { spec: { schedulingGates: null } } })
    const theirs = await this.#decided(pod)
    const totals = pointsIn(await news(), `${namespace}/${name}`)
    this.#counts.decisions++
    const said =
      theirs.node === ''
        ? await compareRefusal(considered, theirs)
        : ((await this.#compareClaims(considered, theirs)) ?? this.#comparePoints(considered, totals))
    if (UPSTREAM_DEFECT.test(theirs.message)) this.#counts.defects++
    else if (said !== undefined) {
      const shown = [draft.spec?.resourceClaims, claims.map(({ spec }) => spec), draft.spec?.containers[0]?.resources]
      this.differences.push(`seed ${seed} ${name} ${said}\n    ${JSON.stringify(shown)}`)
    }
    if (theirs.node === '') await client.delete(Pods, { namespace, name }, { gracePeriodSeconds: 0 })
    else await until(() => ours.cluster.placed(pod.metadata.uid ?? '') === theirs.node)
  }

  /** Compares the allocations of claims that had none before. */
  async #compareClaims({ search }: DryRunResult, theirs: Decided): Promise<string | undefined> {
    this.#counts.placed++
    if (!search.feasible.some(({ name }) => name === theirs.node)) {
      const { reasons } = search.refused ?? search.refusals.get(theirs.node) ?? {}
      return `does not fit on ${theirs.node}: ${reasons?.join()}`
    }
    const found = search.cycleState.get('DynamicResources')
    const offered = found instanceof PodDevices ? found.offerOn(theirs.node) : []
    for (const [{ metadata, spec }, allocation] of offered) {
      this.#counts.claims++
      const got = await this.#stored(search.pod.pod, metadata.name ?? '')
      if (semanticEqual(plain(got?.status.allocation), plain(allocation)) && semanticEqual(got?.spec, spec)) continue
      return `${metadata.name} on ${theirs.node}\n    ${JSON.stringify(allocation)}\n    ${JSON.stringify(got?.status.allocation)}`
    }
    return undefined
  }

  /** The claim that schedulers make themselves has a name that only the pod knows. */
  async #stored({ metadata }: Pod, name: string): Promise<ResourceClaim | undefined> {
    const { client } = this.#pair
    const where = { namespace: SPACE, name: metadata.name ?? '' }
    if (!name.startsWith('<')) return client.get(ResourceClaims, { namespace: SPACE, name })
    const { status } = await client.get(Pods, where)
    const made = status.extendedResourceClaimStatus?.resourceClaimName
    return made === undefined ? undefined : client.get(ResourceClaims, { namespace: SPACE, name: made })
  }

  #comparePoints(ours: DryRunResult, totals: ReadonlyMap<string, number>): string | undefined {
    const { feasible } = ours.search
    this.#counts.points += totals.size
    const own = new Map(feasible.map(({ name }, at) => [name, sumAt(ours.scores, at)]))
    if (totals.size === 0) return own.size === 1 ? undefined : `fits on ${own.size} nodes, theirs on one`
    const isSame = totals.size === own.size && [...totals].every(([node, total]) => own.get(node) === total)
    return isSame ? undefined : `points ${JSON.stringify([...own])} for ${JSON.stringify([...totals])}`
  }

  async #decided({ metadata: { namespace, name = '' } }: Pod): Promise<Decided> {
    for (;;) {
      const { spec, status } = await this.#pair.client.get(Pods, { namespace, name })
      if ((spec.nodeName ?? '') !== '') return { node: spec.nodeName ?? '', message: '' }
      const condition = status.conditions?.find(({ type }) => type === 'PodScheduled')
      if (condition?.status === 'False' && condition.reason !== 'SchedulingGated')
        return { node: '', message: condition.message ?? '' }
      await sleep(realClock, LOOK_EVERY_MS)
    }
  }

  /** A pod goes with all that it has. */
  async #free(random: Random): Promise<void> {
    const { client } = this.#pair
    const { items } = await client.list(ResourceClaims, { namespace: SPACE })
    const used = items.filter(({ status }) => (status.reservedFor ?? []).length > 0)
    const claim = used[random.int(Math.max(used.length, 1))]
    if (claim === undefined) return
    for (const { name } of claim.status.reservedFor ?? [])
      await client.delete(Pods, { namespace: SPACE, name }, { gracePeriodSeconds: 0 }).catch(() => undefined)
    await client.updateStatus(ResourceClaims, { ...claim, status: {} })
  }

  /** Until ours has heard everything that is stored. */
  async #catchUp(): Promise<void> {
    const { client, ours } = this.#pair
    for (const kind of KINDS) {
      const { items } = await client.list(kind, {})
      const heard = ours.of(kind)
      const matchesEvent = (one: KubeObject): boolean =>
        heard.get(objectKey(one))?.metadata.resourceVersion === one.metadata.resourceVersion
      await until(() => heard.size === items.length && items.every(matchesEvent))
    }
  }

  async #clear(): Promise<void> {
    const { client } = this.#pair
    await client.deleteCollection(Pods, { namespace: SPACE }, { gracePeriodSeconds: 0 })
    const { items } = await client.list(ResourceClaims, { namespace: SPACE })
    for (const { metadata } of items) {
      const where = { namespace: SPACE, name: metadata.name ?? '' }
      await client.patch(ResourceClaims, where, { type: 'merge', value: { metadata: { finalizers: null } } })
    }
    await client.deleteCollection(ResourceClaims, { namespace: SPACE })
    await client.deleteCollection(ResourceSlices, {})
    await client.deleteCollection(DeviceTaintRules, {})
    await client.deleteCollection(Nodes, {})
    await this.#catchUp()
    await sleep(realClock, 100)
  }
}

async function compareRefusal(
  { search, nodes, postFilter }: DryRunResult,
  theirs: Decided,
): Promise<string | undefined> {
  const fits = search.feasible.map(({ name }) => name)
  if (fits.length > 0) return `fits on ${fits.join(' ')}, theirs: ${theirs.message}`
  if ([...search.refusals.values()].some(({ code }) => code === 'error')) return compareFaults(search, theirs)
  const { reasons = [] } = (await postFilter) ?? {}
  const message = explain(search, nodes, reasons)
  return theirs.message === message ? undefined : `says\n    ${message}\n    ${theirs.message}`
}

/** Of several nodes where something goes wrong, chance names one. */
function compareFaults({ cycleState, nodes }: DryRunResult['search'], theirs: Decided): string | undefined {
  const found = cycleState.get('DynamicResources')
  const faults = nodes.map((node) => {
    found?.resume?.()
    return `running "DynamicResources" filter plugin: ${found?.filter?.(node)?.reasons[0]}`
  })
  return faults.includes(theirs.message) ? undefined : `says\n    ${faults.join('\n    ')}\n    ${theirs.message}`
}

/** Without what is up to chance or time. */
function plain(allocation: AllocationResult | undefined): unknown {
  if (allocation === undefined) return undefined
  const { devices, nodeSelector } = allocation
  const results = (devices.results ?? []).map(({ shareID, ...one }) => ({ ...one, isShared: shareID !== undefined }))
  return { devices: { ...devices, results }, nodeSelector }
}

const SCORE = /"Calculated node's final score for pod" pod="([^"]+)" node="([^"]+)" score=(-?\d+)/

function pointsIn(log: string, pod: string): ReadonlyMap<string, number> {
  const totals = new Map<string, number>()
  for (const line of log.split('\n')) {
    const [, of, node = '', score = ''] = SCORE.exec(line) ?? []
    if (of === pod) totals.set(node, Number(score))
  }
  return totals
}

function sumAt(points: ReadonlyMap<string, readonly number[]>, at: number): number {
  let sum = 0
  for (const each of points.values()) sum += each[at] ?? 0
  return sum
}

async function until(isSo: () => boolean): Promise<void> {
  while (!isSo()) await sleep(realClock, LOOK_EVERY_MS)
}

async function main(): Promise<number> {
  const pair = await startPair(['ServiceAccount', 'TaintNodesByCondition', 'DefaultTolerationSeconds'], {
    gates: ['DRADeviceTaintRules'],
    serverFlags: ['--runtime-config=resource.k8s.io/v1beta2=true'],
  })
  try {
    await pair.client.create(Namespaces, { metadata: { name: SPACE } })
    for (const one of CLASSES) await pair.client.create(DeviceClasses, one)
    const comparison = new Comparison(pair)
    const first = Number(options.seed)
    for (let at = 0; at < Number(options.clusters); at++) await comparison.play(first + at, Number(options.pods))
    for (const one of comparison.differences.slice(0, SHOWN)) process.stdout.write(`${one}\n`)
    process.stdout.write(`${comparison.summary}\n`)
    return comparison.differences.length === 0 ? 0 : 1
  } finally {
    await pair.stop()
  }
}

process.exitCode = await main()
