/** StatefulSet controller: maintains pods with stable names, ordinals and claims. */
import {
  type ControllerRevision,
  ControllerRevisions,
  type StatefulSet,
  StatefulSets,
  type StatefulSetStatus,
} from '#apis/apps/v1.ts'
import { PersistentVolumeClaims, type Pod, Pods, type PodTemplateSpec } from '#apis/core/v1.ts'
import type { Requeue } from '#lib/work-queue.ts'
import { asSelector } from '#meta/label-selector.ts'
import { matchesLabels } from '#meta/labels.ts'
import { controllerOf, deepCopy, isBeingDeleted, objectKey, semanticEqual } from '#meta/object.ts'
import { defaultPodTemplate } from '#model/pod-spec/defaults.ts'
import { revisionHash } from '#model/template-hash.ts'
import type { Cache } from '#reconcile/cache.ts'
import { itself, ownedBy, related, rule, EVENTS } from '#reconcile/controller.ts'

import { type Controller, type ControllerContext, defineController } from '../../controller.ts'
import { claim } from '../adoption.ts'
import { currentRevision, dataText, forgetRevisions, revisionData, revisionsOf } from '../revisions.ts'
import { nextAvailableMs } from '../waiting.ts'
import {
  isCreated,
  isInRange,
  isRunningAndAvailable,
  isRunningAndReady,
  ordinalOf,
  partitionOf,
  podOf,
  replicasOf,
  revisionOf,
  startOf,
} from './identity.ts'
import { type SyncContext, syncPods } from './sync.ts'

const HASH = 'controller.kubernetes.io/hash'
const HISTORY_LIMIT = 10

export const statefulSetController: Controller = defineController({
  name: 'statefulset-controller',
  aliases: ['statefulset'],
  watches: [
    itself(StatefulSets),
    ownedBy(StatefulSets, Pods),
    // ControllerRevisions are not counted by Expectations.
    { ...ownedBy(StatefulSets, ControllerRevisions), isExpected: false },
    related(Pods, setsThatMightAdopt),
  ],
  reads: [PersistentVolumeClaims],
  rules: [
    rule('', 'pods', 'list watch'),
    rule('apps', 'statefulsets', 'get list watch'),
    rule('apps', 'statefulsets/status statefulsets/finalizers', 'update'),
    rule('', 'pods', 'get create delete update patch'),
    rule('apps', 'controllerrevisions', 'get create delete update patch list watch'),
    rule('', 'persistentvolumeclaims', 'get create list watch'),
    rule('', 'persistentvolumeclaims', 'update delete'),
    rule('', 'pods/finalizers', 'update'),
    EVENTS,
  ],

  async reconcile(key, context) {
    const { cache, expectations } = context
    const set = cache.get(StatefulSets, key)
    if (set === undefined) return expectations.forget(key)
    // Waits until the cache shows all writes.
    if (expectations.satisfied(key)) return sync(set, context)
  },
})

function setsThatMightAdopt(pod: Pod, cache: Cache): string[] {
  if (controllerOf(pod) !== undefined) return []
  const sets = cache.inNamespace(StatefulSets, pod.metadata.namespace ?? '')
  const fits = (set: StatefulSet): boolean =>
    ordinalOf(set, pod) >= 0 && matchesLabels(asSelector(set.spec.selector), pod.metadata.labels)
  return sets.filter(fits).map(objectKey)
}

function podsOf(set: StatefulSet, context: ControllerContext): Promise<Pod[]> {
  const { cache } = context
  const selector = asSelector(set.spec.selector)
  const candidates = [...cache.ownedBy(Pods, set), ...cache.orphansIn(Pods, set.metadata.namespace ?? '')]
  const named = candidates.filter((pod) => ordinalOf(set, pod) >= 0)
  const matches = ({ metadata }: Pod): boolean => matchesLabels(selector, metadata.labels)
  return claim(context, { owner: set, ownerKind: StatefulSets, kind: Pods, matches }, named)
}

interface Revisions {
  readonly all: readonly ControllerRevision[]
  readonly current: ControllerRevision
  readonly update: ControllerRevision
}

async function sync(set: StatefulSet, context: ControllerContext): Promise<Requeue | void> {
  const revisions = await findRevisions(set, context)
  const pods = await podsOf(set, context)
  const nowMs = context.clock.now()
  const syncContext = syncContextOf(set, pods, revisions, context)
  let taken = 0
  let failure: { readonly error: unknown } | undefined
  try {
    if (!isBeingDeleted(set)) taken = await syncPods(syncContext)
  } catch (error) {
    failure = { error }
  }
  await writeStatus(set, statusOf(syncContext, revisions, pods, taken), context)
  if (failure !== undefined) throw failure.error
  await truncate(set, pods, revisions, context)
  const requeueAfterMs = nextAvailableMs(pods, set.spec.minReadySeconds ?? 0, nowMs)
  if (requeueAfterMs !== undefined) return { requeueAfterMs }
}

