import { Events } from '#apis/core/v1.ts'

import type { KindCases, Trial } from '../case.ts'

/** With an eventTime, rules of the newer API hold. */
const NEWER = {
  '/eventTime': '2026-01-01T00:00:00.000000Z',
  '/reportingComponent': 'example.com/controller',
  '/reportingInstance': 'controller-1',
  '/action': 'Pulling',
  '/reason': 'Pulled',
}

const newer = (why: string, set: Trial['set']): Trial => ({ why, set: { ...NEWER, ...set } })

export const event: KindCases = {
  kind: Events,
  valid: {
    metadata: { name: 'web.1' },
    involvedObject: { apiVersion: 'v1', kind: 'Pod', namespace: 'default', name: 'web' },
    type: 'Normal',
  },
  refused: [
    { why: 'the object is in another namespace', set: { '/involvedObject/namespace': 'other' } },
    {
      why: 'the object is of the cluster but in a namespace',
      set: { '/involvedObject': { apiVersion: 'v1', kind: 'Node', namespace: 'other', name: 'a' } },
    },
    { why: 'the count is text', set: { '/count': 'many' } },
    { why: 'the event time is not a time', set: { '/eventTime': 'now' } },
    newer('the reporter has a space', { '/reportingComponent': 'a b' }),
    newer('the reporter is missing', { '/reportingComponent': '' }),
    newer('the instance is missing', { '/reportingInstance': '' }),
    newer('the instance is too long', { '/reportingInstance': 'a'.repeat(129) }),
    newer('the action is missing', { '/action': '' }),
    newer('the action is too long', { '/action': 'a'.repeat(129) }),
    newer('the reason is missing', { '/reason': '' }),
    newer('the reason is too long', { '/reason': 'a'.repeat(129) }),
    newer('the message is too long', { '/message': 'a'.repeat(1025) }),
    { why: 'a label is none', on: 'update', set: { '/metadata/labels': { a: 'b c' } } },
    { why: 'the object becomes one of another namespace', on: 'update', set: { '/involvedObject/namespace': 'other' } },
  ],
  taken: [
    { why: 'the reporter of a newer one changes', on: 'update', stored: NEWER, set: { '/reportingInstance': 'other' } },
    { why: 'the action of a newer one changes', on: 'update', stored: NEWER, set: { '/action': 'Pushing' } },
    newer('a series counts once', { '/series': { count: 1, lastObservedTime: '2026-01-01T00:00:00.000000Z' } }),
    newer('the type is unknown', { '/type': 'Odd' }),
    { why: 'the object has no namespace', set: { '/involvedObject/namespace': undefined } },
    { why: 'the name has capitals', set: { '/metadata/name': 'Web' } },
    { why: 'an old one has a type that is unknown', set: { '/type': 'Odd' } },
  ],
}
