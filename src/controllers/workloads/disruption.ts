/**
 * Disruption controller: computes the allowed disruptions of every PodDisruptionBudget. The eviction subresource
 * decrements the count at once; this controller recomputes it.
 */
import { Deployments, ReplicaSets, StatefulSets } from '#apis/apps/v1.ts'
import { type Pod, Pods, ReplicationControllers } from '#apis/core/v1.ts'
import type { Kind } from '#apis/kinds.ts'
import { type PodDisruptionBudget, PodDisruptionBudgets } from '#apis/policy/v1.ts'
import { pathOf } from '#client/api-client.ts'
import { discover, KindMap } from '#client/discovery.ts'
import { parseJson } from '#lib/json/json.ts'
import type { Requeue } from '#lib/work-queue.ts'
import { setCondition } from '#meta/conditions.ts'
import { groupResourceText } from '#meta/kind.ts'
import { asSelector, goSelectorText } from '#meta/label-selector.ts'
import { matchesLabels } from '#meta/labels.ts'
import {
  controllerOf,
  isBeingDeleted,
  keyOf,
  type KubeObject,
  objectKey,
  type OwnerReference,
  semanticEqual,
} from '#meta/object.ts'
import { isConflict, isNotFound } from '#meta/status.ts'
import { epochMsOf, timeOf } from '#meta/time.ts'
import type { Cache } from '#reconcile/cache.ts'
import { itself, related, rule, EVENTS } from '#reconcile/controller.ts'

import { type Controller, type ControllerContext, defineController } from '../controller.ts'
import { messageOf } from '../pod-creation.ts'
import { type Counts, countsOf, disruptedOf, EVICTION_MS, healthyOf, needsScale } from './disruption-plan.ts'

/** The key prefix of pods with a stale DisruptionTarget condition. */
const POD = 'pod:'
/** The key prefix of pods with several budgets. */
const MULTIPLE_BUDGETS = 'rivals:'
const MAX_BYTES = 1 << 20

export const disruptionController: Controller = defineController({
  name: 'disruption-controller',
  aliases: ['disruption'],
  component: 'controllermanager',
  workers: 1,
  watches: [
    itself(PodDisruptionBudgets),
    related(Pods, (pod, cache) => {
      const budgets = budgetsOf(pod, cache).map(objectKey)
      return [...budgets, ...(budgets.length > 1 ? [MULTIPLE_BUDGETS + objectKey(pod)] : []), ...disruptionKey(pod)]
    }),
  ],
  reads: [Deployments, ReplicaSets, StatefulSets, ReplicationControllers],
  rules: [
    rule('apps extensions', 'deployments replicasets', 'get list watch'),
    rule('', 'replicationcontrollers', 'get list watch'),
    rule('policy', 'poddisruptionbudgets', 'get list watch'),
    rule('apps', 'statefulsets', 'get list watch'),
    rule('policy', 'poddisruptionbudgets/status', 'update'),
    rule('', 'pods/status', 'patch update'),
    rule('*', '*/scale', 'get'),
    EVENTS,
  ],

  async reconcile(key, context) {
    const { cache, event } = context
    if (key.startsWith(MULTIPLE_BUDGETS)) return reportMultipleBudgets(key.slice(MULTIPLE_BUDGETS.length), context)
    if (key.startsWith(POD)) return withdraw(key.slice(POD.length), context)
    const budget = cache.get(PodDisruptionBudgets, key)
    if (budget === undefined) return undefined
    const pods = podsOf(budget, cache)
    if (pods.length === 0) event(budget, { type: 'Normal', reason: 'NoPods', message: 'No matching pods found' })
    try {
      return await assess(budget, pods, context)
    } catch (error) {
      // Allows no disruption after an error, except for a write conflict.
      if (!isConflict(error)) await writeStatus(budget, knownCounts(budget), { failure: messageOf(error) }, context)
      throw error
    }
  },
})

function podsOf({ spec, metadata }: PodDisruptionBudget, cache: Cache): Pod[] {
  if (spec?.selector === undefined) return []
  const selector = asSelector(spec.selector)
  return cache.inNamespace(Pods, metadata.namespace ?? '').filter((pod) => matchesLabels(selector, pod.metadata.labels))
}

function budgetsOf({ metadata }: Pod, cache: Cache): PodDisruptionBudget[] {
  return cache
    .inNamespace(PodDisruptionBudgets, metadata.namespace ?? '')
    .filter(({ spec }) => spec?.selector !== undefined && matchesLabels(asSelector(spec.selector), metadata.labels))
}

