/**
 * Translates managedFields between a workload and its Scale. A write to the Scale takes the replicas from other
 * managers of the workload.
 */
import type { ManagedFieldsEntry } from '../object.ts'
import type { Owned } from './apply-kind.ts'
import { difference, fieldPaths, type FieldSet, intersection, isEmptySet } from './field-set.ts'
import { decodeManaged, encodeManaged } from './managed-fields.ts'

/**
 * The path of replicas in each version of the workload: `spec.replicas`. Null for versions without a scale subresource;
 * entries of other versions are dropped.
 */
export type ReplicasPaths = ReadonlyMap<string, string | null>

const SCALE_VERSION = 'autoscaling/v1'
const SCALE_REPLICAS = fieldPaths('spec.replicas')

/** The entries of a Scale. Throws if the workload's are unreadable. */
export function scaleEntries(
  workload: readonly ManagedFieldsEntry[] | undefined,
  paths: ReplicasPaths,
): ManagedFieldsEntry[] {
  const { managers, times } = decodeManaged(workload ?? [])
  const shown = new Map<string, Owned>()
  for (const [id, owned] of managers) {
    if (owns(owned.set, replicasIn(paths, owned.apiVersion)))
      shown.set(id, { ...owned, set: SCALE_REPLICAS, apiVersion: SCALE_VERSION })
  }
  return encodeManaged({ managers: shown, times })
}

export interface ScaleWrite {
  /** The entries of the workload, before the write. */
  readonly workload: readonly ManagedFieldsEntry[] | undefined
  /** The entries of the Scale, after the write; initially those of `scaleEntries`. */
  readonly scale: readonly ManagedFieldsEntry[] | undefined
  /** The version of the workload in the request. */
  readonly apiVersion: string
  readonly paths: ReplicasPaths
}

/** The entries of the workload after a write to its Scale. Throws if either's are unreadable. */
export function workloadEntries({ workload, scale, apiVersion, paths }: ScaleWrite): ManagedFieldsEntry[] {
  const { managers, times } = decodeManaged(workload ?? [])
  const left = new Map(decodeManaged(scale ?? []).managers)
  const result = new Map<string, Owned>()
  for (const [id, owned] of managers) {
    const path = replicasIn(paths, owned.apiVersion)
    if (path === undefined) continue
    const stolen = owns(owned.set, path) && !left.delete(id) ? path : undefined
    const set = stolen ? difference(owned.set, stolen) : owned.set
    if (!isEmptySet(set)) result.set(id, { ...owned, set })
  }
  const path = replicasIn(paths, apiVersion)
  for (const [id, { set, applied }] of left) {
    if (owns(set, SCALE_REPLICAS) && path) result.set(id, { set: path, apiVersion, applied })
  }
  return encodeManaged({ managers: result, times })
}

function replicasIn(paths: ReplicasPaths, apiVersion: string): FieldSet | null | undefined {
  const path = paths.get(apiVersion)
  return typeof path === 'string' ? fieldPaths(path) : path
}

/** True if `set` contains the single path of `path`. */
function owns(set: FieldSet, path: FieldSet | null | undefined): boolean {
  return path !== null && path !== undefined && !isEmptySet(intersection(set, path))
}
