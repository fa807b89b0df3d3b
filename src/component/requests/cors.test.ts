import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { createCors, pinsHost } from './cors.ts'

describe('CORS filter', () => {
  const cors = createCors(['//example\\.com(:|$)', '^https://[a-z]+\\.test$'])
  for (const [origin, isAllowed] of [
    ['https://example.com', true],
    ['http://example.com:8080', true],
    ['https://example.com.evil.org', false],
    ['https://a.test', true],
    ['http://a.test', false],
    ['', false],
  ] as const) {
    it(`${isAllowed ? 'allows' : 'ignores'} origin ${JSON.stringify(origin)}`, () => {
      const headers = cors({ headers: { origin } })
      assert.equal(headers?.[1], isAllowed ? origin : undefined)
    })
  }

  it('adds no headers to a request without an origin', () => {
    assert.equal(cors({ headers: {} }), undefined)
  })

  for (const [pattern, isPinned] of [
    ['//example.com(:|$)', true],
    ['^https://example.com$', true],
    ['example.com$', false],
    ['.*', false],
    ['//example.com', false],
  ] as const) {
    it(`finds that pattern ${pattern} ${isPinned ? 'fixes' : 'does not fix'} both ends of the host name`, () =>
      assert.equal(pinsHost(pattern), isPinned))
  }
})
