/** Computes when a pod must be evicted because of device taints, and by which rules. Pure. */
import type { Pod } from '#apis/core/v1.ts'
import type {
  Device,
  DeviceRequestAllocationResult,
  DeviceTaint,
  DeviceToleration,
  ResourceClaim,
  ResourceSlice,
} from '#apis/resource/v1.ts'
import type { DeviceTaintRule } from '#apis/resource/v1beta2.ts'
import { keyOf } from '#meta/object.ts'
import { epochMsOf } from '#meta/time.ts'

import { claimNameOf, claimsOf, isFor, isReservedFor, podConsumer } from '../resourceclaim/consumer.ts'

export const EVICTING = 'NoExecute'

export interface Eviction {
  readonly atMs: number
  /** By uid. Taints of the driver have no rule. */
  readonly rules: ReadonlySet<string>
}

/** Device lookups. */
export interface Devices {
  readonly claim: (key: string) => ResourceClaim | undefined
  /** Of all generations. */
  readonly slicesOf: (pool: string) => readonly ResourceSlice[]
  /** The rules with effect NoExecute. */
  readonly rules: readonly DeviceTaintRule[]
  /** Whether PodGroups may reserve claims. */
  readonly hasGroups: boolean
}

/** Undefined if the pod may stay. */
export function evictionOf(pod: Pod, devices: Devices): Eviction | undefined {
  if ((pod.spec.nodeName ?? '') === '') return undefined
  const taints = usedClaims(pod, devices).flatMap((claim) => evictingTaints(claim, devices))
  const times = taints.map(({ atMs }) => atMs).filter((atMs) => atMs !== undefined)
  if (times.length === 0) return undefined
  return { atMs: Math.min(...times), rules: new Set(taints.flatMap(({ rule }) => rule ?? [])) }
}

function usedClaims(pod: Pod, { claim: find, hasGroups }: Devices): ResourceClaim[] {
  return claimsOf(podConsumer(pod)).flatMap((reference) => {
    const name = claimNameOf(podConsumer(pod), reference)
    const claim = typeof name === 'string' ? find(keyOf(pod.metadata.namespace, name)) : undefined
    if (claim?.status.allocation === undefined || !isReservedFor(claim, pod, hasGroups)) return []
    return reference.resourceClaimTemplateName === undefined || isFor(claim, pod, hasGroups) ? [claim] : []
  })
}

interface EvictingTaint {
  readonly atMs: number | undefined
  readonly rule?: string
}

function evictingTaints({ status }: ResourceClaim, devices: Devices): EvictingTaint[] {
  return (status.allocation?.devices.results ?? []).flatMap((result) => {
    const own = deviceOf(result, devices)?.taints ?? []
    const ruled = devices.rules.filter((rule) => isSelected(rule, result))
    const all = [
      ...own.map((taint) => ({ taint })),
      ...ruled.map(({ spec, metadata }) => ({ taint: spec.taint, rule: metadata.uid ?? '' })),
    ]
    return all.flatMap(({ taint, ...rule }) => {
      const atMs = dueMs(taint, result.tolerations ?? [])
      return taint.effect !== EVICTING || atMs === Infinity ? [] : [{ atMs, ...rule }]
    })
  })
}

/** The key of a pool; no part contains a slash. */
export function poolKey(driver: string, pool: string): string {
  return `${driver}/${pool}`
}

/** Only the newest generation of a pool counts. */
function deviceOf({ driver, pool, device }: DeviceRequestAllocationResult, { slicesOf }: Devices): Device | undefined {
  return newest(slicesOf(poolKey(driver, pool)))
    .flatMap(({ spec }) => spec.devices ?? [])
    .find(({ name }) => name === device)
}

export function newest(slices: readonly ResourceSlice[]): ResourceSlice[] {
  const latest = Math.max(...slices.map(({ spec }) => spec.pool.generation))
  return slices.filter(({ spec }) => spec.pool.generation === latest)
}

export function isSelected(
  { spec: { deviceSelector } }: DeviceTaintRule,
  { driver, pool, device }: { readonly driver: string; readonly pool: string; readonly device: string },
): boolean {
  if (deviceSelector === undefined) return false
  const fits = (wanted: string | undefined, is: string): boolean => wanted === undefined || wanted === is
  return fits(deviceSelector.driver, driver) && fits(deviceSelector.pool, pool) && fits(deviceSelector.device, device)
}

/** The end of the tolerated time; Infinity if tolerated forever. */
function dueMs({ timeAdded, ...taint }: DeviceTaint, tolerations: readonly DeviceToleration[]): number | undefined {
  const used = tolerations.filter((toleration) => toleration.effect === EVICTING && tolerates(toleration, taint))
  if (used.some(({ tolerationSeconds }) => tolerationSeconds === undefined)) return Infinity
  if (timeAdded === undefined) return undefined
  const seconds = used.map(({ tolerationSeconds = 0 }) => Math.max(0, tolerationSeconds))
  return epochMsOf(timeAdded) + (seconds.length === 0 ? 0 : Math.min(...seconds) * 1000)
}

function tolerates({ key = '', operator = 'Equal', value = '' }: DeviceToleration, taint: DeviceTaint): boolean {
  if (key !== '' && key !== taint.key) return false
  return operator === 'Exists' || (operator === 'Equal' && value === (taint.value ?? ''))
}
