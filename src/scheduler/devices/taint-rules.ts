/** DeviceTaintRules: taints that somebody else than the driver puts on devices. Slices are looked at as if the driver had said so. */
import type { ResourceSlice } from '#apis/resource/v1.ts'
import { type DeviceTaintRule, DeviceTaintRules } from '#apis/resource/v1beta2.ts'

import type { Handle } from '../framework.ts'

/** The slice itself where no rule is about any of its devices. Rules without a selector are about all, as upstream's tracker has it. */
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

/** What to make of slices, and who is told when that changes. Where the gate is off slices are what they are. */
export function taintRules({ of, isEnabled }: Handle, changed: () => void): (slice: ResourceSlice) => ResourceSlice {
  if (!isEnabled('DRADeviceTaints') || !isEnabled('DRADeviceTaintRules')) return (slice) => slice
  const rules = of(DeviceTaintRules)
  rules.listen({ added: changed, updated: changed, deleted: changed })
  return (slice) => withTaints(slice, rules.list())
}
