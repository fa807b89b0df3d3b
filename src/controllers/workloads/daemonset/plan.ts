/**
 * Plans which nodes of a DaemonSet need a pod and which pods to delete. Pure. First each node gets one pod; then old
 * pods are replaced within `maxUnavailable`, or surged within `maxSurge`.
 */
import type { DaemonSet, DaemonSetStatus } from '#apis/apps/v1.ts'
import type { Node, Pod } from '#apis/core/v1.ts'
import type { EventNote } from '#client/events/event-recorder.ts'
import { scaledValue } from '#meta/int-or-string.ts'
import { isBeingDeleted } from '#meta/object.ts'
import type { tolerates } from '#model/nodes/fit.ts'
import { isAvailable, isReady } from '#model/pods.ts'

import { byAge, fitOf, HASH, isUpdated } from './pods.ts'

/** The input of a plan. */
export interface PlanInput {
  readonly set: DaemonSet
  readonly nodes: readonly Node[]
  /** By node, without finished pods that are being deleted. */
  readonly pods: ReadonlyMap<string, readonly Pod[]>
  readonly hash: string
  readonly nowMs: number
  /** Default: without numeric operators. */
  readonly isTolerated?: typeof tolerates
}

export interface DaemonPlan {
  readonly missing: readonly string[]
  readonly surplus: readonly Pod[]
  readonly notes: readonly EventNote[]
  /** The time until failed pods may be replaced. */
  readonly waitMs?: number
}

/** The time until a failed pod on the node may be replaced; 0 counts as one more replacement. */
export type FailureWait = (node: string) => number

interface Part {
  readonly missing?: readonly string[]
  readonly surplus?: readonly Pod[]
  readonly notes?: readonly EventNote[]
  readonly waitMs?: number
}

export function planNodes(scene: PlanInput, failureWait: FailureWait): DaemonPlan {
  const known = new Set(scene.nodes.map(({ metadata }) => metadata.name ?? ''))
  const lost = [...scene.pods]
    .filter(([node]) => !known.has(node))
    .flatMap(([, pods]) => pods.filter(({ spec }) => (spec.nodeName ?? '') === ''))
  return merged([...scene.nodes.map((node) => planNode(scene, node, failureWait)), { surplus: lost }])
}

function merged(parts: readonly Part[]): DaemonPlan {
  const waits = parts.flatMap(({ waitMs }) => (waitMs === undefined ? [] : [waitMs]))
  return {
    missing: parts.flatMap(({ missing = [] }) => missing),
    surplus: parts.flatMap(({ surplus = [] }) => surplus),
    notes: parts.flatMap(({ notes = [] }) => notes),
    ...(waits.length > 0 && { waitMs: Math.min(...waits) }),
  }
}

function planNode(scene: PlanInput, node: Node, failureWait: FailureWait): Part {
  const { name = '' } = node.metadata
  const { shouldRun, mayStay } = fitOf(scene.set, node, scene.isTolerated)
  const pods = scene.pods.get(name)
  if (shouldRun && pods === undefined) return { missing: [name] }
  const live = (pods ?? []).filter((pod) => !isBeingDeleted(pod))
  if (!mayStay) return { surplus: live }
  const ended = live.map((pod) => planEnded(pod, name, failureWait)).filter((part) => part !== undefined)
  const running = byAge(live.filter(({ status }) => status.phase !== 'Failed' && status.phase !== 'Succeeded'))
  if (surgeOf(scene.set, 1) === 0) return merged([...ended, { surplus: running.slice(1) }])
  if (running.length === 0 && shouldRun) return merged([...ended, { missing: [name] }])
  return merged([...ended, { surplus: replacedPods(scene, running) }])
}

function planEnded(pod: Pod, node: string, failureWait: FailureWait): Part | undefined {
  const { namespace, name } = pod.metadata
  const about = `daemon pod ${namespace}/${name} on node ${node}`
  if (pod.status.phase === 'Succeeded') {
    const message = `Found succeeded ${about}, will try to delete it`
    return { surplus: [pod], notes: [{ type: 'Normal', reason: 'SucceededDaemonPod', message }] }
  }
  if (pod.status.phase !== 'Failed') return undefined
  const waitMs = failureWait(node)
  if (waitMs > 0) return { waitMs }
  const message = `Found failed ${about}, will try to kill it`
  return { surplus: [pod], notes: [{ type: 'Warning', reason: 'FailedDaemonPod', message }] }
}

/** With a surge, a node may have an old and a new pod; the old one goes once the new one is available. */
function replacedPods({ hash, set, nowMs }: PlanInput, running: readonly Pod[]): Pod[] {
  const isNew = ({ metadata }: Pod): boolean => metadata.labels?.[HASH] === hash
  const [fresh, old] = [running.find(isNew), running.find((pod) => !isNew(pod))]
  const more = running.filter((pod) => pod !== fresh && pod !== old)
  if (fresh === undefined || old === undefined) return more
  const isReplaced = !isReady(old) || isAvailable(fresh, set.spec.minReadySeconds ?? 0, nowMs)
  return isReplaced ? [...more, old] : more
}

/** The next step of a rolling update. */
export function planUpdate(scene: PlanInput): Pick<DaemonPlan, 'missing' | 'surplus'> {
  const { set, nodes, isTolerated } = scene
  const fitting = nodes.filter((node) => fitOf(set, node, isTolerated).shouldRun)
  const wanted = new Set(fitting.map(({ metadata }) => metadata.name ?? ''))
  const surge = surgeOf(set, wanted.size)
  const spots = [...new Set([...scene.pods.keys(), ...wanted])].map((node) => nodePodsOf(scene, node, wanted.has(node)))
  if (surge > 0) return planSurge(spots, surge, wanted.size)
  const loss = scaledValue(set.spec.updateStrategy.rollingUpdate?.maxUnavailable ?? 1, wanted.size, 'up')
  return planLoss(spots, wanted.size > 0 && loss === 0 ? 1 : loss)
}

