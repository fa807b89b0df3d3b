/** What no kind's metadata may become. How often it is said differs from kind to kind. */
import type { Refusal } from './case.ts'

export const badMetadataUpdates: readonly Refusal[] = [
  { why: 'a label with a space comes', on: 'update', set: { '/metadata/labels': { 'a b': 'c' } } },
  { why: 'it is said to be on its way out', on: 'update', set: { '/metadata/deletionGracePeriodSeconds': 3 } },
  { why: 'a finalizer with a space comes', on: 'update', set: { '/metadata/finalizers': ['a b'] } },
]
