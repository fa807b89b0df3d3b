import assert from 'node:assert/strict'
import { test } from 'node:test'

import { groups } from '#apis/kinds.ts'

import { deprecationOf } from './deprecations.ts'

const all = groups.flatMap(({ versions }) => versions.flatMap(({ kinds }) => kinds))

test('deprecationOf() returns the first deprecated release, the removal release and the replacement', () => {
  const find = (version: string, kind: string): string | undefined =>
    deprecationOf({ group: version.split('/')[0] ?? '', version: version.split('/')[1] ?? '', kind })?.text
  assert.equal(
    find('storage.k8s.io/v1beta1', 'VolumeAttributesClass'),
    'storage.k8s.io/v1beta1 VolumeAttributesClass is deprecated in v1.34+, unavailable in v1.37+; use storage.k8s.io/v1 VolumeAttributesClass',
  )
  assert.equal(
    find('resource.k8s.io/v1alpha3', 'DeviceTaintRule'),
    'resource.k8s.io/v1alpha3 DeviceTaintRule is deprecated in v1.36+, unavailable in v1.39+',
  )
  assert.equal(find('resource.k8s.io/v1beta2', 'DeviceTaintRule'), undefined)
  assert.equal(find('apps/v1', 'Deployment'), undefined)
})

test('the table of deprecated kinds contains seventeen kinds, none of a stable version', () => {
  const deprecated = all.filter((kind) => deprecationOf(kind) !== undefined)
  assert.equal(deprecated.length, 17)
  assert.deepEqual(
    deprecated.filter(({ version }) => /^v\d+$/.test(version)),
    [],
  )
})
