/** Checks the constraints of a claim: devices must have equal or distinct values of an attribute. Pure. */
import type { DeviceAttribute } from '#apis/resource/v1.ts'

import type { DeviceRequestAlternative, TakenDevice } from './device-requests.ts'
import type { OfferedDevice } from './inventory.ts'

/** Whether the device may join those already taken for the claim. */
export function isAllowed(
  wanted: DeviceRequestAlternative,
  offered: OfferedDevice,
  taken: readonly TakenDevice[],
): boolean {
  return (wanted.claim.spec.devices.constraints ?? []).every(({ requests = [], matchAttribute, distinctAttribute }) => {
    const isConcerned = (one: DeviceRequestAlternative): boolean =>
      requests.length === 0 || requests.includes(one.request) || requests.includes(one.name)
    if (!isConcerned(wanted)) return true
    const attribute = matchAttribute ?? distinctAttribute ?? ''
    const value = valueOf(offered, attribute)
    if (value === undefined) return false
    const others = taken.filter((one) => isConcerned(one.wanted)).map((one) => valueOf(one.offered, attribute))
    return matchAttribute === undefined ? !others.includes(value) : others.every((other) => other === value)
  })
}

/** Prefixed with its type, so that no number equals a string. Undefined: the device lacks the attribute. */
function valueOf({ device, slice }: OfferedDevice, attribute: string): string | undefined {
  const { driver } = slice.spec
  const { attributes = {} } = device
  // An attribute without a domain belongs to the driver's.
  const short = attribute.startsWith(`${driver}/`) ? attribute.slice(driver.length + 1) : ''
  const found: DeviceAttribute | undefined = attributes[attribute] ?? attributes[short]
  const kind = KINDS.find((one) => found?.[one] !== undefined)
  return kind === undefined ? undefined : `${kind} ${found?.[kind]}`
}

const KINDS = ['string', 'int', 'bool', 'version'] as const
