/**
 * Device taint eviction: evicts pods that use a device with a NoExecute taint, at once or after the tolerated time.
 * Updates the status of DeviceTaintRules.
 */
import { type Pod, Pods } from '#apis/core/v1.ts'
import { type ResourceClaim, ResourceClaims, type ResourceSlice, ResourceSlices } from '#apis/resource/v1.ts'
import { type DeviceTaintRule, DeviceTaintRules } from '#apis/resource/v1beta2.ts'
import type { Requeue } from '#lib/work-queue.ts'
import { findCondition } from '#meta/conditions.ts'
import { isBeingDeleted, keyOf, objectKey, semanticEqual } from '#meta/object.ts'
import { isNotFound } from '#meta/status.ts'
import { epochMsOf, timeOf } from '#meta/time.ts'
import { disruptionTarget } from '#model/disruption-target.ts'
import type { Cache, CacheIndex } from '#reconcile/cache.ts'
import { EVENTS, related, rule } from '#reconcile/controller.ts'

import { perRun } from '../../controller.ts'
import { type Controller, type ControllerContext, defineController } from '../../controller.ts'
import { byGroup, WORKLOADS } from '../resourceclaim/consumer.ts'
import { type Devices, EVICTING, type Eviction, evictionOf, isSelected, newest, poolKey } from './plan.ts'
import { ruleCondition, type RuleImpact } from './rule-status.ts'

const NAME = 'device-taint-eviction-controller'
const POD = 'pod:'
const RULE = 'rule:'
const RULES_GATE = 'DRADeviceTaintRules'
/** The period between status updates of a rule. */
const REPORT_MS = 10_000
/** The number of remembered evictions, for pods that the cache still shows. */
const MEMORY = 500

interface EvictionState {
  /** Uids of pods with a scheduled eviction, by key. */
  readonly waiting: Map<string, string>
  readonly evicted: Set<string>
  /** The number of evicted pods by rule uid. */
  readonly counts: Map<string, number>
}

const memoryOf = perRun((): EvictionState => ({ waiting: new Map(), evicted: new Set(), counts: new Map() }))

const slicesByPool: CacheIndex<ResourceSlice> = {
  name: 'pool',
  of: ({ spec }) => [poolKey(spec.driver, spec.pool.name)],
}
const claimsByPool: CacheIndex<ResourceClaim> = {
  name: 'pool',
  of: ({ status }) => [
    ...new Set((status.allocation?.devices.results ?? []).map(({ driver, pool }) => poolKey(driver, pool))),
  ],
}

export const deviceTaintEvictionController: Controller = defineController({
  name: NAME,
  gates: ['DRADeviceTaints'],
  watches: [
    related(Pods, (pod) => (pod.spec.resourceClaims === undefined ? [] : [POD + objectKey(pod)]), isMoved),
    related(ResourceClaims, podsOf),
    related(ResourceSlices, podsOfSlice),
    { ...related(DeviceTaintRules, podsOfRule, (now, old) => !semanticEqual(now.spec, old.spec)), gates: [RULES_GATE] },
  ],
  rules: [
    rule('', 'pods', 'delete get list watch'),
    rule('', 'pods/status', 'patch update'),
    rule('resource.k8s.io', 'resourceclaims resourceslices deviceclasses', 'get list watch'),
    rule('resource.k8s.io', 'devicetaintrules', 'get list watch'),
    rule('resource.k8s.io', 'devicetaintrules/status', 'patch update'),
    EVENTS,
  ],

  async reconcile(key, context) {
    const name = key.slice(key.indexOf(':') + 1)
    return key.startsWith(RULE) ? report(name, context) : syncPod(name, context)
  },
})

/** Other fields affect neither the used devices nor the phase. */
function isMoved(pod: Pod, old: Pod): boolean {
  const comparedFields = ({ spec, status }: Pod): unknown => [spec.nodeName, status.resourceClaimStatuses]
  return !semanticEqual(comparedFields(pod), comparedFields(old))
}

/** The pods that reserve the claim, directly or through their group. */
function podsOf({ metadata, status }: ResourceClaim, cache: Cache): string[] {
  return (status.reservedFor ?? []).flatMap(({ apiGroup = '', resource, name }) => {
    const key = keyOf(metadata.namespace, name)
    if (apiGroup === '' && resource === 'pods') return [POD + key]
    return resource === 'podgroups' ? cache.by(Pods, byGroup, key).map((pod) => POD + objectKey(pod)) : []
  })
}

