/** Plans the expansion of CSI volumes: whether the node has to expand, and the new status of the claim. Pure. */
import type { PersistentVolumeClaim } from '#apis/core/v1.ts'
import { compareQuantities, parseQuantity, quantityValue } from '#meta/quantity.ts'

import type { CsiSource } from './csi-source.ts'

/** The required size in bytes; undefined when the claim already has that capacity. */
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

/** The merge patch for the status of a claim whose volume was expanded. */
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
