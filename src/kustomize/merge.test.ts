import assert from 'node:assert/strict'
import { test } from 'node:test'

import { hashOf } from './generators.ts'
import { mergeSchemaOf } from './merge-schema.ts'
import { mergeStrategically } from './merge.ts'
import { changedImage } from './transformers.ts'

const POD = mergeSchemaOf({ group: '', version: 'v1', kind: 'Pod' }, undefined)

test('what a patch has comes first in lists that merge', () => {
  const target = { spec: { containers: [{ name: 'a', image: 'x' }, { name: 'b' }] } }
  const patch = { spec: { containers: [{ name: 'c' }, { name: 'b', image: 'y' }] } }
  assert.deepEqual(mergeStrategically(target, patch, POD), {
    spec: { containers: [{ name: 'c' }, { name: 'b', image: 'y' }, { name: 'a', image: 'x' }] },
  })
})

test('directives delete and replace', () => {
  const target = { spec: { containers: [{ name: 'a' }, { name: 'b' }], nodeSelector: { a: 'b' } } }
  const patch = { spec: { containers: [{ name: 'a', $patch: 'delete' }], nodeSelector: { $patch: 'replace', c: 'd' } } }
  assert.deepEqual(mergeStrategically(target, patch, POD), {
    spec: { containers: [{ name: 'b' }], nodeSelector: { c: 'd' } },
  })
})

test('a null takes away, and one that nobody speaks of stays', () => {
  const target = { metadata: { creationTimestamp: null, name: 'x' }, spec: { hostname: 'h' } }
  assert.deepEqual(mergeStrategically(target, { spec: { hostname: null } }, POD), {
    metadata: { creationTimestamp: null, name: 'x' },
    spec: {},
  })
})

test('lists of kinds without schema are replaced', () => {
  assert.deepEqual(mergeStrategically({ items: [{ name: 'a' }] }, { items: [{ name: 'b' }] }, undefined), {
    items: [{ name: 'b' }],
  })
})

test('images change by name, tag and digest', () => {
  assert.equal(changedImage('nginx:1', { name: 'nginx', newTag: '2' }), 'nginx:2')
  assert.equal(changedImage('host:5000/a/b@sha256:1', { name: 'host:5000/a/b', newName: 'c' }), 'c@sha256:1')
  assert.equal(changedImage('nginx-other:1', { name: 'nginx', newTag: '2' }), 'nginx-other:1')
})

test('the hash of a config map is of what it holds and not of its name', () => {
  const made = (name: string): string => hashOf({ kind: 'ConfigMap', metadata: { name } })
  assert.equal(made('made'), '6ct58987ht')
  assert.equal(made('other'), made('made'))
})
