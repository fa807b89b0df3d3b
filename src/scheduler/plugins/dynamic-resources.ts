/** DynamicResources: allocates the devices that a pod claims, on a node that has them. */
import { Nodes, type Pod } from '#apis/core/v1.ts'
import { DeviceClasses, type ResourceClaim, ResourceClaims, ResourceSlices } from '#apis/resource/v1.ts'
import { DeviceTaintRules } from '#apis/resource/v1beta2.ts'
import { durationMs } from '#lib/go/duration.ts'
import { uuid } from '#lib/random.ts'
import { objectKey, semanticEqual } from '#meta/object.ts'

import type { PodInfo } from '../cluster/pod-info.ts'
import { deallocateClaim, deleteClaim } from '../devices/claim-writing.ts'
import { alternativesOf } from '../devices/device-requests.ts'
import { type Devices, devicesOf } from '../devices/devices.ts'
import { isDeviceResource, unmadeClaim } from '../devices/extended-resources.ts'
import { claimsOf } from '../devices/pod-claims.ts'
import { PodDevices } from '../devices/pod-devices.ts'
import {
  type ClusterEventWithHint,
  definePlugin,
  type Handle,
  type PluginFactory,
  type PostFilterResult,
  type Scorer,
  type Search,
  spreadScores,
  unresolvable,
} from '../framework/framework.ts'

const NAME = 'DynamicResources'

/** Each of these events may remove a taint from a device. */
const RULE_EVENTS: readonly ClusterEventWithHint[] = [
  { resource: DeviceTaintRules, actions: ['add', 'update', 'delete'] },
]

export interface DynamicResourcesArgs {
  readonly filterTimeout?: string
  readonly bindingTimeout?: string
}

export const dynamicResources: PluginFactory = definePlugin({
  name: NAME,
  create(handle: Handle, { filterTimeout = '10s', bindingTimeout = '10m' }: DynamicResourcesArgs) {
    const devices = devicesOf(handle)
    const get = (key: string): ResourceClaim | undefined => handle.of(ResourceClaims).get(key)
    const parts = {
      handle,
      devices,
      filterTimeoutMs: handle.isEnabled('DRASchedulerFilterTimeout') ? durationMs(filterTimeout) : 0,
      bindingTimeoutMs: durationMs(bindingTimeout),
    }
    /** The state of the pod in this cycle: `score` gets no plugin state. */
    const decided = new WeakMap<PodInfo, PodDevices>()
    return {
      eventsToRegister: [...registeredEvents(get), ...(handle.isEnabled('DRADeviceTaintRules') ? RULE_EVENTS : [])],
      preEnqueue({ pod }) {
        const claims = claimsOf(pod, get)
        return typeof claims === 'string' ? unresolvable(claims) : undefined
      },
      preFilter(pod) {
        const claims = claimsOf(pod.pod, get)
        if (typeof claims === 'string') return unresolvable(claims)
        const extended = extendedClaimOf(pod, devices, handle)
        if (claims.length === 0 && extended === undefined) return undefined
        const why = claims.map((claim) => whyNot(claim, devices)).find((one) => one !== undefined)
        if (why !== undefined) return unresolvable(why)
        const found = new PodDevices(pod, { claims: [...claims], extended }, parts)
        decided.set(pod, found)
        return found
      },
      preScore: (pod) => scorerOf(decided.get(pod)),
      previewPostFilter: (search) => deallocateUnused(search, 'foreseen'),
      async postFilter(search) {
        const { doing, ...result } = deallocateUnused(search, handle)
        try {
          await doing
          return result
        } catch (error) {
          return { reasons: [(error as Error).message], isBroken: true }
        }
      },
    }
  },
})

