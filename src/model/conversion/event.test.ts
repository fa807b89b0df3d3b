import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import fc from 'fast-check'

import { arbitraryOf } from '#kits/meta/arbitrary-object.ts'
import type { GroupVersionKind } from '#meta/kind.ts'

import { convert } from './conversion.ts'

const core: GroupVersionKind = { group: '', version: 'v1', kind: 'Event' }
const events: GroupVersionKind = { group: 'events.k8s.io', version: 'v1', kind: 'Event' }

describe('conversion of Events', () => {
  it('renames fields between core/v1 and events.k8s.io/v1', () => {
    const event = {
      kind: 'Event',
      apiVersion: 'v1',
      metadata: { name: 'a', namespace: 'b' },
      involvedObject: { kind: 'Pod', name: 'p' },
      reason: 'Killing',
      message: 'Stopping container c',
      source: { component: 'kubelet', host: 'n' },
      firstTimestamp: '2026-01-02T03:04:05Z',
      lastTimestamp: '2026-01-02T03:04:06Z',
      count: 2,
      type: 'Normal',
      eventTime: null,
      reportingComponent: 'kubelet',
      reportingInstance: 'n',
    }
    const renamed = {
      kind: 'Event',
      apiVersion: 'events.k8s.io/v1',
      metadata: { name: 'a', namespace: 'b' },
      eventTime: null,
      reportingController: 'kubelet',
      reportingInstance: 'n',
      reason: 'Killing',
      regarding: { kind: 'Pod', name: 'p' },
      note: 'Stopping container c',
      type: 'Normal',
      deprecatedSource: { component: 'kubelet', host: 'n' },
      deprecatedFirstTimestamp: '2026-01-02T03:04:05Z',
      deprecatedLastTimestamp: '2026-01-02T03:04:06Z',
      deprecatedCount: 2,
    }
    // As text, because the order of fields is that of the other version.
    assert.equal(JSON.stringify(convert(event, events)), JSON.stringify(renamed))
    assert.equal(JSON.stringify(convert(renamed, core)), JSON.stringify(event))
  })

  for (const [from, to] of [
    [core, events],
    [events, core],
  ] as const) {
    it(`round-trips from ${from.group || 'core'}`, () => {
      const property = fc.property(arbitraryOf(from), (event) => {
        assert.deepEqual(convert(convert(event, to), from), event)
      })
      fc.assert(property)
    })
  }
})
