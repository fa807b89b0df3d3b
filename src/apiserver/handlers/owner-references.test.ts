import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { assertGrowth } from '#lib/growth.fixture.ts'
import type { ObjectMeta, OwnerReference } from '#meta/object.ts'

import { dropRepeatedOwners } from './owner-references.ts'

const owner = (name: string, uid: string, more: Partial<OwnerReference> = {}): OwnerReference => ({
  apiVersion: 'v1',
  kind: 'Pod',
  name,
  uid,
  ...more,
})

function after(ownerReferences: OwnerReference[] | undefined): { owners: unknown; warnings: string[] } {
  const metadata: ObjectMeta = ownerReferences === undefined ? {} : { ownerReferences }
  const warnings: string[] = []
  dropRepeatedOwners(metadata, (text) => warnings.push(text))
  return { owners: metadata.ownerReferences, warnings }
}

describe('dropRepeatedOwners', () => {
  it('removes duplicate owner references and adds a warning', () => {
    const [a, b] = [owner('a', '1'), owner('b', '2')]
    const { owners, warnings } = after([a, b, { ...a }, { ...b }, { ...a }])
    assert.deepEqual(owners, [a, b])
    assert.equal(warnings.length, 1)
    assert.match(warnings[0] ?? '', /^\.metadata\.ownerReferences contains duplicate entries; .*: 1, 2, 1$/)
  })

  it('keeps owner references that differ in any field', () => {
    const different = [owner('a', '1'), owner('b', '1'), owner('a', '1', { controller: true })]
    assert.deepEqual(after(different), { owners: different, warnings: [] })
    assert.deepEqual(after(undefined), { owners: undefined, warnings: [] })
    assert.deepEqual(after([owner('a', '1')]).warnings, [])
  })

  it('takes less than quadratic time for many references', () => {
    const owners = (size: number): OwnerReference[] => Array.from({ length: size }, (_, n) => owner('a', `${n % 900}`))
    assertGrowth(20_000, (size) => Array.from({ length: size }, (_, n) => owner('a', `${n}`)), after)
    assertGrowth(20_000, owners, after)
  })
})
