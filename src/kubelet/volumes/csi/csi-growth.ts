/** Volumes that have grown behind their claims: whether the node must do its part, and what the claim then says. Pure. */
import type { PersistentVolumeClaim } from '#apis/core/v1.ts'
import { compareQuantities, parseQuantity, quantityValue } from '#meta/quantity.ts'

import type { CsiSource } from './csi-source.ts'

/** How large the volume is to be; undefined as long as the claim says so already. */
export function growthOf({ persistent, claim, readOnly }: CsiSource): number | undefined {
  const wanted = persistent?.spec.capacity?.['storage']
  const there = claim?.status.capacity?.['storage']
  if (wanted === undefined || there === undefined || readOnly) return undefined
  const size = parseQuantity(wanted)
  return compareQuantities(size, parseQuantity(there)) > 0 ? quantityValue(size) : undefined
}

const RESIZE_CONDITIONS: ReadonlySet<string> = new Set([
  'Resizing',
  'FileSystemResizePending',
  'ControllerResizeError',
  'NodeResizeError',
])

/** A merge patch of a claim whose volume has grown to what stands behind it. */
export function grownClaim({ status }: PersistentVolumeClaim, size: string): object {
  const conditions = (status.conditions ?? []).filter(({ type }) => !RESIZE_CONDITIONS.has(type))
  return {
    status: {
      capacity: { storage: size },
      conditions: conditions.length === 0 ? null : conditions,
      allocatedResourceStatuses: status.allocatedResourceStatuses === undefined ? null : { storage: null },
    },
  }
}
