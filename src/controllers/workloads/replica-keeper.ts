/**
 * Shared reconciler of ReplicaSet and ReplicationController. Writes the status even after a failed sync, with the
 * failure.
 */
import type { ReplicaSetCondition, ReplicaSetStatus } from '#apis/apps/v1.ts'
import { type Pod, Pods, type PodTemplateSpec } from '#apis/core/v1.ts'
import type { Kind } from '#apis/kinds.ts'
import type { PolicyRule } from '#apis/rbac/v1.ts'
import type { Requeue } from '#lib/work-queue.ts'
import { matchesLabels, type Selector } from '#meta/labels.ts'
import { controllerOf, isBeingDeleted, type KubeObject, objectKey, semanticEqual } from '#meta/object.ts'
import { isNamespaceTerminating } from '#meta/status.ts'
import { epochMsOf, timeOf } from '#meta/time.ts'
import { isActive, isAvailable, isReady, isTerminal } from '#model/pods.ts'
import type { Cache } from '#reconcile/cache.ts'
import { itself, ownedBy, related } from '#reconcile/controller.ts'

import { type Controller, type ControllerContext, defineController } from '../controller.ts'
import { createPod, deletePod, messageOf, podFrom } from '../pod-creation.ts'
import { claim } from './adoption.ts'
import { planReplicas } from './replicas.ts'
import { nextAvailableMs } from './waiting.ts'

export interface ReplicaOwner extends KubeObject {
  spec: { replicas?: number; minReadySeconds?: number; template?: PodTemplateSpec }
  status: ReplicaSetStatus
}

export interface ReplicaKeeper<T extends ReplicaOwner> {
  readonly kind: Kind<T>
  readonly name: string
  readonly aliases: readonly string[]
  readonly account?: string
  readonly component?: string
  readonly rules: readonly PolicyRule[]
  readonly selectorOf: (set: T) => Selector
  /** The related pods for ranking by node. Default: its own. */
  readonly familyOf?: (set: T, cache: Cache) => readonly Pod[]
  /** Whether the status counts terminating pods. */
  readonly reportsTerminating: boolean
}

export function keepReplicas<T extends ReplicaOwner>(keeper: ReplicaKeeper<T>): Controller {
  const { kind, name, aliases, account, component, rules, selectorOf } = keeper
  /** A pod without a controller enqueues the sets that may adopt it. */
  const setsThatMightAdopt = (pod: Pod, cache: Cache): string[] => {
    if (controllerOf(pod) !== undefined) return []
    const sets = cache.inNamespace(kind, pod.metadata.namespace ?? '')
    return sets.filter((set) => matchesLabels(selectorOf(set), pod.metadata.labels)).map(objectKey)
  }
  return defineController({
    name,
    aliases,
    ...(account !== undefined && { account }),
    ...(component !== undefined && { component }),
    watches: [itself(kind), ownedBy(kind, Pods), related(Pods, setsThatMightAdopt)],
    rules,

    async reconcile(key, context) {
      const { cache, expectations, clock } = context
      const set = cache.get(kind, key)
      if (set === undefined) return expectations.forget(key)
      const isSatisfied = expectations.satisfied(key)
      const pods = await podsOf(keeper, set, context)
      const active = pods.filter(isActive)
      const failure = isSatisfied && !isBeingDeleted(set) ? await act(keeper, set, active, context) : undefined
      await writeStatus(keeper, set, statusOf(set, pods, failure, clock.now()), context)
      if (failure !== undefined) throw failure.error
      return waitForAvailability(set, active, clock.now())
    },
  })
}

/** All pods of the set, including terminated and terminating ones. */
function podsOf<T extends ReplicaOwner>(
  { kind, selectorOf }: ReplicaKeeper<T>,
  set: T,
  context: ControllerContext,
): Promise<Pod[]> {
  const { cache } = context
  const selector = selectorOf(set)
  const candidates = [
    ...cache.ownedBy(Pods, set),
    ...cache.orphansIn(Pods, set.metadata.namespace ?? '').filter(isActive),
  ]
  return claim(
    context,
    {
      owner: set,
      ownerKind: kind,
      kind: Pods,
      matches: ({ metadata }) => matchesLabels(selector, metadata.labels),
    },
    candidates,
  )
}

