/** DynamicResources: pods get the devices that they claim, on a node that has them. */
import { Nodes, type Pod } from '#apis/core/v1.ts'
import { DeviceClasses, type ResourceClaim, ResourceClaims, ResourceSlices } from '#apis/resource/v1.ts'
import { DeviceTaintRules } from '#apis/resource/v1beta2.ts'
import { uuid } from '#lib/random.ts'
import { durationMs } from '#meta/duration.ts'
import { objectKey, semanticEqual } from '#meta/object.ts'

import { deallocateClaim, deleteClaim } from '../devices/claim-writing.ts'
import { type Devices, devicesOf } from '../devices/devices.ts'
import { isDeviceResource, unmadeClaim } from '../devices/extended-resources.ts'
import { claimsOf } from '../devices/pod-claims.ts'
import { PodDevices } from '../devices/pod-devices.ts'
import { wishesOf } from '../devices/wanted.ts'
import {
  definePlugin,
  type Handle,
  type PluginFactory,
  type PostFilterResult,
  type Scorer,
  type Search,
  spreadScores,
  unresolvable,
  type Wake,
} from '../framework.ts'
import type { PodInfo } from '../pod-info.ts'

const NAME = 'DynamicResources'

/** Devices may lose a taint by any of these. */
const RULE_WAKES: readonly Wake[] = [{ on: DeviceTaintRules, actions: ['add', 'update', 'delete'] }]

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
    /** Of the pod that is being thought of: points are asked for without what was found out. */
    const decided = new WeakMap<PodInfo, PodDevices>()
    return {
      wakes: [...wakesOf(get), ...(handle.isEnabled('DRADeviceTaintRules') ? RULE_WAKES : [])],
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
      foresee: (search) => whatHelps(search, 'foreseen'),
      async postFilter(search) {
        const { doing, ...result } = whatHelps(search, handle)
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

/** The claim that the scheduler makes itself, or has made; undefined: the pod needs none. */
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

/** What nobody needs to look at nodes for. */
function whyNot(claim: ResourceClaim, devices: Devices): string | undefined {
  if (claim.status.allocation !== undefined) return undefined
  if (devices.ledger.promisedTo(claim.metadata.uid ?? '') !== undefined)
    return `resource claim ${objectKey(claim)} is in the process of being allocated`
  for (const request of claim.spec.devices.requests ?? []) {
    for (const wish of wishesOf(request)) {
      const name = 'name' in wish ? `${request.name}/${wish.name}` : request.name
      const { deviceClassName } = wish
      if (devices.classOf(deviceClassName) === undefined)
        return `request ${name}: device class ${deviceClassName} does not exist`
    }
  }
  return undefined
}

/** Who gets what they would rather have. Undefined: nobody said. */
function scorerOf(found: PodDevices | undefined): Scorer | undefined {
  if (found?.hasAlternatives !== true) return undefined
  return { score: ({ name }) => found.pointsOn(name), normalize: (scores) => spreadScores(scores) }
}

/** A claim that was not to be had on some node, and that nobody else uses, may be had elsewhere. `foreseen`: only words. */
function whatHelps(
  { refused, cases }: Search,
  handle: Handle | 'foreseen',
): PostFilterResult & { readonly doing?: Promise<void> } {
  // Who was refused before this plugin was asked is unknown to it.
  if (refused !== undefined && refused.plugin !== NAME) return { reasons: ['not found'], isBroken: true }
  const found = cases.get(NAME)
  if (!(found instanceof PodDevices)) return { reasons: ['no new claims to deallocate'] }
  const [claim, leftOver] = [found.abandonable(), found.leftOver]
  if (claim === undefined && leftOver === undefined) return { reasons: ['still not schedulable'] }
  const reasons = [`${claim === undefined ? 'deletion' : 'deallocation'} of ResourceClaim completed`]
  if (handle === 'foreseen') return { reasons }
  if (claim !== undefined) return { reasons, doing: deallocateClaim(claim, handle) }
  return { reasons, ...(leftOver !== undefined && { doing: deleteClaim(leftOver, handle) }) }
}

function wakesOf(get: (key: string) => ResourceClaim | undefined): readonly Wake[] {
  return [
    { on: Nodes, actions: ['add', 'labels', 'allocatable'] },
    {
      on: ResourceClaims,
      actions: ['add', 'update'],
      helps(pod, now, old) {
        const claims = claimsOf(pod, get)
        if (typeof claims === 'string') return false
        const [claim, before] = [now as ResourceClaim, old as ResourceClaim | undefined]
        if (before?.status.allocation !== undefined && claim.status.allocation === undefined) return true
        const isOwn = claims.some(({ metadata }) => metadata.uid === claim.metadata.uid)
        return isOwn && (before === undefined || !semanticEqual(claim.status, before.status))
      },
    },
    { on: 'TargetPod', actions: ['claims'], helps: (_, now) => typeof claimsOf(now as Pod, get) !== 'string' },
    { on: DeviceClasses, actions: ['add', 'update'] },
    { on: ResourceSlices, actions: ['add', 'update'] },
    {
      on: 'AssignedPod',
      actions: ['delete'],
      // One that did not get to its node after all: what it was promised is free again, and nobody else tells.
      helps: (_, _now, old) => ((old as Pod).spec.nodeName ?? '') === '',
    },
  ]
}
