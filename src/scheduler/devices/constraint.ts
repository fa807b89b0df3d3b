/** Constraints of a claim: devices that must be alike in an attribute, or all differ in it. Pure. */
import type { DeviceAttribute } from '#apis/resource/v1.ts'

import type { OfferedDevice } from './inventory.ts'
import type { Taken, Wanted } from './wanted.ts'

/** Whether the device may join those that the claim has so far. */
export function isAllowed(wanted: Wanted, offered: OfferedDevice, taken: readonly Taken[]): boolean {
  return (wanted.claim.spec.devices.constraints ?? []).every(({ requests = [], matchAttribute, distinctAttribute }) => {
    const isConcerned = (one: Wanted): boolean =>
      requests.length === 0 || requests.includes(one.request) || requests.includes(one.name)
    if (!isConcerned(wanted)) return true
    const attribute = matchAttribute ?? distinctAttribute ?? ''
    const value = valueOf(offered, attribute)
    if (value === undefined) return false
    const others = taken.filter((one) => isConcerned(one.wanted)).map((one) => valueOf(one.offered, attribute))
    return matchAttribute === undefined ? !others.includes(value) : others.every((other) => other === value)
  })
}

/** With its type, so that no number is equal to a text. Undefined: the device does not have it. */
function valueOf({ device, slice }: OfferedDevice, attribute: string): string | undefined {
  const { driver } = slice.spec
  const { attributes = {} } = device
  // What has no domain belongs to the driver.
  const short = attribute.startsWith(`${driver}/`) ? attribute.slice(driver.length + 1) : ''
  const found: DeviceAttribute | undefined = attributes[attribute] ?? attributes[short]
  const kind = KINDS.find((one) => found?.[one] !== undefined)
  return kind === undefined ? undefined : `${kind} ${found?.[kind]}`
}

const KINDS = ['string', 'int', 'bool', 'version'] as const
