/** Refusal cases: invalid metadata of any kind. The number of repeated errors differs from kind to kind. */
import type { Refusal } from './case.ts'

export const badMetadataUpdates: readonly Refusal[] = [
  { why: 'a label with a space is added', on: 'update', set: { '/metadata/labels': { 'a b': 'c' } } },
  { why: 'a deletion timestamp is set', on: 'update', set: { '/metadata/deletionGracePeriodSeconds': 3 } },
  { why: 'a finalizer with a space is added', on: 'update', set: { '/metadata/finalizers': ['a b'] } },
]
