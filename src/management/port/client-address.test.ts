import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { addressReader } from './client-address.ts'

describe('addressReader', () => {
  const read = (trusted: readonly string[], peer: string, forwarded?: string): string =>
    addressReader(trusted)({
      peer: { address: peer } as never,
      headers: forwarded === undefined ? {} : { 'x-forwarded-for': forwarded },
    })

  it('ignores X-Forwarded-For of clients', () => assert.equal(read([], '10.0.0.9', '1.2.3.4'), '10.0.0.9'))
  it('believes a trusted proxy', () => assert.equal(read(['10.0.0.0/8'], '10.0.0.9', '1.2.3.4'), '1.2.3.4'))
  it('takes the nearest address that is no trusted proxy', () =>
    assert.equal(read(['10.0.0.0/8'], '10.0.0.9', '6.6.6.6, 1.2.3.4, 10.1.1.1'), '1.2.3.4'))
  it('takes the proxy itself without a header', () => assert.equal(read(['10.0.0.9'], '10.0.0.9'), '10.0.0.9'))
  it('refuses a text that is no address', () => assert.throws(() => addressReader(['proxy']), /--trusted-proxies/))
})
