import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { loopbackAddress } from './endpoint.ts'
import type { AuthRecords } from './records.ts'
import { answerReview, parseReview } from './review.ts'
import { hashOfSecret } from './token-text.ts'

const V1 = 'authentication.k8s.io/v1'
const SECRET = 'A'.repeat(43)
const records: AuthRecords = {
  token: () => ({
    userName: 'u-1',
    enabled: true,
    expiresAt: '2027-01-01T00:00:00Z',
    hash: `sha256:${hashOfSecret(SECRET)}`,
  }),
  user: () => ({ enabled: true, groups: ['hk:cluster:cluster-owner'] }),
}
const nowMs = Date.parse('2026-01-01T00:00:00Z')

describe('parseReview() of a TokenReview', () => {
  for (const apiVersion of [V1, `${V1}beta1`]) {
    it(`accepts version ${apiVersion}`, () => {
      const text = JSON.stringify({ apiVersion, kind: 'TokenReview', spec: { token: 'a', audiences: ['b'] } })
      assert.deepEqual(parseReview(text), { apiVersion, token: 'a' })
    })
  }

  const malformed: readonly unknown[] = [
    null,
    [],
    'text',
    { apiVersion: V1, kind: 'TokenReview' },
    { apiVersion: V1, kind: 'TokenReview', spec: null },
    { apiVersion: V1, kind: 'TokenReview', spec: { token: 1 } },
    { apiVersion: V1, kind: 'SubjectAccessReview', spec: { token: 'a' } },
    { apiVersion: 'authentication.k8s.io/v2', kind: 'TokenReview', spec: { token: 'a' } },
  ]
  for (const review of malformed) {
    const text = JSON.stringify(review)
    it(`refuses ${text}`, () => assert.equal(parseReview(text), undefined))
  }
  it('refuses text that is not JSON', () => assert.equal(parseReview('{'), undefined))
})

describe('answerReview() to a TokenReview', () => {
  const logged: unknown[] = []
  const log = { info: (...line: unknown[]) => void logged.push(line) }

  it('returns the user in the API version of the review', () => {
    const review = { apiVersion: `${V1}beta1`, token: `hk_t-1_${SECRET}` }
    const user = { username: 'u-1', groups: ['hk:cluster:cluster-owner'] }
    const answer = { apiVersion: `${V1}beta1`, kind: 'TokenReview', status: { authenticated: true, user } }
    assert.deepEqual(answerReview(review, { records, nowMs, log }), answer)
  })

  it('refuses a wrong token without a reason, and does not log it', () => {
    const secret = 'B'.repeat(43)
    const answer = answerReview({ apiVersion: V1, token: `hk_t-1_${secret}` }, { records, nowMs, log })
    assert.deepEqual(answer, { apiVersion: V1, kind: 'TokenReview', status: { authenticated: false } })
    assert.match(JSON.stringify(logged), /the secret is wrong/)
    assert.ok(!JSON.stringify(logged).includes(secret))
  })

  it('returns an error, which kube-apiserver does not cache, until the tokens are loaded', () => {
    const { status } = answerReview({ apiVersion: V1, token: '' }, { records: undefined, nowMs, log }) as {
      readonly status: object
    }
    assert.deepEqual(status, { authenticated: false, error: 'the tokens of the cluster are not known yet' })
  })
})

describe('loopbackAddress() of --listen', () => {
  const rows: readonly (readonly [text: string, host: string | undefined])[] = [
    ['127.0.0.1:6440', '127.0.0.1'],
    ['127.1.2.3:6440', '127.1.2.3'],
    ['localhost:6440', '127.0.0.1'],
    ['[::1]:6440', '::1'],
    ['0.0.0.0:6440', undefined],
    ['[::]:6440', undefined],
    [':6440', undefined],
    ['10.0.0.1:6440', undefined],
    ['127.0.0.1.example.com:6440', undefined],
    ['127.0.0.1', undefined],
    ['127.0.0.1:66000', undefined],
  ]
  for (const [text, host] of rows) {
    it(`${host === undefined ? 'refuses' : 'accepts'} "${text}" as loopback address with port`, () =>
      assert.deepEqual(loopbackAddress(text), host === undefined ? undefined : { host, port: 6440 }))
  }
})
