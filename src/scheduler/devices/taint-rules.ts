/** Applies DeviceTaintRules to ResourceSlices: taints that an administrator adds to devices. */
import type { ResourceSlice } from '#apis/resource/v1.ts'
import { type DeviceTaintRule, DeviceTaintRules } from '#apis/resource/v1beta2.ts'

import type { Handle } from '../framework/framework.ts'

/**
 * Returns the slice itself if no rule matches. A rule without a selector matches all devices, as in upstream's tracker.
 */
export function withTaints(slice: ResourceSlice, rules: Iterable<DeviceTaintRule>): ResourceSlice {
  const { driver, pool, devices = [] } = slice.spec
  let tainted = devices
  for (const { spec } of rules) {
    const { driver: ofDriver, pool: ofPool, device: only } = spec.deviceSelector ?? {}
    if (!fits(ofDriver, driver) || !fits(ofPool, pool.name)) continue
    tainted = tainted.map((device) =>
      fits(only, device.name) ? { ...device, taints: [...(device.taints ?? []), spec.taint] } : device,
    )
  }
  return tainted === devices ? slice : { ...slice, spec: { ...slice.spec, devices: tainted } }
}

function fits(wanted: string | undefined, is: string): boolean {
  return wanted === undefined || wanted === is
}

/**
 * Returns a function that patches slices, and calls back when the rules change. Returns slices unchanged if the gate is
 * off.
 */
export function taintRules({ of, isEnabled }: Handle, changed: () => void): (slice: ResourceSlice) => ResourceSlice {
  if (!isEnabled('DRADeviceTaints') || !isEnabled('DRADeviceTaintRules')) return (slice) => slice
  const rules = of(DeviceTaintRules)
  rules.listen({ added: changed, updated: changed, deleted: changed })
  return (slice) => withTaints(slice, rules.list())
}
