import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import type { Token, TokenSpec } from '../kinds/token.ts'
import type { User, UserSpec } from '../kinds/user.ts'
import { authTokenObjects, type AuthTokenObjects, firstExpiryMs } from './auth-token-objects.ts'

const NOW = Date.parse('2026-06-01T00:00:00Z')
const HASH = 'ab'.repeat(32)
const GROUPS = ['hk:cluster:cluster-member', 'system:authenticated']

function token(name: string, spec: Partial<TokenSpec> = {}): Token {
  const usual = { user: 'u-1', type: 'api', hash: HASH, expiresAt: '2026-06-02T00:00:00Z', cluster: 'c-1' } as const
  return { metadata: { name }, spec: { ...usual, ...spec } }
}

function objects(tokens: readonly Token[], user: Partial<UserSpec> | undefined = {}): AuthTokenObjects {
  const find = (name: string): User | undefined =>
    name === 'u-gone' ? undefined : { metadata: { name }, spec: { username: name, ...user } }
  const userIn = ({ metadata: { name = '' } }: User, cluster: string): { name: string; groups: string[] } | undefined =>
    cluster === 'c-1' && name !== 'u-stranger' ? { name, groups: GROUPS } : undefined
  return authTokenObjects({ tokens, user: find, memberships: { userIn } }, 'c-1', NOW)
}

describe('authTokenObjects() for an authorized endpoint', () => {
  it('returns a ClusterAuthToken, a Secret with its hash, and its user', () => {
    const metadata = (name: string): object => ({
      namespace: 'cattle-system',
      name,
      labels: { 'management.hyperkube.io/authorized-endpoint': 'true' },
    })
    const made = objects([token('t-1'), token('t-2')])
    assert.deepEqual(made.tokens[0], {
      apiVersion: 'cluster.cattle.io/v3',
      kind: 'ClusterAuthToken',
      metadata: metadata('t-1'),
      userName: 'u-1',
      enabled: true,
      expiresAt: '2026-06-02T00:00:00Z',
    })
    const data = { hash: Buffer.from(`sha256:${HASH}`).toString('base64') }
    assert.deepEqual(made.secrets[0], {
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: metadata('t-1'),
      type: 'Opaque',
      data,
    })
    const user = { apiVersion: 'cluster.cattle.io/v3', kind: 'ClusterUserAttribute', metadata: metadata('u-1') }
    assert.deepEqual(made.users, [{ ...user, groups: GROUPS, enabled: true }])
    assert.deepEqual([made.tokens.length, made.secrets.length], [2, 2])
  })

  it('returns the hash only in the Secret', () => {
    const { tokens, users } = objects([token('t-1')])
    assert.ok(!JSON.stringify([tokens, users]).includes(HASH))
  })

  const left: readonly (readonly [what: string, spec: Partial<TokenSpec>, user?: Partial<UserSpec>])[] = [
    ['a token of a session', { type: 'session' }],
    ['a token of another cluster', { cluster: 'c-2' }],
    ['a disabled token', { disabled: true }],
    ['an expired token', { expiresAt: '2026-06-01T00:00:00Z' }],
    ['a read-only token', { readOnly: true }],
    ['a token with an idle timeout', { idleSeconds: 60 }],
    ['a token of a deleted user', { user: 'u-gone' }],
    ['a token of a user without a role', { user: 'u-stranger' }],
    ['a token of a disabled user', {}, { disabled: true }],
    ['a token of a user who must change the password', {}, { mustChangePassword: true }],
  ]
  for (const [what, spec, user] of left) {
    it(`creates no objects for ${what}`, () =>
      assert.deepEqual(objects([token('t-1', spec)], user), { secrets: [], tokens: [], users: [] }))
  }

  it('creates no objects for a token for all clusters', () => {
    const { cluster: _, ...spec } = token('t-1').spec
    assert.deepEqual(objects([{ metadata: { name: 't-1' }, spec }]).tokens, [])
  })
})

describe('firstExpiryMs() of an authorized endpoint', () => {
  it('returns the earliest expiry of the tokens', () => {
    const later = token('t-2', { expiresAt: '2026-06-03T00:00:00Z' })
    assert.equal(firstExpiryMs(objects([later, token('t-1')])), Date.parse('2026-06-02T00:00:00Z'))
    assert.equal(firstExpiryMs(objects([])), Infinity)
  })
})
