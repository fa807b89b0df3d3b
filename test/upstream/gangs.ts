/**
 * Compares gang scheduling with upstream's kube-scheduler: `node test/upstream/gangs.ts [--seed N] [--cases N]`. Each
 * random cluster with groups and pods runs once with each scheduler, with the gates GenericWorkload and GangScheduling.
 * The script compares the placed pods of each group, the messages of the others, the victims, and the group's
 * condition.
 */
import { parseArgs } from 'node:util'

import { Nodes, Pods, type PodSpec } from '#apis/core/v1.ts'
import { PriorityClasses } from '#apis/scheduling/v1.ts'
import { PodGroups } from '#apis/scheduling/v1alpha2.ts'
import type { ApiClient } from '#client/api-client.ts'
import { realClock, sleep } from '#lib/clock.ts'
import { createSeededRandom } from '#lib/random.ts'
import { timeOf } from '#meta/time.ts'

import { Draw } from './draw.ts'
import { startPair } from './scheduler-pair.ts'

const { values: options } = parseArgs({
  options: { seed: { type: 'string', default: '1' }, cases: { type: 'string', default: '40' } },
})

const GATES = ['GenericWorkload', 'GangScheduling']
const OURS = 'ours'
const THEIRS = 'default-scheduler'
const LOOK_EVERY_MS = 20
/** Nothing has changed for so long: nothing will. Longer than the first back-offs. */
const CALM_MS = 2500
const namespace = 'default'

interface Group {
  readonly name: string
  readonly policy: { readonly basic?: object; readonly gang?: { readonly minCount: number } }
  readonly cpus: readonly number[]
  readonly priorityClassName?: string
}

interface Scene {
  /** CPUs of each node. */
  readonly nodes: readonly number[]
  /** Pods that are there before, by CPUs. */
  readonly fillers: readonly number[]
  readonly groups: readonly Group[]
}

/**
 * Where nodes are full, there is one gang that needs all of its few pods: with more, who has begun to go when the next is thought
 * of is up to chance, and what is said with it.
 */
function sceneOf(seed: number): Scene {
  const draw = new Draw(createSeededRandom(seed))
  const nodes = Array.from({ length: 1 + draw.below(5) }, () => 1 + draw.below(4))
  const isFull = draw.chance(0.3)
  const groups = Array.from({ length: isFull ? 1 : 1 + draw.below(3) }, (_, at): Group => {
    const size = 1 + draw.below(isFull ? 2 : 5)
    const cpu = draw.of([1, 1, 1, 2])
    const minCount = isFull ? size : Math.max(1, size - 1 + draw.below(3))
    return {
      name: `group-${at}`,
      policy: !isFull && draw.chance(0.2) ? { basic: {} } : { gang: { minCount } },
      cpus: Array.from({ length: size }, () => cpu),
      ...(isFull && draw.chance(0.7) && { priorityClassName: 'high' }),
    }
  })
  return { nodes, fillers: isFull ? nodes : [], groups }
}

async function play(client: ApiClient, scene: Scene, schedulerName: string): Promise<string[]> {
  for (const [at, cpu] of scene.nodes.entries()) await addNode(client, `node-${at}`, cpu)
  for (const [at, cpu] of scene.fillers.entries()) {
    const spec = { ...asking(cpu), nodeName: `node-${at}`, terminationGracePeriodSeconds: 30 }
    const name = `filler-${at}`
    await client.create(Pods, { metadata: { namespace, name }, spec })
    // Each began at a time of its own, so that who goes first is never up to chance.
    const value = { status: { phase: 'Running', startTime: timeOf(1e12 + at * 60_000) } }
    await client.patch(Pods, { namespace, name, subresource: 'status' }, { type: 'merge', value })
  }
  const said: string[] = []
  for (const { name, policy, cpus, priorityClassName } of scene.groups) {
    for (const [at, cpu] of cpus.entries()) {
      const own = priorityClassName === undefined ? {} : { priorityClassName }
      const spec = { ...asking(cpu), schedulerName, schedulingGroup: { podGroupName: name }, ...own }
      await client.create(Pods, {
        metadata: { namespace, name: `${name}-${at}`, labels: { group: name } },
        spec,
      })
    }
    // Both schedulers must know all pods before the group exists.
    await sleep(realClock, 200)
    const spec = { podGroupTemplateRef: null, schedulingPolicy: policy as never }
    await client.create(PodGroups, { metadata: { namespace, name }, spec })
    said.push(...(await told(client, name)).map((line) => `${name} ${line}`))
    if (await endGoing(client)) said.push(...(await told(client, name)).map((line) => `${name}, with room, ${line}`))
  }
  await clear(client)
  return said
}

const asking = (cpu: number): Pick<PodSpec, 'containers'> => ({
  containers: [{ name: 'c', image: 'i', resources: { requests: { cpu: String(cpu) } } }],
})

