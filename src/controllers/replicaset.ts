/**
 * ReplicaSet controller: keeps `spec.replicas` pods alive. Status is told even when acting failed, and why. The same
 * rules make the ReplicationController: see `replicationcontroller.ts`.
 */
import { type ReplicaSet, type ReplicaSetCondition, ReplicaSets, type ReplicaSetStatus } from '#apis/apps/v1.ts'
import { type Pod, Pods } from '#apis/core/v1.ts'
import type { Requeue } from '#lib/work-queue.ts'
import { asSelector } from '#meta/label-selector.ts'
import { matchesLabels } from '#meta/labels.ts'
import { controllerOf, isBeingDeleted, objectKey, semanticEqual } from '#meta/object.ts'
import { timeOf } from '#meta/time.ts'
import { isActive, isAvailable, isReady, isTerminal } from '#model/pods.ts'

import { claim } from './adoption.ts'
import type { Cache } from './cache.ts'
import {
  type Controller,
  type ControllerContext,
  defineController,
  itself,
  ownedBy,
  related,
  rule,
} from './controller.ts'
import { createPod, deletePod, messageOf, podFrom } from './pod-creation.ts'
import { planReplicas } from './replicas.ts'
import { nextAvailableMs } from './waiting.ts'

export const replicaSetController: Controller = defineController({
  name: 'replicaset-controller',
  aliases: ['replicaset'],
  watches: [itself(ReplicaSets), ownedBy(ReplicaSets, Pods), related(Pods, setsThatMightAdopt)],
  rules: [
    rule('apps', 'replicasets', 'get list watch update'),
    rule('apps', 'replicasets/status replicasets/finalizers', 'update'),
    rule('', 'pods', 'create delete list patch watch'),
    rule(' events.k8s.io', 'events', 'create patch update'),
  ],

  async reconcile(key, context) {
    const { cache, expectations, clock } = context
    const set = cache.get(ReplicaSets, key)
    if (set === undefined) return expectations.forget(key)
    const isSatisfied = expectations.satisfied(key)
    const pods = await podsOf(set, context)
    const active = pods.filter(isActive)
    const failure = isSatisfied && !isBeingDeleted(set) ? await act(key, set, active, context) : undefined
    const status = statusOf(set, pods, failure, clock.now())
    await writeStatus(set, status, context)
    if (failure !== undefined) throw failure.error
    return waitForAvailability(set, active, clock.now())
  },
})

/** A pod that nobody owns may be what a set with a fitting selector looks for. */
function setsThatMightAdopt(pod: Pod, cache: Cache): string[] {
  if (controllerOf(pod) !== undefined) return []
  const sets = cache.inNamespace(ReplicaSets, pod.metadata.namespace ?? '')
  return sets.filter(({ spec }) => matchesLabels(asSelector(spec.selector), pod.metadata.labels)).map(objectKey)
}

/** All that are the set's, also those that have ended or are about to. */
function podsOf(set: ReplicaSet, context: ControllerContext): Promise<Pod[]> {
  const { cache } = context
  const selector = asSelector(set.spec.selector)
  const candidates = [
    ...cache.ownedBy(Pods, set),
    ...cache.orphansIn(Pods, set.metadata.namespace ?? '').filter(isActive),
  ]
  return claim(
    context,
    {
      owner: set,
      ownerKind: ReplicaSets,
      kind: Pods,
      matches: ({ metadata }) => matchesLabels(selector, metadata.labels),
    },
    candidates,
  )
}

interface Failure {
  readonly reason: 'FailedCreate' | 'FailedDelete'
  readonly error: unknown
}