interface ReplicaFailure {
  readonly reason: 'FailedCreate' | 'FailedDelete'
  readonly error: unknown
}

async function act<T extends ReplicaOwner>(
  { kind, familyOf }: ReplicaKeeper<T>,
  set: T,
  active: readonly Pod[],
  context: ControllerContext,
): Promise<ReplicaFailure | undefined> {
  const { expectations, clock, cache } = context
  const key = objectKey(set)
  const related = familyOf?.(set, cache) ?? active
  const plan = planReplicas(set.spec.replicas ?? 1, active, related, clock.now())
  const { template } = set.spec
  if (plan.missing > 0 && template !== undefined) {
    const create = (): Promise<Pod> => createPod(context, set, podFrom(template, set, kind))
    const { error } = await expectations.create(key, plan.missing, create)
    // In a terminating namespace, a failed creation is no failure of the set.
    return error === undefined || isNamespaceTerminating(error) ? undefined : { reason: 'FailedCreate', error }
  }
  if (plan.surplus.length === 0) return undefined
  if (plan.surplus.length < active.length) recordAges(active, plan.surplus, context)
  const { error } = await expectations.delete(key, plan.surplus, (pod) => deletePod(context, set, pod))
  return error === undefined ? undefined : { reason: 'FailedDelete', error }
}

/** Records the age of ready victims relative to the youngest pod, with upstream's integer division. */
function recordAges(active: readonly Pod[], surplus: readonly Pod[], { clock, meters }: ControllerContext): void {
  const ageMs = ({ metadata }: Pod): number => clock.now() - epochMsOf(metadata.creationTimestamp ?? '')
  const youngestMs = Math.max(1, Math.min(...active.filter(isReady).map(ageMs)))
  const ratio = meters.family('replicaset_controller_sorting_deletion_age_ratio').labels()
  for (const pod of surplus.filter(isReady)) ratio.observe(Math.trunc(ageMs(pod) / youngestMs))
}

export function statusOf(
  { spec, metadata, status: { conditions = [] } }: ReplicaOwner,
  pods: readonly Pod[],
  failure: ReplicaFailure | undefined,
  nowMs: number,
): ReplicaSetStatus {
  const active = pods.filter(isActive)
  const templateLabels = Object.entries(spec.template?.metadata?.labels ?? {})
  const isLabeled = ({ metadata: { labels = {} } }: Pod): boolean =>
    templateLabels.every(([name, value]) => labels[name] === value)
  const terminating = pods.filter((pod) => isBeingDeleted(pod) && !isTerminal(pod))
  const reported = failureCondition(conditions, failure, nowMs)
  return {
    replicas: active.length,
    fullyLabeledReplicas: active.filter(isLabeled).length,
    readyReplicas: active.filter(isReady).length,
    availableReplicas: active.filter((pod) => isAvailable(pod, spec.minReadySeconds ?? 0, nowMs)).length,
    terminatingReplicas: terminating.length,
    observedGeneration: metadata.generation ?? 0,
    ...(reported.length > 0 && { conditions: reported }),
  }
}

/** The ReplicaFailure condition; removed after the next success. */
function failureCondition(
  conditions: readonly ReplicaSetCondition[],
  failure: ReplicaFailure | undefined,
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

/** The server omits zeros, so they count as equal to absent values. */
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

async function writeStatus<T extends ReplicaOwner>(
  { kind, reportsTerminating }: ReplicaKeeper<T>,
  set: T,
  { terminatingReplicas = 0, ...reported }: ReplicaSetStatus,
  { client, signal }: ControllerContext,
): Promise<void> {
  const status: ReplicaSetStatus = reportsTerminating ? { ...reported, terminatingReplicas } : reported
  if (sameStatus(set.status, status)) return
  await client.updateStatus<ReplicaOwner>(kind, { ...set, status }, { signal })
}

/** Requeues at the next time a pod becomes available; no event reports that. */
function waitForAvailability({ spec }: ReplicaOwner, active: readonly Pod[], nowMs: number): Requeue | undefined {
  const requeueAfterMs = nextAvailableMs(active, spec.minReadySeconds ?? 0, nowMs)
  return requeueAfterMs === undefined ? undefined : { requeueAfterMs }
}
