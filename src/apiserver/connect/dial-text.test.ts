import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { HttpError } from '#lib/http/http-error.ts'

import { dialText } from './dial-text.ts'

const failed = (code: string): Error =>
  new HttpError('connect', 'ours', { cause: Object.assign(new Error('theirs'), { code }) })

const TEXTS: readonly (readonly [string, string])[] = [
  ['ECONNREFUSED', 'dial tcp 10.0.0.1:10250: connect: connection refused'],
  ['EHOSTUNREACH', 'dial tcp 10.0.0.1:10250: connect: no route to host'],
  ['ENOTFOUND', 'dial tcp: lookup 10.0.0.1: no such host'],
  ['DEPTH_ZERO_SELF_SIGNED_CERT', 'tls: failed to verify certificate: x509: certificate signed by unknown authority'],
  ['ERR_SSL_WRONG_VERSION_NUMBER', 'tls: first record does not look like a TLS handshake'],
  ['EWHATEVER', 'ours'],
]

describe('error text of a failed connection', () => {
  for (const [code, text] of TEXTS) {
    it(`is "${text}" for ${code}`, () => assert.equal(dialText(failed(code), '10.0.0.1:10250'), text))
  }

  it('contains the resolved address', () => {
    const refused = Object.assign(new Error('theirs'), { code: 'ECONNREFUSED', address: '::1', port: 7 })
    const reads = (address: string): string => `dial tcp ${address}: connect: connection refused`
    assert.equal(dialText(refused, 'localhost:7'), reads('[::1]:7'))
    assert.equal(dialText(refused, '10.0.0.1:7'), reads('10.0.0.1:7'))
    assert.equal(dialText(refused, '[fd00::1]:7'), reads('[fd00::1]:7'))
  })

  it('reports a timeout', () => {
    assert.equal(dialText(new HttpError('timeout', 'x'), 'a:1'), 'dial tcp a:1: i/o timeout')
  })
})
