/** Writes that change nothing: those leave no revision, and no trace in the times of managedFields either. */
import type { KubeObject, ManagedFieldsEntry } from '../object.ts'
import { equalValues } from './equal.ts'

/**
 * True when two objects differ in nothing but the times of their managedFields, order of keys aside. The one that is
 * stored is then to be kept. Both must be in the same version and form.
 */
export function sameButForTimes(next: KubeObject, live: KubeObject): boolean {
  const { managedFields: entries = [], ...metadata } = next.metadata
  const { managedFields: others = [], ...liveMetadata } = live.metadata
  if (entries.length !== others.length) return false
  // Entries first: whoever changed something has one that differs, and they are quicker to compare than the rest.
  if (!entries.every((entry, at) => equalValues(withoutTime(entry), withoutTime(others[at] ?? {})))) return false
  return equalValues({ ...next, metadata }, { ...live, metadata: liveMetadata })
}

function withoutTime(entry: ManagedFieldsEntry): ManagedFieldsEntry {
  const { time: _, ...rest } = entry
  return rest
}
