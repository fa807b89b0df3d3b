/** DaemonSet controller: runs one pod on every eligible node. */
import { ControllerRevisions, type DaemonSet, DaemonSets, type DaemonSetStatus } from '#apis/apps/v1.ts'
import { type Node, Nodes, type Pod, Pods } from '#apis/core/v1.ts'
import type { Requeue } from '#lib/work-queue.ts'
import { asSelector } from '#meta/label-selector.ts'
import { matchesLabels } from '#meta/labels.ts'
import { controllerOf, isBeingDeleted, objectKey, semanticEqual } from '#meta/object.ts'
import { toleratesNumbers, tolerationRule } from '#model/nodes/fit.ts'
import { isActive, isTerminal } from '#model/pods.ts'
import { templateHash } from '#model/template-hash.ts'
import type { Cache } from '#reconcile/cache.ts'
import { itself, ownedBy, related, rule, EVENTS } from '#reconcile/controller.ts'

import { perRun } from '../../controller.ts'
import { type Controller, type ControllerContext, defineController } from '../../controller.ts'
import { createPod, deletePod, podFrom } from '../../pod-creation.ts'
import { claim } from '../adoption.ts'
import { currentRevision, forgetRevisions, revisionsOf } from '../revisions.ts'
import { nextAvailableMs } from '../waiting.ts'
import { createFailureBackoff, type FailureBackoff } from './failure-backoff.ts'
import { type DaemonPlan, type PlanInput, planNodes, planUpdate, statusOf } from './plan.ts'
import { fitOf, HASH, nodeOf, templateFor } from './pods.ts'

/** The maximum number of pods that one sync creates or deletes. */
const BURST = 250
const HISTORY_LIMIT = 10

const backoffOf = perRun(({ clock }): FailureBackoff => createFailureBackoff(clock))

export const daemonSetController: Controller = defineController({
  name: 'daemonset-controller',
  aliases: ['daemonset'],
  account: 'daemon-set-controller',
  workers: 2,
  watches: [
    itself(DaemonSets),
    ownedBy(DaemonSets, Pods),
    // ControllerRevisions are not counted by Expectations.
    { ...ownedBy(DaemonSets, ControllerRevisions), isExpected: false },
    related(Pods, setsThatMightAdopt),
    related(Nodes, setsOfNode, concernsNode),
  ],
  rules: [
    rule('extensions apps', 'daemonsets', 'get list watch'),
    rule('extensions apps', 'daemonsets/status daemonsets/finalizers', 'update'),
    rule('', 'nodes', 'list watch'),
    rule('', 'pods', 'list watch create delete patch'),
    rule('', 'pods/binding', 'create'),
    rule('apps', 'controllerrevisions', 'get list watch create delete update patch'),
    EVENTS,
  ],

  async reconcile(key, context) {
    const { cache, expectations, event } = context
    const set = cache.get(DaemonSets, key)
    if (set === undefined) return expectations.forget(key)
    if (semanticEqual(set.spec.selector, {})) {
      const message = 'This daemon set is selecting all pods. A non-empty selector is required.'
      return event(set, { type: 'Warning', reason: 'SelectingAll', message })
    }
    if (!isBeingDeleted(set)) return sync(key, set, context)
  },
})

function setsThatMightAdopt(pod: Pod, cache: Cache): string[] {
  if (controllerOf(pod) !== undefined) return []
  const sets = cache.inNamespace(DaemonSets, pod.metadata.namespace ?? '')
  return sets.filter(({ spec }) => matchesLabels(asSelector(spec.selector), pod.metadata.labels)).map(objectKey)
}

function setsOfNode(node: Node, cache: Cache): string[] {
  return [...cache.list(DaemonSets)].filter((set) => fitOf(set, node, toleratesNumbers).mayStay).map(objectKey)
}

/** Ignores node heartbeats; fields that decide eligibility rarely change. */
function concernsNode(node: Node, old: Node): boolean {
  return !semanticEqual(node.metadata.labels, old.metadata.labels) || !semanticEqual(node.spec.taints, old.spec.taints)
}

