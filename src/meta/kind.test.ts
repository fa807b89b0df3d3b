import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import {
  apiVersionOf,
  compareVersions,
  groupKindText,
  groupResourceText,
  isStable,
  kindKey,
  kindOf,
  parseApiVersion,
  parseGroupKind,
  parseGroupResource,
  parseResourceArg,
  resourceKey,
} from './kind.ts'

describe('apiVersion of an object', () => {
  for (const [text, group, version] of [
    ['v1', '', 'v1'],
    ['apps/v1', 'apps', 'v1'],
    ['', '', ''],
    ['/', '', ''],
    ['apps/', 'apps', ''],
  ] as const) {
    it(`is parsed from "${text}"`, () => assert.deepEqual(parseApiVersion(text), { group, version }))
  }

  it('is rejected if it has two slashes, except by kindOf()', () => {
    assert.throws(() => parseApiVersion('a/b/c'), { message: 'unexpected GroupVersion string: a/b/c' })
    assert.deepEqual(kindOf({ apiVersion: 'a/b/c', kind: 'X' }), { group: '', version: '', kind: 'X' })
    assert.deepEqual(kindOf({}), { group: '', version: '', kind: '' })
  })

  it('is formatted from group and version', () => {
    assert.equal(apiVersionOf({ group: '', version: 'v1' }), 'v1')
    assert.equal(apiVersionOf({ group: 'apps', version: 'v1' }), 'apps/v1')
  })
})

describe('names of kinds and resources', () => {
  it('are formatted for messages', () => {
    assert.equal(groupResourceText({ group: 'apps', resource: 'deployments' }), 'deployments.apps')
    assert.equal(groupResourceText({ group: '', resource: 'pods' }), 'pods')
    assert.equal(groupKindText({ group: 'apps', kind: 'Deployment' }), 'Deployment.apps')
    assert.equal(kindKey({ group: '', version: 'v1', kind: 'Pod' }), '/v1, Kind=Pod')
    assert.equal(resourceKey({ group: 'apps', version: 'v1', resource: 'x' }), 'apps/v1, Resource=x')
  })

  it('are parsed from kind.group and resource.version.group', () => {
    assert.deepEqual(parseGroupResource('a.b.c'), { resource: 'a', group: 'b.c' })
    assert.deepEqual(parseGroupKind('Pod'), { kind: 'Pod', group: '' })
    assert.deepEqual(parseResourceArg('deployments.v1.apps'), {
      full: { resource: 'deployments', version: 'v1', group: 'apps' },
      short: { resource: 'deployments', group: 'v1.apps' },
    })
    assert.deepEqual(parseResourceArg('ingresses.networking'), {
      short: { resource: 'ingresses', group: 'networking' },
    })
  })
})

describe('compareVersions()', () => {
  it('orders GA before beta before alpha, then the higher number first, then other names', () => {
    const versions = 'v10 v2 v1 v11beta2 v10beta3 v3beta1 v12alpha1 v11alpha2 foo1 foo10'.split(' ')
    const sorted = [...versions].reverse().sort((a, b) => compareVersions(b, a))
    assert.deepEqual(sorted, versions)
    assert.equal(compareVersions('v1', 'v1'), 0)
    assert.ok(isStable('v1') && !isStable('v1beta1') && !isStable('latest'))
  })
})
