import { Events } from '#apis/events/v1.ts'

import type { KindCases } from '../case.ts'
import { badMetadataUpdates } from '../metadata.ts'
import { shownAs } from '../our-words.ts'

const LONG = 'x'.repeat(129)
const TIME = '2026-01-01T00:00:00.000000Z'

export const event: KindCases = {
  kind: Events,
  valid: {
    metadata: { name: 'pulled' },
    eventTime: TIME,
    reportingController: 'example.com/controller',
    reportingInstance: 'i',
    action: 'Pulling',
    reason: 'Pulled',
    type: 'Normal',
    regarding: { kind: 'Pod', namespace: 'default', name: 'p', apiVersion: 'v1' },
    note: 'n',
  },
  refused: [
    { why: 'no time', set: { '/eventTime': undefined } },
    { why: 'no controller', set: { '/reportingController': undefined } },
    { why: 'a controller with a space', set: { '/reportingController': 'a b' } },
    { why: 'no instance', set: { '/reportingInstance': '' } },
    { why: 'an instance too long', set: { '/reportingInstance': LONG } },
    { why: 'no action', set: { '/action': undefined } },
    { why: 'an action too long', set: { '/action': LONG } },
    { why: 'no reason', set: { '/reason': undefined } },
    { why: 'a reason too long', set: { '/reason': LONG } },
    { why: 'a note too long', set: { '/note': 'x'.repeat(1025) } },
    { why: 'no type', set: { '/type': undefined } },
    { why: 'an unknown type', set: { '/type': 'Odd' } },
    { why: 'a series of one', set: { '/series': { count: 1, lastObservedTime: TIME } } },
    { why: 'a series without a time', set: { '/series': { count: 2 } } },
    { why: 'a count of an older release', set: { '/deprecatedCount': 1 } },
    {
      why: 'old time fields',
      set: { '/deprecatedFirstTimestamp': '2026-01-01T00:00:00Z', '/deprecatedLastTimestamp': '2026-01-01T00:00:00Z' },
    },
    { why: 'a source of an older release', set: { '/deprecatedSource': { component: 'x' } } },
    { why: 'no name', set: { '/metadata/name': undefined } },
    { why: 'a name with capitals', set: { '/metadata/name': 'Pulled' } },
    { why: 'only a name', body: { metadata: { name: 'pulled' } } },
    {
      why: 'an empty reference in a different namespace',
      set: { '/metadata/namespace': 'kube-public', '/regarding/namespace': undefined },
    },
    { why: 'another reason', on: 'update', set: { '/reason': 'Other' } },
    { why: 'another note', on: 'update', set: { '/note': 'other' } },
    { why: 'another type', on: 'update', set: { '/type': 'Warning' } },
    { why: 'another action', on: 'update', set: { '/action': 'Other' } },
    { why: 'another time', on: 'update', set: { '/eventTime': '2027-01-01T00:00:00.000000Z' } },
    { why: 'another controller', on: 'update', set: { '/reportingController': 'other' } },
    { why: 'another instance', on: 'update', set: { '/reportingInstance': 'other' } },
    {
      why: 'about another object',
      on: 'update',
      set: { '/regarding/name': 'q' },
      ...shownAs({ kind: 'Pod', namespace: 'default', name: 'q', apiVersion: 'v1' }),
    },
    {
      why: 'another related object',
      on: 'update',
      set: { '/related': { kind: 'Pod', name: 'q' } },
      ...shownAs({ kind: 'Pod', name: 'q' }),
    },
    {
      why: 'a source of an older release is added',
      on: 'update',
      set: { '/deprecatedSource': { component: 'x' } },
      ...shownAs({ component: 'x' }),
    },
    { why: 'a count of an older release is added', on: 'update', set: { '/deprecatedCount': 3 } },
    { why: 'an old time field is added', on: 'update', set: { '/deprecatedFirstTimestamp': '2026-01-01T00:00:00Z' } },
    { why: 'a bad series is added', on: 'update', set: { '/series': { count: 1 } } },
    ...badMetadataUpdates,
  ],
}
