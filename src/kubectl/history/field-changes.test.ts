import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import type { KubeObject } from '#meta/object.ts'

import { changeText, changingManagers, fieldChanges } from './field-changes.ts'

function object(fields: object): KubeObject {
  return { apiVersion: 'apps/v1', kind: 'Deployment', metadata: { name: 'web' }, ...fields }
}

describe('fieldChanges()', () => {
  const containers = (...images: string[]): object => ({
    spec: { template: { spec: { containers: images.map((image, at) => ({ name: `c${at}`, image })) } } },
  })
  const rows: readonly (readonly [title: string, before: object, after: object, texts: readonly string[]])[] = [
    ['nothing', { spec: { replicas: 1 } }, { spec: { replicas: 1 } }, []],
    ['a value', { spec: { replicas: 1 } }, { spec: { replicas: 3 } }, ['spec.replicas: 1 → 3']],
    ['a new field', { spec: {} }, { spec: { paused: true } }, ['spec.paused: + true']],
    ['a removed field', { spec: { paused: true } }, { spec: {} }, ['spec.paused: - true']],
    [
      'elements by name',
      containers('nginx:1', 'envoy:1'),
      containers('nginx:2', 'envoy:1'),
      ['spec.template.spec.containers[c0].image: nginx:1 → nginx:2'],
    ],
    [
      'an added element',
      containers('nginx:1'),
      containers('nginx:1', 'envoy:1'),
      ['spec.template.spec.containers[c1]: + {"name":"c1","image":"envoy:1"}'],
    ],
    [
      'conditions by type',
      { status: { conditions: [{ type: 'Ready', status: 'False' }] } },
      { status: { conditions: [{ type: 'Ready', status: 'True' }] } },
      ['status.conditions[Ready].status: False → True'],
    ],
    ['elements without names', { args: ['a', 'b'] }, { args: ['a', 'c'] }, ['args[1]: b → c']],
    ['names with dots', { labels: { 'a.b/c': 'x' } }, { labels: { 'a.b/c': 'y' } }, ['labels[a.b/c]: x → y']],
    ['another type', { value: 'text' }, { value: { a: 1 } }, ['value: text → {"a":1}']],
    ['long values', { value: 'x'.repeat(100) }, { value: 'y' }, [`value: ${'x'.repeat(39)}… → y`]],
  ]
  for (const [title, before, after, texts] of rows) {
    it(`shows ${title}`, () => {
      assert.deepEqual(fieldChanges(object(before), object(after)).map(changeText), texts)
    })
  }

  it('leaves out what changes with every write', () => {
    const metadata = (version: string): object => ({
      metadata: {
        name: 'web',
        resourceVersion: version,
        generation: Number(version),
        managedFields: [{ time: version }],
      },
    })
    assert.deepEqual(fieldChanges(object(metadata('1')), object(metadata('2'))), [])
  })
})

describe('changingManagers()', () => {
  const managed = (...entries: readonly (readonly [manager: string, time: string])[]): KubeObject =>
    object({ metadata: { name: 'web', managedFields: entries.map(([manager, time]) => ({ manager, time })) } })

  it('names the managers whose fields differ, newest first', () => {
    const before = managed(['kubectl', '01'], ['controller', '02'])
    assert.deepEqual(changingManagers(before, managed(['kubectl', '01'], ['controller', '03'])), ['controller'])
    assert.deepEqual(changingManagers(before, managed(['kubectl', '04'], ['controller', '05'])), [
      'controller',
      'kubectl',
    ])
    assert.deepEqual(changingManagers(undefined, managed(['kubectl', '01'])), ['kubectl'])
    assert.deepEqual(changingManagers(before, before), [])
  })

  it('does not name a manager that only lost fields', () => {
    const entry = (manager: string, time: string, fields: object): object => ({ manager, time, fieldsV1: fields })
    const owned = (...entries: object[]): KubeObject => object({ metadata: { name: 'web', managedFields: entries } })
    const before = owned(entry('kubectl-create', '01', { a: {}, b: {} }))
    const after = owned(entry('kubectl-create', '01', { a: {} }), entry('kubectl-set', '01', { b: {} }))
    assert.deepEqual(changingManagers(before, after), ['kubectl-set'])
    assert.deepEqual(changingManagers(before, owned(entry('kubectl-create', '01', { a: {} }))), ['kubectl-create'])
  })
})
