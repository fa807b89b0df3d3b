import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { fieldErrorText } from '#meta/validation/field-error.ts'

import { event, validateStrictEvent, validateStrictEventUpdate } from './event.ts'
import { NOW, trialOf } from './trial.suite.ts'

const trial = trialOf(event)
const metadata = { name: 'e', namespace: 'ns' }
const involvedObject = { kind: 'Pod', namespace: 'ns', name: 'p' }
const newShape = {
  metadata,
  involvedObject,
  eventTime: '2026-01-01T00:00:00.000000Z',
  reportingComponent: 'k8s.io/x',
  reportingInstance: 'x-1',
  action: 'a',
  reason: 'r',
  type: 'Normal',
}
const mismatch = 'involvedObject.namespace: Invalid value: "": does not match event.namespace'

describe('Event', () => {
  it('expires after an hour', () => assert.equal(event.ttlMs, 3_600_000))

  it('in core/v1 refers to an object in its namespace', () => {
    assert.deepEqual(trial.create({ metadata, involvedObject }).errors, [])
    assert.deepEqual(trial.create({ metadata, involvedObject: { kind: 'Node' } }).errors, [mismatch])
    const elsewhere = { ...metadata, namespace: 'default' }
    assert.deepEqual(trial.create({ metadata: elsewhere, involvedObject: { kind: 'Node' } }).errors, [])
  })

  it('with eventTime requires a reporting controller and an action', () => {
    assert.deepEqual(trial.create(newShape).errors, [])
    const bare = { metadata, eventTime: newShape.eventTime, message: 'x'.repeat(1025), action: 'x'.repeat(129) }
    assert.deepEqual(
      trial.create(bare).errors.filter((text) => !text.includes('name part')),
      [
        mismatch,
        'reportingComponent: Required value',
        'reportingInstance: Required value',
        'action: Invalid value: "": can have at most 128 characters',
        'reason: Required value',
        'message: Invalid value: "": can have at most 1024 characters',
      ],
    )
  })

  it('is validated strictly if it is written through events.k8s.io', () => {
    const strict = (sent: Record<string, unknown>): string[] =>
      validateStrictEvent(trial.load(sent)).map(fieldErrorText)
    assert.deepEqual(strict(newShape), [])
    const old = { firstTimestamp: NOW, lastTimestamp: NOW, count: 1, source: { component: 'c' } }
    assert.deepEqual(strict({ ...newShape, ...old, type: 'x', series: { count: 1 } }), [
      'series.count: Invalid value: "": should be at least 2',
      'series.lastObservedTime: Required value',
      'type: Invalid value: "": has invalid value: x',
      'firstTimestamp: Invalid value: "": needs to be unset',
      'lastTimestamp: Invalid value: "": needs to be unset',
      'count: Invalid value: "": needs to be unset',
      'source: Invalid value: "": needs to be unset',
    ])
    assert.deepEqual(strict({ metadata, involvedObject, type: 'Normal' }), ['eventTime: Required value'])
    const generated = { ...metadata, generateName: 'Bad_', name: 'Bad_x' }
    assert.deepEqual(
      strict({ ...newShape, metadata: generated }).map((error) => error.slice(0, error.indexOf(':'))),
      ['metadata.generateName', 'metadata.name'],
    )
  })

  it('allows only changes of its series through events.k8s.io', () => {
    const update = (change: Record<string, unknown>): string[] =>
      validateStrictEventUpdate(trial.load({ ...newShape, ...change }), trial.load(newShape)).map(fieldErrorText)
    assert.deepEqual(update({ series: { count: 2, lastObservedTime: newShape.eventTime } }), [])
    assert.deepEqual(update({ message: 'm', action: 'b', reportingInstance: 'y' }), [
      'message: Invalid value: "m": field is immutable',
      'action: Invalid value: "b": field is immutable',
      'reportingInstance: Invalid value: "y": field is immutable',
    ])
  })

  it('prints its first and last occurrence', () => {
    const at = (seconds: number): string => new Date(Date.parse(NOW) - seconds * 1000).toISOString().replace('.000', '')
    const old = { ...newShape, message: ' m ', source: { component: 'c', host: 'h' }, count: 3 }
    const row = trial.cells({ ...old, eventTime: null, firstTimestamp: at(120), lastTimestamp: at(60) })
    assert.deepEqual(row, ['60s', 'Normal', 'r', 'pod/p', '', 'c, h', 'm', '2m', 3, 'e'])
    const once = trial.cells({ ...newShape, eventTime: at(30).replace('Z', '.000000Z') })
    assert.deepEqual([once[0], once[5], once[8]], ['30s', 'k8s.io/x, x-1', 1])
  })

  it('can be selected by its object', () => {
    const object = trial.load(newShape)
    const value = (name: string): string | undefined => event.fieldSelectors?.[name]?.(object)
    assert.deepEqual(['involvedObject.name', 'source', 'reportingComponent', 'type'].map(value), [
      'p',
      'k8s.io/x',
      'k8s.io/x',
      'Normal',
    ])
  })
})
