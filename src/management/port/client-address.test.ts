import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { addressReader } from './client-address.ts'

describe('client address of a request', () => {
  const read = (trusted: readonly string[], peer: string, forwarded?: string): string =>
    addressReader(trusted)({
      peer: { address: peer } as never,
      headers: forwarded === undefined ? {} : { 'x-forwarded-for': forwarded },
    })

  it('is the peer address if X-Forwarded-For comes from a client', () =>
    assert.equal(read([], '10.0.0.9', '1.2.3.4'), '10.0.0.9'))
  it('is read from X-Forwarded-For of a trusted proxy', () =>
    assert.equal(read(['10.0.0.0/8'], '10.0.0.9', '1.2.3.4'), '1.2.3.4'))
  it('is the nearest address in X-Forwarded-For that is no trusted proxy', () =>
    assert.equal(read(['10.0.0.0/8'], '10.0.0.9', '6.6.6.6, 1.2.3.4, 10.1.1.1'), '1.2.3.4'))
  it('is that of the trusted proxy without X-Forwarded-For', () =>
    assert.equal(read(['10.0.0.9'], '10.0.0.9'), '10.0.0.9'))
  it('causes an error if --trusted-proxies contains an invalid address', () =>
    assert.throws(() => addressReader(['proxy']), /--trusted-proxies/))
})
