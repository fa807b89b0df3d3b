import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import {
  type AuthRecords,
  readRecords,
  type TokenRecord,
  type UserRecord,
  verifyToken,
  writeRecords,
} from './records.ts'
import { hashOfSecret } from './token-text.ts'

const SECRET = 'A'.repeat(43)
const NOW = Date.parse('2026-06-01T00:00:00Z')
const GROUPS = ['hk:cluster:cluster-member', 'system:authenticated']
const TOKEN: TokenRecord = {
  userName: 'u-jane1',
  enabled: true,
  expiresAt: '2026-06-02T00:00:00Z',
  hash: `sha256:${hashOfSecret(SECRET)}`,
}
const USER: UserRecord = { enabled: true, groups: GROUPS }

function records(token: Partial<TokenRecord> = {}, user: Partial<UserRecord> | undefined = {}): AuthRecords {
  return {
    token: (name) => (name === 't-1' ? { ...TOKEN, ...token } : undefined),
    user: (name) => (name === (token.userName ?? 'u-jane1') && user !== undefined ? { ...USER, ...user } : undefined),
  }
}

describe('verifyToken() of the management server', () => {
  it('returns the user of the token with its groups', () => {
    assert.deepEqual(verifyToken(records(), `hk_t-1_${SECRET}`, NOW), { username: 'u-jane1', groups: GROUPS })
  })

  const refused: readonly (readonly [what: string, reason: RegExp, found: AuthRecords, text?: string])[] = [
    ['an unknown text format', /no token/, records(), 'kubeadm-token'],
    ['an empty text', /no token/, records(), ''],
    ['too long a text', /no token/, records(), `hk_t-1_${SECRET}${SECRET}`],
    ['an unknown name', /is unknown/, records(), `hk_t-2_${SECRET}`],
    ['a wrong secret', /secret is wrong/, records(), `hk_t-1_${'B'.repeat(43)}`],
    ['a record that is disabled', /token is disabled/, records({ enabled: false })],
    ['a record that has expired', /has expired/, records({ expiresAt: '2026-06-01T00:00:00Z' })],
    ['a record without an expiry time', /has expired/, records({ expiresAt: '' })],
    ['a user without a role', /no role/, { ...records(), user: () => undefined }],
    ['a disabled user', /user is disabled/, records({}, { enabled: false })],
    ['a hash of another algorithm', /unknown algorithm/, records({ hash: '$3:1:c2FsdA:aGFzaA' })],
    ['a hash without algorithm', /unknown algorithm/, records({ hash: hashOfSecret(SECRET) })],
    ['a short hash', /secret is wrong/, records({ hash: 'sha256:' })],
    [
      'a user whom the management server did not create',
      /not one of the management/,
      records({ userName: 'kubernetes-admin' }),
    ],
    ['the management server itself as user', /not one of the management/, records({ userName: 'hk:server' })],
    ['the group system:masters', /not one of the management/, records({}, { groups: ['system:masters'] })],
  ]
  for (const [what, reason, found, text = `hk_t-1_${SECRET}`] of refused) {
    it(`refuses a token with ${what}`, () => {
      const verdict = verifyToken(found, text, NOW)
      assert.ok('refused' in verdict)
      assert.match(verdict.refused, reason)
    })
  }
})

describe('readRecords() of a cache file', () => {
  const lists = { tokens: new Map([['t-1', TOKEN]]), users: new Map([['u-jane1', USER]]) }

  it('returns the records that writeRecords wrote', () => {
    const found = readRecords(writeRecords(lists))
    assert.deepEqual([found.token('t-1'), found.user('u-jane1')], [TOKEN, USER])
    assert.deepEqual([found.token('constructor'), found.user('__proto__')], [undefined, undefined])
  })

  const malformed: readonly (readonly [what: string, text: string])[] = [
    ['a truncated file', writeRecords(lists).slice(0, 40)],
    ['a file of another format version', writeRecords(lists).replace('"format":1', '"format":2')],
    ['a file without records', '{"format":1}'],
    ['a record without its fields', '{"format":1,"tokens":{"t-1":{}},"users":{}}'],
    ['a user whose groups are no list', '{"format":1,"tokens":{},"users":{"u-1":{"enabled":true,"groups":"a"}}}'],
  ]
  for (const [what, text] of malformed) it(`refuses ${what}`, () => assert.throws(() => readRecords(text)))
})
