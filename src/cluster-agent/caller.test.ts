import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { callerOf } from './caller.ts'

const caller = (...rawHeaders: string[]): ReturnType<typeof callerOf> => callerOf({ rawHeaders })

describe('callerOf() for a request of the management server', () => {
  it('accepts users and groups of the management server', () => {
    const claim = {
      'Impersonate-User': 'u-x7k2p',
      'Impersonate-Group': 'hk:cluster:cluster-owner',
      'impersonate-group': 'hk:project:p-1:edit',
      'IMPERSONATE-GROUP': 'system:authenticated',
    }
    const found = caller(...Object.entries(claim).flat())
    const groups = ['hk:cluster:cluster-owner', 'hk:project:p-1:edit', 'system:authenticated']
    assert.deepEqual(found, { user: 'u-x7k2p', groups })
  })

  const refusedRequests: readonly (readonly [string, readonly string[]])[] = [
    ['no user', ['Impersonate-Group', 'hk:a']],
    ['an empty user', ['Impersonate-User', '']],
    ['a user of the cluster', ['Impersonate-User', 'kubernetes-admin']],
    ['a service account', ['Impersonate-User', 'system:serviceaccount:kube-system:admin']],
    ['two users in one request', ['Impersonate-User', 'u-a', 'impersonate-user', 'u-b']],
    ['a user with a line break', ['Impersonate-User', 'u-a\nsystem:admin']],
    ['the group system:masters', ['Impersonate-User', 'u-a', 'Impersonate-Group', 'system:masters']],
    [
      'the group system:nodes among others',
      ['Impersonate-User', 'u-a', 'Impersonate-Group', 'hk:a', 'Impersonate-Group', 'system:nodes'],
    ],
    ['two groups in one header', ['Impersonate-User', 'u-a', 'Impersonate-Group', 'hk:a, system:masters']],
    ['a uid', ['Impersonate-User', 'u-a', 'Impersonate-Uid', '1']],
    ['extra values', ['Impersonate-User', 'u-a', 'Impersonate-Extra-scopes', 'x']],
    [
      '501 groups',
      ['Impersonate-User', 'u-a', ...Array.from({ length: 501 }, () => ['Impersonate-Group', 'hk:a']).flat()],
    ],
  ]
  for (const [what, headers] of refusedRequests) {
    it(`refuses ${what}`, () => assert.ok('refused' in caller(...headers)))
  }
})