/** Eviction refuses pods with several budgets. */
function reportMultipleBudgets(key: string, { cache, event }: ControllerContext): undefined {
  const pod = cache.get(Pods, key)
  const [first, second] = pod === undefined ? [] : budgetsOf(pod, cache)
  if (pod === undefined || second === undefined) return
  const [namespace, name] = key.split('/')
  const message = `Pod "${namespace}"/"${name}" matches multiple PodDisruptionBudgets.  Chose "${first?.metadata.name}" arbitrarily.`
  event(pod, { type: 'Warning', reason: 'MultiplePodDisruptionBudgets', message })
}

async function assess(
  budget: PodDisruptionBudget,
  pods: readonly Pod[],
  context: ControllerContext,
): Promise<Requeue | undefined> {
  const { clock, event } = context
  const unmanaged = needsScale(budget) ? pods.filter((pod) => controllerOf(pod) === undefined) : []
  const expected = needsScale(budget) ? await expectedOf(budget, pods, context) : pods.length
  if (unmanaged.length > 0) {
    const message = `Pods selected by this PodDisruptionBudget (selector: ${goSelectorText(budget.spec?.selector ?? {})}) were found to be unmanaged. As a result, the status of the PDB cannot be calculated correctly, which may result in undefined behavior. To account for these pods please set ".spec.minAvailable" field of the PDB to an integer value.`
    event(budget, { type: 'Warning', reason: 'UnmanagedPods', message })
  }
  const disrupted = disruptedOf(budget, pods, clock.now())
  for (const pod of disrupted.overdue) {
    const message = `Pod was expected by PDB ${objectKey(budget)} to be deleted but it wasn't`
    event(pod, { type: 'Warning', reason: 'NotDeleted', message })
  }
  const counts = countsOf(budget, expected, healthyOf(pods, disrupted.pods))
  await writeStatus(budget, counts, { disrupted: disrupted.pods }, context)
  return disrupted.recheckMs === undefined ? undefined : { requeueAfterMs: disrupted.recheckMs }
}

async function expectedOf(
  budget: PodDisruptionBudget,
  pods: readonly Pod[],
  context: ControllerContext,
): Promise<number> {
  try {
    return await scaleOf(pods, context)
  } catch (error) {
    const message = `Failed to calculate the number of expected pods: ${messageOf(error)}`
    context.event(budget, { type: 'Warning', reason: 'CalculateExpectedPodCountFailed', message })
    throw error
  }
}

function knownCounts({ status }: PodDisruptionBudget): Counts {
  return {
    currentHealthy: status?.currentHealthy ?? 0,
    desiredHealthy: status?.desiredHealthy ?? 0,
    expectedPods: status?.expectedPods ?? 0,
    disruptionsAllowed: 0,
  }
}

interface Findings {
  readonly disrupted?: Readonly<Record<string, string>>
  readonly failure?: string
}

async function writeStatus(
  budget: PodDisruptionBudget,
  counts: Counts,
  { disrupted, failure }: Findings,
  { client, clock, signal }: ControllerContext,
): Promise<void> {
  const before = budget.status
  const { generation = 0 } = budget.metadata
  const observedGeneration = failure === undefined ? generation : (before?.observedGeneration ?? 0)
  const conditions = (before?.conditions ?? []).map((condition) => ({ ...condition }))
  const verdict = verdictOf(counts, failure)
  setCondition(conditions, { type: 'DisruptionAllowed', ...verdict, observedGeneration }, clock)
  const disruptedPods = { ...(disrupted ?? before?.disruptedPods) }
  const next = { ...counts, disruptedPods, observedGeneration, conditions }
  if (semanticEqual({ ...before, disruptedPods: before?.disruptedPods ?? {} }, next)) return
  await client.updateStatus(PodDisruptionBudgets, { ...budget, status: next }, { signal })
}

function verdictOf(
  { disruptionsAllowed }: Counts,
  failure: string | undefined,
): { readonly status: string; readonly reason: string; readonly message: string } {
  if (failure !== undefined) return { status: 'False', reason: 'SyncFailed', message: failure }
  const isAllowed = disruptionsAllowed > 0
  return {
    status: isAllowed ? 'True' : 'False',
    reason: isAllowed ? 'SufficientPods' : 'InsufficientPods',
    message: '',
  }
}

