import assert from 'node:assert/strict'
import { test } from 'node:test'

import { hashOf } from './generators.ts'
import { mergeSchemaOf } from './merge-schema.ts'
import { mergeStrategically } from './merge.ts'
import { changedImage } from './transformers.ts'

const POD = mergeSchemaOf({ group: '', version: 'v1', kind: 'Pod' }, undefined)

test("kustomize's strategic merge puts items of the patch first in merged lists", () => {
  const target = { spec: { containers: [{ name: 'a', image: 'x' }, { name: 'b' }] } }
  const patch = { spec: { containers: [{ name: 'c' }, { name: 'b', image: 'y' }] } }
  assert.deepEqual(mergeStrategically(target, patch, POD), {
    spec: { containers: [{ name: 'c' }, { name: 'b', image: 'y' }, { name: 'a', image: 'x' }] },
  })
})

test("kustomize's strategic merge applies $patch: delete and $patch: replace", () => {
  const target = { spec: { containers: [{ name: 'a' }, { name: 'b' }], nodeSelector: { a: 'b' } } }
  const patch = { spec: { containers: [{ name: 'a', $patch: 'delete' }], nodeSelector: { $patch: 'replace', c: 'd' } } }
  assert.deepEqual(mergeStrategically(target, patch, POD), {
    spec: { containers: [{ name: 'b' }], nodeSelector: { c: 'd' } },
  })
})

test("kustomize's strategic merge removes fields that the patch sets to null, and keeps other nulls", () => {
  const target = { metadata: { creationTimestamp: null, name: 'x' }, spec: { hostname: 'h' } }
  assert.deepEqual(mergeStrategically(target, { spec: { hostname: null } }, POD), {
    metadata: { creationTimestamp: null, name: 'x' },
    spec: {},
  })
})

test("kustomize's strategic merge replaces lists of kinds without a schema", () => {
  assert.deepEqual(mergeStrategically({ items: [{ name: 'a' }] }, { items: [{ name: 'b' }] }, undefined), {
    items: [{ name: 'b' }],
  })
})

test("kustomize's images transformer changes name, tag and digest", () => {
  assert.equal(changedImage('nginx:1', { name: 'nginx', newTag: '2' }), 'nginx:2')
  assert.equal(changedImage('host:5000/a/b@sha256:1', { name: 'host:5000/a/b', newName: 'c' }), 'c@sha256:1')
  assert.equal(changedImage('nginx-other:1', { name: 'nginx', newTag: '2' }), 'nginx-other:1')
})

test("kustomize's hash suffix of a ConfigMap does not depend on its name", () => {
  const made = (name: string): string => hashOf({ kind: 'ConfigMap', metadata: { name } })
  assert.equal(made('made'), '6ct58987ht')
  assert.equal(made('other'), made('made'))
})
