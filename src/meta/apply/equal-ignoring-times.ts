/** Detects writes that change nothing. Such a write creates no revision and leaves the times of managedFields. */
import type { KubeObject, ManagedFieldsEntry } from '../object.ts'
import { equalValues } from './equal.ts'

/**
 * True if two objects differ at most in the times of their managedFields, regardless of key order. The stored one is
 * then kept. Both must have the same version and form.
 */
export function equalIgnoringTimes(next: KubeObject, live: KubeObject): boolean {
  const { managedFields: entries = [], ...metadata } = next.metadata
  const { managedFields: others = [], ...liveMetadata } = live.metadata
  if (entries.length !== others.length) return false
  // Compares entries first: they differ after any change, and are cheaper to compare.
  if (!entries.every((entry, at) => equalValues(withoutTime(entry), withoutTime(others[at] ?? {})))) return false
  return equalValues({ ...next, metadata }, { ...live, metadata: liveMetadata })
}

function withoutTime(entry: ManagedFieldsEntry): ManagedFieldsEntry {
  const { time: _, ...rest } = entry
  return rest
}
