/** Counts of EndpointSlices and endpoints over all Services, for metrics of the controller. */
import type { Endpoint, EndpointSlice } from '#apis/discovery/v1.ts'

import { perRun } from '../../controller.ts'
import { type ControllerContext } from '../../controller.ts'
import type { PortGroup, SlicePlan } from './plan.ts'

export interface Total {
  readonly endpoints: number
  readonly slices: number
  /** The number of slices if all were full. */
  readonly desired: number
}

const NOTHING: Total = { endpoints: 0, slices: 0, desired: 0 }

export function addTotals(a: Total, b: Total, sign: 1 | -1 = 1): Total {
  return {
    endpoints: a.endpoints + sign * b.endpoints,
    slices: a.slices + sign * b.slices,
    desired: a.desired + sign * b.desired,
  }
}

/** The sum of one address family of an owner, after the plan. */
export function totalOf(
  groups: readonly PortGroup[],
  maxEndpoints: number,
  existing: readonly EndpointSlice[],
  { create, remove }: SlicePlan,
): Total {
  const sizes = groups.map(({ endpoints }) => endpoints.length)
  return {
    endpoints: sizes.reduce((sum, size) => sum + size, 0),
    slices: existing.length + create.length - remove.length,
    desired: Math.max(
      1,
      sizes.reduce((sum, size) => sum + Math.max(1, Math.ceil(size / maxEndpoints)), 0),
    ),
  }
}

/** The numbers of added and removed endpoints. */
export function turnoverOf(
  groups: readonly PortGroup[],
  existing: readonly EndpointSlice[],
): { readonly added: number; readonly removed: number } {
  const keysOf = (all: readonly { readonly endpoints?: readonly Endpoint[] | null }[]): Set<string> =>
    new Set(
      Array.from(all, ({ endpoints }) => endpoints ?? []).flatMap((ones) => ones.map((one) => one.addresses.join())),
    )
  const [before, after] = [keysOf(existing), keysOf(groups)]
  return { added: after.difference(before).size, removed: before.difference(after).size }
}

/** Sets the sum of an owner; undefined if it is gone. */
export function recordTotal(key: string, total: Total | undefined, context: ControllerContext): void {
  const known = knownOf(context)
  const before = known.byOwner.get(key) ?? NOTHING
  known.all = addTotals(addTotals(known.all, before, -1), total ?? NOTHING)
  if (total === undefined) known.byOwner.delete(key)
  else known.byOwner.set(key, total)
  const { meters } = context
  meters.family('endpoint_slice_controller_endpoints_desired').labels().set(known.all.endpoints)
  meters.family('endpoint_slice_controller_num_endpoint_slices').labels().set(known.all.slices)
  meters.family('endpoint_slice_controller_desired_endpoint_slices').labels().set(known.all.desired)
}

const knownOf = perRun(() => ({ all: NOTHING, byOwner: new Map<string, Total>() }))