async function sync(key: string, set: DaemonSet, context: ControllerContext): Promise<Requeue | void> {
  const { cache, expectations, clock, client, signal } = context
  const owned = { owner: set, kind: DaemonSets, selector: asSelector(set.spec.selector) }
  const revisions = await revisionsOf(owned, context)
  const { collisionCount } = set.status
  const hash = templateHash(set.spec.template, collisionCount)
  const onCollision = async (): Promise<void> => {
    const status = { ...set.status, collisionCount: (collisionCount ?? 0) + 1 }
    await client.updateStatus(DaemonSets, { ...set, status }, { signal })
  }
  const current = await currentRevision(owned, revisions, { hash, labels: { [HASH]: hash }, onCollision }, context)
  const live = current.metadata.labels?.[HASH] ?? hash
  const nodes = [...cache.list(Nodes)]
  const look = async (): Promise<PlanInput> => {
    const pods = byNode(await podsOf(set, context))
    return { set, nodes, pods, hash: live, nowMs: clock.now(), isTolerated: tolerationRule(context.isEnabled) }
  }
  const isSatisfied = expectations.satisfied(key)
  let waitMs: number | undefined
  let failure: { readonly error: unknown } | undefined
  if (isSatisfied) {
    try {
      waitMs = await act(key, await look(), context)
      const isUsed = new Set(cache.ownedBy(Pods, set).map(({ metadata }) => metadata.labels?.[HASH]))
      const olds = revisions.filter(({ metadata }) => metadata.name !== current.metadata.name)
      const limit = set.spec.revisionHistoryLimit ?? HISTORY_LIMIT
      await forgetRevisions(olds, limit, ({ metadata }) => isUsed.has(metadata.labels?.[HASH]), context)
    } catch (error) {
      failure = { error }
    }
  }
  const scene = await look()
  await writeStatus(set, statusOf(scene, isSatisfied), context)
  if (failure !== undefined) throw failure.error
  return requeue([waitMs, nextAvailableMs([...scene.pods.values()].flat(), set.spec.minReadySeconds ?? 0, scene.nowMs)])
}

function requeue(waits: readonly (number | undefined)[]): Requeue | undefined {
  const known = waits.filter((wait) => wait !== undefined)
  return known.length === 0 ? undefined : { requeueAfterMs: Math.min(...known) }
}

function podsOf(set: DaemonSet, context: ControllerContext): Promise<Pod[]> {
  const { cache } = context
  const selector = asSelector(set.spec.selector)
  const orphans = cache.orphansIn(Pods, set.metadata.namespace ?? '').filter(isActive)
  const matches = ({ metadata }: Pod): boolean => matchesLabels(selector, metadata.labels)
  const candidates = [...cache.ownedBy(Pods, set), ...orphans]
  return claim(context, { owner: set, ownerKind: DaemonSets, kind: Pods, matches }, candidates)
}

function byNode(pods: readonly Pod[]): Map<string, Pod[]> {
  const found = new Map<string, Pod[]>()
  for (const pod of pods) {
    const node = nodeOf(pod)
    if (node === undefined || (isTerminal(pod) && isBeingDeleted(pod))) continue
    found.set(node, [...(found.get(node) ?? []), pod])
  }
  return found
}

/** Creates and deletes pods; if there is nothing to do, continues the rolling update. */
async function act(key: string, scene: PlanInput, context: ControllerContext): Promise<number | undefined> {
  const { set } = scene
  const backoff = backoffOf(context)
  const generation = set.status.observedGeneration ?? 0
  const plan = planNodes(scene, (node) => backoff.wait(`${set.metadata.uid}/${generation}/${node}`))
  for (const note of plan.notes) context.event(set, note)
  await applyPlan(key, scene, plan, context)
  const isIdle = plan.missing.length === 0 && plan.surplus.length === 0
  if (set.spec.updateStrategy.type === 'RollingUpdate' && isIdle) {
    await applyPlan(key, scene, planUpdate(scene), context)
  }
  return plan.waitMs
}

async function applyPlan(
  key: string,
  { set, hash }: PlanInput,
  { missing, surplus }: Pick<DaemonPlan, 'missing' | 'surplus'>,
  context: ControllerContext,
): Promise<void> {
  const { expectations } = context
  const nodes = missing.slice(0, BURST)
  let next = 0
  const create = (): Promise<Pod> =>
    createPod(context, set, podFrom(templateFor(set, hash, nodes[next++] ?? ''), set, DaemonSets))
  const created = await expectations.create(key, nodes.length, create)
  const deleted = await expectations.delete(key, surplus.slice(0, BURST), (pod) => deletePod(context, set, pod))
  for (const outcome of [created, deleted]) if ('error' in outcome) throw outcome.error
}

async function writeStatus(
  set: DaemonSet,
  status: DaemonSetStatus,
  { client, signal }: ControllerContext,
): Promise<void> {
  const filled = (one: DaemonSetStatus): DaemonSetStatus => ({
    observedGeneration: 0,
    updatedNumberScheduled: 0,
    numberAvailable: 0,
    numberUnavailable: 0,
    ...one,
  })
  if (semanticEqual(filled(set.status), filled(status))) return
  await client.updateStatus(DaemonSets, { ...set, status }, { signal })
}