async function act(
  key: string,
  set: ReplicaSet,
  active: readonly Pod[],
  context: ControllerContext,
): Promise<Failure | undefined> {
  const { expectations, clock } = context
  const plan = planReplicas(set.spec.replicas ?? 1, active, family(set, active, context.cache), clock.now())
  if (plan.missing > 0) {
    const create = (): Promise<Pod> => createPod(context, set, podFrom(set.spec.template, set, ReplicaSets))
    const { error } = await expectations.create(key, plan.missing, create)
    return error === undefined ? undefined : { reason: 'FailedCreate', error }
  }
  if (plan.surplus.length === 0) return undefined
  const { error } = await expectations.delete(key, plan.surplus, (pod) => deletePod(context, set, pod))
  return error === undefined ? undefined : { reason: 'FailedDelete', error }
}

/** Pods of all sets of the same Deployment: on a node with many of them one is missed least. */
function family(set: ReplicaSet, own: readonly Pod[], cache: Cache): readonly Pod[] {
  const owner = controllerOf(set)
  if (owner === undefined) return own
  const siblings = cache
    .inNamespace(ReplicaSets, set.metadata.namespace ?? '')
    .filter((one) => controllerOf(one)?.uid === owner.uid)
  return siblings.flatMap((one) => cache.ownedBy(Pods, one))
}

export function statusOf(
  { spec, metadata, status: { conditions = [] } }: ReplicaSet,
  pods: readonly Pod[],
  failure: Failure | undefined,
  nowMs: number,
): ReplicaSetStatus {
  const active = pods.filter(isActive)
  const templateLabels = Object.entries(spec.template.metadata?.labels ?? {})
  const isLabeled = ({ metadata: { labels = {} } }: Pod): boolean =>
    templateLabels.every(([name, value]) => labels[name] === value)
  const terminating = pods.filter((pod) => isBeingDeleted(pod) && !isTerminal(pod))
  const told = failureCondition(conditions, failure, nowMs)
  return {
    replicas: active.length,
    fullyLabeledReplicas: active.filter(isLabeled).length,
    readyReplicas: active.filter(isReady).length,
    availableReplicas: active.filter((pod) => isAvailable(pod, spec.minReadySeconds ?? 0, nowMs)).length,
    terminatingReplicas: terminating.length,
    observedGeneration: metadata.generation ?? 0,
    ...(told.length > 0 && { conditions: told }),
  }
}

/** Says once why pods are missing; gone with the next success. */
function failureCondition(
  conditions: readonly ReplicaSetCondition[],
  failure: Failure | undefined,
  nowMs: number,
): ReplicaSetCondition[] {
  const others = conditions.filter(({ type }) => type !== 'ReplicaFailure')
  if (failure === undefined) return others
  const known = conditions.find(({ type }) => type === 'ReplicaFailure')
  if (known !== undefined) return [...conditions]
  const { reason, error } = failure
  const lastTransitionTime = timeOf(nowMs)
  return [...others, { type: 'ReplicaFailure', status: 'True', lastTransitionTime, reason, message: messageOf(error) }]
}

/** Numbers that are zero are left out by the server, so they are not compared as written. */
function sameStatus(one: ReplicaSetStatus, other: ReplicaSetStatus): boolean {
  const filled = (status: ReplicaSetStatus): ReplicaSetStatus => ({
    fullyLabeledReplicas: 0,
    readyReplicas: 0,
    availableReplicas: 0,
    terminatingReplicas: 0,
    observedGeneration: 0,
    ...status,
  })
  return semanticEqual(filled(one), filled(other))
}

async function writeStatus(
  set: ReplicaSet,
  status: ReplicaSetStatus,
  { client, signal }: ControllerContext,
): Promise<void> {
  if (sameStatus(set.status, status)) return
  await client.updateStatus(ReplicaSets, { ...set, status }, { signal })
}

/** Nobody tells when a pod has been ready for long enough. */
function waitForAvailability({ spec }: ReplicaSet, active: readonly Pod[], nowMs: number): Requeue | undefined {
  const requeueAfterMs = nextAvailableMs(active, spec.minReadySeconds ?? 0, nowMs)
  return requeueAfterMs === undefined ? undefined : { requeueAfterMs }
}