/** The claim that the scheduler creates or has created; undefined: the pod needs none. */
function extendedClaimOf(
  { pod, uid, requests }: PodInfo,
  devices: Devices,
  { of, isEnabled, random }: Handle,
): ResourceClaim | undefined {
  if (requests.others === undefined || !isEnabled('DRAExtendedResource')) return undefined
  const isBacked = ([name, amount]: readonly [string, number]): boolean =>
    amount > 0 && isDeviceResource(name) && devices.classFor(name) !== undefined
  if (![...requests.others].some(isBacked)) return undefined
  return of(ResourceClaims).by('extended', uid)[0] ?? unmadeClaim(pod, uuid(random))
}

/** Reasons to reject the pod before any node is visited. */
function whyNot(claim: ResourceClaim, devices: Devices): string | undefined {
  if (claim.status.allocation !== undefined) return undefined
  if (devices.ledger.promisedTo(claim.metadata.uid ?? '') !== undefined)
    return `resource claim ${objectKey(claim)} is in the process of being allocated`
  for (const request of claim.spec.devices.requests ?? []) {
    for (const alternative of alternativesOf(request)) {
      const name = 'name' in alternative ? `${request.name}/${alternative.name}` : request.name
      const { deviceClassName } = alternative
      if (devices.classOf(deviceClassName) === undefined)
        return `request ${name}: device class ${deviceClassName} does not exist`
    }
  }
  return undefined
}

/** Prefers nodes with earlier alternatives. Undefined: no claim has alternatives. */
function scorerOf(found: PodDevices | undefined): Scorer | undefined {
  if (found?.hasAlternatives !== true) return undefined
  return { score: ({ name }) => found.scoreOn(name), normalize: (scores) => spreadScores(scores) }
}

/** Deallocates an unused claim that does not fit some node, so that it may fit another. `preview`: without effects. */
function deallocateUnused(
  { refused, cycleState }: Search,
  handle: Handle | 'foreseen',
): PostFilterResult & { readonly doing?: Promise<void> } {
  // An earlier plugin rejected the pod, so this one has no state.
  if (refused !== undefined && refused.plugin !== NAME) return { reasons: ['not found'], isBroken: true }
  const found = cycleState.get(NAME)
  if (!(found instanceof PodDevices)) return { reasons: ['no new claims to deallocate'] }
  const [claim, leftOver] = [found.claimToDeallocate(), found.staleExtendedClaim]
  if (claim === undefined && leftOver === undefined) return { reasons: ['still not schedulable'] }
  const reasons = [`${claim === undefined ? 'deletion' : 'deallocation'} of ResourceClaim completed`]
  if (handle === 'foreseen') return { reasons }
  if (claim !== undefined) return { reasons, doing: deallocateClaim(claim, handle) }
  return { reasons, ...(leftOver !== undefined && { doing: deleteClaim(leftOver, handle) }) }
}

function registeredEvents(get: (key: string) => ResourceClaim | undefined): readonly ClusterEventWithHint[] {
  return [
    { resource: Nodes, actions: ['add', 'labels', 'allocatable'] },
    {
      resource: ResourceClaims,
      actions: ['add', 'update'],
      queueingHint(pod, now, old) {
        const claims = claimsOf(pod, get)
        if (typeof claims === 'string') return false
        const [claim, before] = [now as ResourceClaim, old as ResourceClaim | undefined]
        if (before?.status.allocation !== undefined && claim.status.allocation === undefined) return true
        const isOwn = claims.some(({ metadata }) => metadata.uid === claim.metadata.uid)
        return isOwn && (before === undefined || !semanticEqual(claim.status, before.status))
      },
    },
    {
      resource: 'TargetPod',
      actions: ['claims'],
      queueingHint: (_, now) => typeof claimsOf(now as Pod, get) !== 'string',
    },
    { resource: DeviceClasses, actions: ['add', 'update'] },
    { resource: ResourceSlices, actions: ['add', 'update'] },
    {
      resource: 'AssignedPod',
      actions: ['delete'],
      // A pod that was not bound in the end releases its devices; no other event reports that.
      queueingHint: (_, _now, old) => ((old as Pod).spec.nodeName ?? '') === '',
    },
  ]
}