/** Slices change often: only pools with tainted devices matter. */
function podsOfSlice(slice: ResourceSlice, cache: Cache): string[] {
  const pool = poolKey(slice.spec.driver, slice.spec.pool.name)
  const isTainted = [slice, ...cache.by(ResourceSlices, slicesByPool, pool)].some(({ spec }) =>
    spec.devices?.some(({ taints = [] }) => taints.some(({ effect }) => effect === EVICTING)),
  )
  return isTainted ? cache.by(ResourceClaims, claimsByPool, pool).flatMap((claim) => podsOf(claim, cache)) : []
}

function podsOfRule(one: DeviceTaintRule, cache: Cache): string[] {
  const own = RULE + objectKey(one)
  if (one.spec.taint.effect !== EVICTING) return [own]
  const claims = [...cache.list(ResourceClaims)].filter(({ status }) =>
    status.allocation?.devices.results?.some((result) => isSelected(one, result)),
  )
  return [own, ...claims.flatMap((claim) => podsOf(claim, cache))]
}

function devicesOf({ cache, isEnabled }: ControllerContext, only?: DeviceTaintRule): Devices {
  const all = isEnabled(RULES_GATE) ? [...cache.list(DeviceTaintRules)] : []
  return {
    claim: (key) => cache.get(ResourceClaims, key),
    slicesOf: (pool) => cache.by(ResourceSlices, slicesByPool, pool),
    rules: only === undefined ? all.filter(({ spec }) => spec.taint.effect === EVICTING) : [only],
    hasGroups: isEnabled(WORKLOADS),
  }
}

async function syncPod(key: string, context: ControllerContext): Promise<Requeue | undefined> {
  const { cache, clock, event, enqueue } = context
  const { waiting, evicted } = memoryOf(context)
  const pod = cache.get(Pods, key)
  const eviction = pod === undefined ? undefined : evictionOf(pod, devicesOf(context))
  if (pod === undefined || eviction === undefined) {
    const isCancelled = pod !== undefined && waiting.get(key) === pod.metadata.uid
    waiting.delete(key)
    if (isCancelled) event(referenceTo(pod), { ...NOTE, message: 'Cancelling deletion' })
    return undefined
  }
  const { uid = '' } = pod.metadata
  if (evicted.has(uid)) return undefined
  for (const one of rulesOf(eviction, cache)) enqueue(RULE + objectKey(one), REPORT_MS)
  waiting.set(key, uid)
  const leftMs = eviction.atMs - clock.now()
  if (leftMs > 0) return { requeueAfterMs: leftMs }
  await evict(pod, eviction, context)
  return undefined
}

const NOTE = { type: 'Normal', reason: 'DeviceTaintManagerEviction' } as const

function referenceTo({ metadata: { namespace, name, uid } }: Pod): Pod {
  return { kind: 'Pod', apiVersion: 'v1', metadata: { namespace, name, uid } } as unknown as Pod
}

function rulesOf({ rules }: Eviction, cache: Cache): DeviceTaintRule[] {
  return rules.size === 0
    ? []
    : [...cache.list(DeviceTaintRules)].filter(({ metadata }) => rules.has(metadata.uid ?? ''))
}

async function evict(pod: Pod, eviction: Eviction, context: ControllerContext): Promise<void> {
  const { waiting, evicted, counts } = memoryOf(context)
  const { uid = '' } = pod.metadata
  try {
    await markAndDelete(pod, context)
    const { meters, clock } = context
    meters.family('device_taint_eviction_controller_pod_deletions_total').labels().inc()
    const latency = meters.family('device_taint_eviction_controller_pod_deletion_duration_seconds').labels()
    latency.observe((clock.now() - eviction.atMs) / 1000)
    for (const of of eviction.rules) counts.set(of, (counts.get(of) ?? 0) + 1)
    for (const one of rulesOf(eviction, context.cache)) context.enqueue(RULE + objectKey(one), REPORT_MS)
  } catch (error) {
    if (!isNotFound(error)) throw error
  }
  waiting.delete(objectKey(pod))
  evicted.add(uid)
  const [oldest = ''] = evicted
  if (evicted.size > MEMORY) evicted.delete(oldest)
}

