import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import type { TokenReview } from '#apis/authentication/v1.ts'
import type { WriteContext } from '#apiserver/registry/resource.ts'
import { CredentialError, type TokenIdentity } from '#auth/authenticator.ts'
import { createVirtualClock } from '#lib/clock.ts'

import { selfSubjectReview } from './selfsubjectreview.ts'
import { defineTokenReview } from './tokenreview.ts'

const user = { name: 'joe', uid: '7', groups: ['g'], extra: { k: ['v'] } }
const context = { user, namespace: '', clock: createVirtualClock(0) } as unknown as WriteContext & { namespace: string }
const shown = { username: 'joe', uid: '7', groups: ['g'], extra: { k: ['v'] } }

async function review(spec: TokenReview['spec'], answer: () => Promise<TokenIdentity>): Promise<TokenReview> {
  return (await defineTokenReview(answer).answer({ metadata: {}, spec, status: { user: {} } }, context)) as TokenReview
}

describe('TokenReview', () => {
  it('returns the user of a token', async () => {
    const found = await review({ token: 't', audiences: ['a'] }, () => Promise.resolve({ user, audiences: ['a'] }))
    assert.deepEqual(found.status, { authenticated: true, user: shown, audiences: ['a'] })
    assert.equal(found.spec.token, 't')
  })

  it("reports errors in upstream's words", async () => {
    const error = async (message: string) =>
      (await review({ token: 't' }, () => Promise.reject(new CredentialError(message)))).status
    assert.deepEqual(await error('invalid bearer token'), { user: {}, error: 'invalid bearer token' })
    assert.equal(
      (await error('service account token has expired')).error,
      '[invalid bearer token, service account token has expired]',
    )
    assert.equal((await error('[a, b]')).error, '[invalid bearer token, a, b]')
  })

  it('requires a token, and reports failures of the server', async () => {
    await assert.rejects(
      review({}, () => Promise.reject(new Error('x'))),
      /token is required for TokenReview in authentication/,
    )
    await assert.rejects(
      review({ token: 't' }, () => Promise.reject(new TypeError('bug'))),
      TypeError,
    )
  })
})

describe('SelfSubjectReview', () => {
  it('returns the user who sent the request', async () => {
    const question = { metadata: {}, status: { userInfo: {} } }
    assert.deepEqual(await selfSubjectReview.answer(question, context), {
      kind: 'SelfSubjectReview',
      apiVersion: 'authentication.k8s.io/v1',
      metadata: { creationTimestamp: '1970-01-01T00:00:00Z' },
      status: { userInfo: shown },
    })
  })
})
