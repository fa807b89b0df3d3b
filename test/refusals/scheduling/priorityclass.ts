import { PriorityClasses } from '#apis/scheduling/v1.ts'

import type { KindCases } from '../case.ts'
import { badMetadataUpdates } from '../metadata.ts'

export const priorityClass: KindCases = {
  kind: PriorityClasses,
  valid: { metadata: { name: 'refused-high' }, value: 1000 },
  refused: [
    { why: 'a value above the limit for users', set: { '/value': 1_000_000_001 } },
    { why: 'a value that is not an int32', set: { '/value': 3_000_000_000 } },
    { why: 'a value that is a text', set: { '/value': 'high' } },
    { why: 'a name reserved for the system', set: { '/metadata/name': 'system-high' } },
    { why: 'a system class of another value', set: { '/metadata/name': 'system-node-critical', '/value': 1 } },
    {
      why: 'a system class that is the default',
      set: { '/metadata/name': 'system-node-critical', '/value': 2_000_001_000, '/globalDefault': true },
    },
    { why: 'an unknown preemption policy', set: { '/preemptionPolicy': 'Sometimes' } },
    { why: 'an empty preemption policy', set: { '/preemptionPolicy': '' } },
    {
      why: 'a value that is too high and an unknown policy',
      set: { '/value': 2_000_000_000, '/preemptionPolicy': 'Sometimes' },
    },
    { why: 'a name with capitals', set: { '/metadata/name': 'High' } },
    { why: 'no name', set: { '/metadata/name': undefined } },
    { why: 'the value changes', on: 'update', set: { '/value': 2 } },
    { why: 'the value is removed', on: 'update', set: { '/value': undefined } },
    { why: 'the policy changes', on: 'update', set: { '/preemptionPolicy': 'Never' } },
    { why: 'the policy becomes invalid', on: 'update', set: { '/preemptionPolicy': 'Sometimes' } },
    { why: 'both change', on: 'update', set: { '/value': 3, '/preemptionPolicy': 'Never' } },
    ...badMetadataUpdates,
  ],
  taken: [{ why: 'a namespace, where there is none', set: { '/metadata/namespace': 'default' } }],
}