/** Throws NotFound if another pod has the name by now. */
async function markAndDelete(pod: Pod, { client, clock, signal, event }: ControllerContext): Promise<void> {
  const { namespace, name = '', uid } = pod.metadata
  const current = await client.get(Pods, { namespace, name }, { signal })
  if (current.metadata.uid !== uid || isBeingDeleted(current)) return
  event(referenceTo(pod), { ...NOTE, message: 'Marking for deletion' })
  const why = {
    reason: 'DeletionByDeviceTaintManager',
    message: 'Device Taint manager: deleting due to NoExecute taint',
  }
  const value = { metadata: { uid }, status: disruptionTarget(current, why, clock.now()) }
  await client.patch(Pods, { namespace, name, subresource: 'status' }, { type: 'strategic', value }, { signal })
  await client.delete(Pods, { namespace, name }, { ...(uid !== undefined && { preconditions: { uid } }), signal })
}

async function report(name: string, context: ControllerContext): Promise<Requeue | undefined> {
  const { cache, client, clock, signal } = context
  const one = cache.get(DeviceTaintRules, name)
  if (one === undefined) return undefined
  const { generation: observedGeneration = 0, uid } = one.metadata
  const before = findCondition(one.status.conditions, 'EvictionInProgress')
  const sinceMs = before === undefined ? Infinity : clock.now() - epochMsOf(before.lastTransitionTime)
  if (before?.observedGeneration === observedGeneration && sinceMs < REPORT_MS)
    return { requeueAfterMs: REPORT_MS - sinceMs }
  const desired = { type: 'EvictionInProgress', ...ruleCondition(one, reachOf(one, context)), observedGeneration }
  if (
    before !== undefined &&
    semanticEqual({ ...before }, { ...desired, lastTransitionTime: before.lastTransitionTime })
  )
    return undefined
  const condition = { ...desired, lastTransitionTime: timeOf(clock.now()) }
  await client.apply(
    DeviceTaintRules,
    { metadata: { name, ...(uid !== undefined && { uid }) }, status: { conditions: [condition] } },
    { fieldManager: NAME, force: true, subresource: 'status', signal },
  )
  return undefined
}

function reachOf(one: DeviceTaintRule, context: ControllerContext): RuleImpact {
  const { cache } = context
  const { uid = '' } = one.metadata
  const { effect } = one.spec.taint
  const evicted = memoryOf(context).counts.get(uid) ?? 0
  const nothing = { publishedDevices: 0, allocatedDevices: 0, pods: 0, namespaces: 0, evicted }
  if (effect !== EVICTING && effect !== 'None') return nothing
  const as = { ...one, spec: { ...one.spec, taint: { ...one.spec.taint, effect: EVICTING } } }
  const devices = devicesOf(context, as)
  const isReached = (pod: Pod): boolean => !isBeingDeleted(pod) && evictionOf(pod, devices)?.rules.has(uid) === true
  const pods = [...cache.list(Pods)].filter((pod) => pod.spec.resourceClaims !== undefined && isReached(pod))
  const namespaces = new Set(pods.map(({ metadata }) => metadata.namespace)).size
  const reach = { ...nothing, pods: pods.length, namespaces }
  return effect === 'None' ? { ...reach, ...selectedDevices(one, cache) } : reach
}

function selectedDevices(
  one: DeviceTaintRule,
  cache: Cache,
): Pick<RuleImpact, 'publishedDevices' | 'allocatedDevices'> {
  const pools = new Set([...cache.list(ResourceSlices)].map(({ spec }) => poolKey(spec.driver, spec.pool.name)))
  const slices = [...pools].flatMap((pool) => newest(cache.by(ResourceSlices, slicesByPool, pool)))
  const published = slices.flatMap(({ spec: { driver, pool, devices = [] } }) =>
    devices.filter(({ name }) => isSelected(one, { driver, pool: pool.name, device: name })),
  )
  const results = [...cache.list(ResourceClaims)].flatMap(({ status }) => status.allocation?.devices.results ?? [])
  return {
    publishedDevices: published.length,
    allocatedDevices: results.filter((result) => isSelected(one, result)).length,
  }
}
