/** The smallest watch cache entry, for benchmarks: only the bytes of the object. */
import type { KeyValue, StorageEvent } from '#storage/backend.ts'

export const PREFIX = '/registry/'

export interface StoredEntry {
  readonly key: string
  readonly modRevision: number
  readonly value: Uint8Array
}

export function describeEntry({ key, modRevision, value }: KeyValue | StorageEvent): StoredEntry {
  return { key, modRevision, value }
}
