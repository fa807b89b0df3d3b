import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { statusOf } from '#meta/status.ts'

import { impersonationOf } from './impersonation.ts'

describe('impersonationOf() for the headers of a request', () => {
  it('returns undefined without impersonation headers', () => {
    assert.equal(impersonationOf(['Accept', '*/*']), undefined)
    assert.equal(impersonationOf(['Impersonate-Uid', '1', 'Impersonate-Extra-a', 'b']), undefined)
  })

  it('returns user and groups from headers in upper or lower case', () => {
    const headers = [
      'impersonate-USER',
      'u-jane',
      'Impersonate-Group',
      'hk:cluster:a',
      'impersonate-group',
      'hk:cluster:a',
    ]
    assert.deepEqual(impersonationOf(headers), { user: 'u-jane', groups: ['hk:cluster:a'] })
    const everyone = ['Impersonate-User', 'u-jane', 'Impersonate-Group', 'system:authenticated']
    assert.deepEqual(impersonationOf(everyone), { user: 'u-jane', groups: [] })
  })

  const refused: readonly (readonly string[])[] = [
    ['Impersonate-User', 'system:admin'],
    ['Impersonate-User', 'system:serviceaccount:kube-system:default'],
    ['Impersonate-User', 'hk:server'],
    ['Impersonate-User', 'jane'],
    ['Impersonate-User', ''],
    ['Impersonate-User', 'u-jane', 'Impersonate-User', 'u-john'],
    ['Impersonate-Group', 'hk:cluster:a'],
    ['Impersonate-User', 'u-jane', 'Impersonate-Group', 'system:masters'],
    ['Impersonate-User', 'u-jane', 'Impersonate-Group', 'system:nodes'],
    ['Impersonate-User', 'u-jane', 'Impersonate-Group', 'hk:cluster:a,system:masters'],
    ['Impersonate-User', 'u-jane', ...Array.from({ length: 51 }, (_, n) => ['Impersonate-Group', `hk:${n}`]).flat()],
  ]
  for (const headers of refused) {
    it(`refuses headers ${headers.slice(0, 6).join(' ')}`, () => {
      assert.throws(
        () => impersonationOf(headers),
        (error: unknown) => statusOf(error)?.code === 403,
      )
    })
  }
})