async function findRevisions(set: StatefulSet, context: ControllerContext): Promise<Revisions> {
  const owned = { owner: set, kind: StatefulSets, selector: asSelector(set.spec.selector) }
  const all = await revisionsOf(owned, context)
  const { collisionCount = 0, currentRevision: wanted } = set.status
  const text = dataText(revisionData(set.spec.template))
  const hash = revisionHash(text, collisionCount)
  const onCollision = (): Promise<void> =>
    writeStatus(set, { ...set.status, collisionCount: collisionCount + 1 }, context)
  // A newer version may know more defaults: that does not change the template.
  const isSame = (data: unknown): boolean => dataText(defaulted(data)) === text
  const update = await currentRevision(owned, all, { hash, labels: { [HASH]: hash }, onCollision, isSame }, context)
  return { all, update, current: all.find(({ metadata }) => metadata.name === wanted) ?? update }
}

function defaulted(data: unknown): object {
  const template = deepCopy(templateIn(data))
  defaultPodTemplate(template)
  return revisionData(template)
}

function templateIn(data: unknown): PodTemplateSpec {
  const { $patch: _, ...template } = (data as { spec: { template: PodTemplateSpec & { $patch?: string } } }).spec
    .template
  return template
}

function syncContextOf(
  set: StatefulSet,
  pods: readonly Pod[],
  revisions: Revisions,
  context: ControllerContext,
): SyncContext {
  const byOrdinal = new Map(pods.map((pod) => [ordinalOf(set, pod), pod]))
  const replicas = Array.from({ length: replicasOf(set) }, (_, index) => {
    const ordinal = startOf(set) + index
    return byOrdinal.get(ordinal) ?? plannedPod(set, ordinal, revisions)
  })
  const condemned = pods.filter((pod) => !isInRange(set, pod)).sort((a, b) => ordinalOf(set, b) - ordinalOf(set, a))
  const updateRevision = revisions.update.metadata.name ?? ''
  return { set, context, replicas, condemned, updateRevision, nowMs: context.clock.now() }
}

/** Pods below the partition, and pods that are not yet updated, are created from the current revision. */
function plannedPod(set: StatefulSet, ordinal: number, { current, update }: Revisions): Pod {
  const { updateStrategy } = set.spec
  const kept = updateStrategy.rollingUpdate === undefined ? (set.status.currentReplicas ?? 0) : partitionOf(set)
  const isRolling = updateStrategy.type === 'RollingUpdate' || updateStrategy.rollingUpdate !== undefined
  const revision = isRolling && ordinal < startOf(set) + kept ? current : update
  const template = templateIn(revision.data)
  return podOf({ ...set, spec: { ...set.spec, template } }, ordinal, revision.metadata.name ?? '')
}

function statusOf(
  { set, nowMs }: SyncContext,
  revisions: Revisions,
  pods: readonly Pod[],
  taken: number,
): StatefulSetStatus {
  const [current, update] = [revisions.current.metadata.name ?? '', revisions.update.metadata.name ?? '']
  const created = pods.filter(isCreated)
  const staying = created.filter((pod) => !isBeingDeleted(pod))
  const ready = pods.filter(isRunningAndReady)
  const updated = staying.filter((pod) => revisionOf(pod) === update).length
  const wanted = replicasOf(set)
  const isRolling = set.spec.updateStrategy.type === 'RollingUpdate'
  const isDone = isRolling && [updated, ready.length, created.length].every((count) => count === wanted)
  return {
    ...(set.status.conditions !== undefined && { conditions: set.status.conditions }),
    observedGeneration: set.metadata.generation ?? 0,
    replicas: created.length,
    readyReplicas: ready.length,
    currentReplicas: isDone ? updated : staying.filter((pod) => revisionOf(pod) === current).length - taken,
    updatedReplicas: updated,
    currentRevision: isDone ? update : current,
    updateRevision: update,
    collisionCount: set.status.collisionCount ?? 0,
    availableReplicas: ready.filter((pod) => isRunningAndAvailable(set, pod, nowMs)).length,
  }
}

async function writeStatus(
  set: StatefulSet,
  status: StatefulSetStatus,
  { client, signal }: ControllerContext,
): Promise<void> {
  const filled = (one: StatefulSetStatus): StatefulSetStatus => ({
    observedGeneration: 0,
    readyReplicas: 0,
    currentReplicas: 0,
    updatedReplicas: 0,
    ...one,
  })
  if (semanticEqual(filled(set.status), filled(status))) return
  await client.updateStatus(StatefulSets, { ...set, status }, { signal })
}

async function truncate(
  set: StatefulSet,
  pods: readonly Pod[],
  { all, current, update }: Revisions,
  context: ControllerContext,
): Promise<void> {
  const live = new Set([current.metadata.name, update.metadata.name, ...pods.map(revisionOf)])
  const dead = all.filter(({ metadata }) => !live.has(metadata.name))
  await forgetRevisions(dead, set.spec.revisionHistoryLimit ?? HISTORY_LIMIT, () => false, context)
}