export function surgeOf({ spec: { updateStrategy } }: DaemonSet, nodes: number): number {
  if (updateStrategy.type !== 'RollingUpdate') return 0
  return scaledValue(updateStrategy.rollingUpdate?.maxSurge ?? 0, nodes, 'up')
}

interface NodePods {
  readonly node: string
  readonly isWanted: boolean
  /** Several old or several new pods: the first phase must remove the surplus. */
  readonly isCrowded: boolean
  readonly fresh: Pod | undefined
  readonly old: Pod | undefined
  readonly freshAvailable: boolean
  readonly oldAvailable: boolean
}

function nodePodsOf({ set, pods, hash, nowMs }: PlanInput, node: string, isWanted: boolean): NodePods {
  const live = (pods.get(node) ?? []).filter((pod) => !isBeingDeleted(pod))
  const fresh = live.filter((pod) => isUpdated(set, pod, hash))
  const olds = live.filter((pod) => !isUpdated(set, pod, hash))
  const isThere = (pod: Pod | undefined): boolean =>
    pod !== undefined && isAvailable(pod, set.spec.minReadySeconds ?? 0, nowMs)
  return {
    node,
    isWanted,
    isCrowded: fresh.length > 1 || olds.length > 1,
    fresh: fresh[0],
    old: olds[0],
    freshAvailable: isThere(fresh[0]),
    oldAvailable: isThere(olds[0]),
  }
}

/** Deletes unavailable old pods at once, and others within `most` unavailable. */
function planLoss(spots: readonly NodePods[], most: number): Pick<DaemonPlan, 'missing' | 'surplus'> {
  const onlyOld = spots.filter(({ isCrowded, fresh, old }) => !isCrowded && fresh === undefined && old !== undefined)
  const broken = onlyOld.filter(({ oldAvailable }) => !oldAvailable)
  const isFine = (spot: NodePods): boolean =>
    !spot.isCrowded && (spot.old === undefined ? spot.freshAvailable : spot.fresh === undefined && spot.oldAvailable)
  const unavailable = spots.filter((spot) => !isFine(spot)).length
  const candidates = onlyOld.filter(({ oldAvailable }) => oldAvailable).slice(0, Math.max(0, most - unavailable))
  return { missing: [], surplus: podsIn([...broken, ...candidates]) }
}

function podsIn(spots: readonly NodePods[]): Pod[] {
  return spots.flatMap(({ old }) => (old === undefined ? [] : [old]))
}

/** Creates a new pod beside the old one, which goes when the new one is available. */
function planSurge(spots: readonly NodePods[], surge: number, wanted: number): Pick<DaemonPlan, 'missing' | 'surplus'> {
  const clear = spots.filter(({ isCrowded }) => !isCrowded)
  const onlyOld = clear.filter(({ fresh, old }) => fresh === undefined && old !== undefined)
  const both = clear.filter(({ fresh, old }) => fresh !== undefined && old !== undefined)
  const replaced = both.filter(({ freshAvailable }) => freshAvailable)
  const broken = onlyOld.filter(({ oldAvailable }) => !oldAvailable)
  const working = onlyOld.filter(({ oldAvailable }) => oldAvailable)
  const available = clear.filter(({ old, oldAvailable, freshAvailable }) =>
    old === undefined ? freshAvailable : oldAvailable,
  )
  const surging = spots.length - clear.length + both.length - replaced.length
  const unwanted = working.filter(({ isWanted }) => !isWanted).slice(0, Math.max(0, available.length - wanted))
  const next = working.filter(({ isWanted }) => isWanted).slice(0, Math.max(0, surge - surging))
  return {
    missing: [...broken.filter(({ isWanted }) => isWanted), ...next].map(({ node }) => node),
    surplus: podsIn([...broken.filter(({ isWanted }) => !isWanted), ...replaced, ...unwanted]),
  }
}

/** `isWhole`: the plan was carried out, so the status may report this generation. */
export function statusOf(scene: PlanInput, isWhole: boolean): DaemonSetStatus {
  const { set, nodes, pods, hash, nowMs, isTolerated } = scene
  const wanted = nodes.filter((node) => fitOf(set, node, isTolerated).shouldRun)
  const firstOn = ({ metadata }: Node): Pod | undefined => byAge(pods.get(metadata.name ?? '') ?? [])[0]
  const scheduled = wanted.map(firstOn).filter((pod) => pod !== undefined)
  const available = scheduled.filter((pod) => isAvailable(pod, set.spec.minReadySeconds ?? 0, nowMs)).length
  const { collisionCount, conditions } = set.status
  return {
    currentNumberScheduled: scheduled.length,
    numberMisscheduled: nodes.filter((node) => !wanted.includes(node) && firstOn(node) !== undefined).length,
    desiredNumberScheduled: wanted.length,
    numberReady: scheduled.filter(isReady).length,
    observedGeneration: (isWhole ? set.metadata.generation : set.status.observedGeneration) ?? 0,
    updatedNumberScheduled: scheduled.filter((pod) => isUpdated(set, pod, hash)).length,
    numberAvailable: available,
    numberUnavailable: wanted.length - available,
    ...(collisionCount !== undefined && { collisionCount }),
    ...(conditions !== undefined && { conditions }),
  }
}
