import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import type { Exchange } from '#lib/http/exchange.ts'
import { StatusError } from '#meta/status.ts'

import { createAuthenticator } from './index.ts'

const withToken = { headers: { authorization: 'Bearer abc' }, rawHeaders: [] } as unknown as Exchange

describe('createAuthenticator() of the API server', () => {
  it('ignores a bearer token if no token authenticator is configured', () => {
    const { authenticate } = createAuthenticator({ requests: [], tokens: [], apiAudiences: [] })
    assert.equal(authenticate(withToken), undefined)
  })

  it('rejects a token that none of its authenticators recognizes', async () => {
    const tokens = [(): Promise<undefined> => Promise.resolve(undefined)]
    const { authenticate } = createAuthenticator({ requests: [], tokens, apiAudiences: [] })
    await assert.rejects(Promise.resolve(authenticate(withToken)), StatusError)
  })
})