/** The total scale of the pods' controllers, each read once. */
async function scaleOf(pods: readonly Pod[], context: ControllerContext): Promise<number> {
  const scales = new Map<string, number>()
  const seen = new Set<string>()
  for (const pod of pods) {
    const reference = controllerOf(pod)
    if (reference === undefined || seen.has(reference.uid)) continue
    seen.add(reference.uid)
    const found = knownScale(pod, reference, context) ?? (await servedScale(pod, reference, context))
    if (found === undefined) throw new Error(`found no controllers for pod "${pod.metadata.name}"`)
    scales.set(found.uid, found.replicas)
  }
  return [...scales.values()].reduce((sum, replicas) => sum + replicas, 0)
}

interface Scale {
  readonly uid: string
  readonly replicas: number
}

type ScalableObject = KubeObject & { readonly spec?: { readonly replicas?: number } }
const SCALED: readonly Kind[] = [ReplicaSets, StatefulSets, ReplicationControllers]

function knownScale(
  { metadata: { namespace } }: Pod,
  reference: OwnerReference,
  { cache }: ControllerContext,
): Scale | undefined {
  const find = (kind: Kind, { name, uid }: OwnerReference): ScalableObject | undefined => {
    const found = cache.get(kind, keyOf(namespace, name))
    return found?.metadata.uid === uid ? found : undefined
  }
  const kind = SCALED.find((one) => isOf(reference, one))
  const owner = kind === undefined ? undefined : find(kind, reference)
  if (owner === undefined) return undefined
  const above = controllerOf(owner)
  const deployment = above !== undefined && isOf(above, Deployments) ? find(Deployments, above) : undefined
  const scaled = deployment ?? owner
  return { uid: scaled.metadata.uid ?? '', replicas: scaled.spec?.replicas ?? 1 }
}

function isOf({ apiVersion, kind }: OwnerReference, one: Kind): boolean {
  return kind === one.kind && apiVersion.split('/').slice(0, -1).join('/') === one.group
}

/** The scale of any other kind with a scale subresource. */
async function servedScale(
  { metadata: { namespace } }: Pod,
  reference: OwnerReference,
  { client, signal }: ControllerContext,
): Promise<Scale | undefined> {
  const kind = new KindMap((await discover(client, signal)).kinds).ofObject(reference)
  if (kind === undefined) return undefined
  const { group, plural } = kind
  if (!kind.subresources.some(({ name }) => name === 'scale')) {
    throw new Error(`${groupResourceText({ group, resource: plural })} does not implement the scale subresource`)
  }
  try {
    const path = pathOf(kind, { namespace, name: reference.name, subresource: 'scale' })
    const response = await client.ask({ method: 'GET', path, signal })
    const scale = parseJson(await response.bytes(MAX_BYTES)) as unknown as ScalableObject
    if (scale.metadata.uid !== reference.uid) return undefined
    return { uid: reference.uid, replicas: scale.spec?.replicas ?? 0 }
  } catch (error) {
    if (isNotFound(error)) return undefined
    throw error
  }
}

function disruptionKey(pod: Pod): string[] {
  return disruptionOf(pod) === undefined ? [] : [POD + objectKey(pod)]
}

function disruptionOf(pod: Pod): NonNullable<Pod['status']['conditions']>[number] | undefined {
  if (isBeingDeleted(pod)) return undefined
  return pod.status.conditions?.find(({ type, status }) => type === 'DisruptionTarget' && status === 'True')
}

/** Clears the condition of a pod that was to be disrupted and still runs. */
async function withdraw(
  key: string,
  { cache, client, clock, signal }: ControllerContext,
): Promise<Requeue | undefined> {
  const pod = cache.get(Pods, key)
  const condition = pod === undefined ? undefined : disruptionOf(pod)
  if (pod === undefined || condition === undefined) return undefined
  const leftMs = epochMsOf(condition.lastTransitionTime ?? timeOf(0)) + EVICTION_MS - clock.now()
  if (leftMs > 0) return { requeueAfterMs: leftMs }
  const { namespace, name = '', uid } = pod.metadata
  const conditions = [
    { type: 'DisruptionTarget', status: 'False', lastTransitionTime: timeOf(clock.now()), reason: null, message: null },
  ]
  const value = { metadata: { uid }, status: { conditions } }
  await client.patch(Pods, { namespace, name, subresource: 'status' }, { type: 'strategic', value }, { signal })
  return undefined
}