async function addNode(client: ApiClient, name: string, cpu: number): Promise<void> {
  await client.create(Nodes, { metadata: { name } })
  const allocatable = { cpu: String(cpu), memory: '64Gi', pods: '110' }
  const status = { allocatable, capacity: allocatable }
  await client.patch(Nodes, { name, subresource: 'status' }, { type: 'merge', value: { status } })
  await client.patch(Nodes, { name }, { type: 'merge', value: { spec: { taints: null } } })
}

/**
 * The messages about a group when nothing changes any more: those of its pods, without their source, and its
 * condition.
 */
async function told(client: ApiClient, name: string): Promise<string[]> {
  let [before, now] = ['', await sayings(client, name)]
  for (let calmMs = 0; calmMs < CALM_MS; calmMs += LOOK_EVERY_MS) {
    await sleep(realClock, LOOK_EVERY_MS)
    ;[before, now] = [now, await sayings(client, name)]
    if (before !== now) calmMs = 0
  }
  return now.split('\n')
}

async function sayings(client: ApiClient, name: string): Promise<string> {
  const { items } = await client.list(Pods, { namespace })
  const lines = items.map(({ metadata, spec, status }) => {
    const isOwn = metadata.labels?.['group'] === name
    if (!isOwn) return metadata.deletionTimestamp === undefined ? '' : `sends away ${metadata.name}`
    if ((spec.nodeName ?? '') !== '') return 'placed'
    const condition = status.conditions?.find(({ type }) => type === 'PodScheduled')
    const nominated = (status.nominatedNodeName ?? '') === '' ? '' : ' (nominated)'
    return `${condition?.reason}: ${condition?.message}${nominated}`
  })
  const { status } = await client.get(PodGroups, { namespace, name })
  const conditions = (status.conditions ?? []).map(({ type, status: is, reason, message }) =>
    [type, is, reason, message].join(' '),
  )
  return [...lines.filter((line) => line !== '').sort(), ...conditions].join('\n')
}

/** A group of which some are placed has been scheduled: upstream's program takes that back when its own news of it come late. */
function settled(lines: readonly string[]): string {
  const has = (group: string | undefined): boolean => lines.some((line) => line === `${group} placed`)
  return lines
    .map((line) =>
      line.includes(' PodGroupScheduled ') && has(line.split(' ', 1)[0]) ? `${line.split(' ', 1)[0]} scheduled` : line,
    )
    .join('\n')
}

/** Whether there was anybody. */
async function endGoing(client: ApiClient): Promise<boolean> {
  const { items } = await client.list(Pods, { namespace })
  const going = items.filter(({ metadata }) => metadata.deletionTimestamp !== undefined)
  for (const { metadata } of going)
    await client.delete(Pods, { namespace, name: metadata.name ?? '' }, { gracePeriodSeconds: 0 })
  return going.length > 0
}

async function clear(client: ApiClient): Promise<void> {
  await client.deleteCollection(Pods, { namespace }, { gracePeriodSeconds: 0 })
  await client.deleteCollection(PodGroups, { namespace })
  for (const { metadata } of (await client.list(PodGroups, { namespace })).items)
    await client.patch(
      PodGroups,
      { namespace, name: metadata.name ?? '' },
      { type: 'merge', value: { metadata: { finalizers: null } } },
    )
  await client.deleteCollection(Nodes, {})
  await sleep(realClock, 300)
}

async function main(): Promise<number> {
  const without = ['ServiceAccount', 'TaintNodesByCondition', 'DefaultTolerationSeconds']
  const pair = await startPair(without, {
    gates: GATES,
    serverFlags: ['--runtime-config=scheduling.k8s.io/v1alpha2=true'],
    placing: OURS,
  })
  let [groups, placed, differ] = [0, 0, 0]
  try {
    await pair.client.create(PriorityClasses, { metadata: { name: 'high' }, value: 1000 })
    for (let at = 0; at < Number(options.cases); at++) {
      const seed = Number(options.seed) + at
      const scene = sceneOf(seed)
      const theirs = await play(pair.client, scene, THEIRS)
      const ours = await play(pair.client, scene, OURS)
      groups += scene.groups.length
      placed += theirs.filter((line) => line.endsWith(' placed')).length
      if (settled(theirs) === settled(ours)) continue
      differ++
      process.stdout.write(`seed ${seed} ${JSON.stringify(scene)}\n  theirs\n    ${theirs.join('\n    ')}\n`)
      process.stdout.write(`  ours\n    ${ours.join('\n    ')}\n`)
    }
  } finally {
    await pair.stop()
  }
  process.stdout.write(
    `${options.cases} clusters, ${groups} groups, ${placed} pods placed, ${differ} clusters differ from upstream\n`,
  )
  return differ === 0 ? 0 : 1
}

process.exitCode = await main()
