import assert from 'node:assert/strict'
import { createHmac } from 'node:crypto'
import { describe, it } from 'node:test'

import { detachedSignature } from './bootstrap-signer.ts'

describe('detachedSignature() of cluster-info', () => {
  it('returns a JWS without payload, with the token ID in its header', () => {
    const [head = '', payload, signature] = detachedSignature('text', 'abcdef', '0123456789abcdef').split('.')
    assert.equal(head, 'eyJhbGciOiJIUzI1NiIsImtpZCI6ImFiY2RlZiJ9')
    assert.equal(payload, '')
    const expected = createHmac('sha256', '0123456789abcdef').update(`${head}.dGV4dA`).digest('base64url')
    assert.equal(signature, expected)
  })
})
