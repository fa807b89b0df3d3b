import assert from 'node:assert/strict'
import { test } from 'node:test'

import fc from 'fast-check'

import { compareSemanticVersions, parseSemanticVersion, type SemanticVersion } from './semver.ts'

function parsed(text: string): SemanticVersion {
  const version = parseSemanticVersion(text)
  assert.ok(version, text)
  return version
}

test('invalid semantic versions are rejected', () => {
  const bad = ['', '1', '1.2', 'v1.2.3', '01.2.3', '1.2.3-', '1.2.3-01', '1.2.3+', '1.2.3.4', ' 1.2.3', '1.2.3-a..b']
  for (const text of [...bad, `${'9'.repeat(300)}.0.0`]) assert.equal(parseSemanticVersion(text), undefined, text)
})

test('build metadata of semantic versions is ignored', () => {
  assert.deepEqual(parsed('1.2.3-rc.1+build.7'), { numbers: [1n, 2n, 3n], preRelease: ['rc', '1'] })
  assert.equal(compareSemanticVersions(parsed('1.0.0+a'), parsed('1.0.0+b')), 0)
})

test('precedence of semantic versions follows the examples of the specification', () => {
  const inOrder = ['alpha', 'alpha.1', 'alpha.beta', 'beta', 'beta.2', 'beta.11', 'rc.1'].map((one) => `1.0.0-${one}`)
  const all = [...inOrder, '1.0.0', '1.0.1', '1.1.0', '1.10.0', '2.0.0']
  for (const [at, text] of all.entries()) {
    for (const [other, second] of all.entries()) {
      assert.equal(Math.sign(compareSemanticVersions(parsed(text), parsed(second))), Math.sign(at - other))
    }
  }
})

test('comparison of two semantic versions is antisymmetric', () => {
  const part = fc.constantFrom('0', '1', '12', 'a', 'a-b', 'rc')
  const version = fc
    .tuple(fc.nat(3), fc.nat(3), fc.nat(3), fc.array(part, { maxLength: 3 }))
    .map(([x, y, z, pre]) => parsed(`${x}.${y}.${z}${pre.length === 0 ? '' : `-${pre.join('.')}`}`))
  fc.assert(
    fc.property(version, version, (a, b) => {
      assert.equal(Math.sign(compareSemanticVersions(a, b)), 0 - Math.sign(compareSemanticVersions(b, a)))
    }),
  )
})
