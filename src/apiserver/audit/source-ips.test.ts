import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import type { Peer } from '#lib/http/exchange.ts'

import { sourceIps } from './source-ips.ts'

function ips(headers: Readonly<Record<string, string>>, address = '192.0.2.9'): string[] {
  return sourceIps({ headers, peer: { address } as Peer })
}

describe('source IPs of an audit event', () => {
  it('contain the address of the connection if there are no proxy headers', () => {
    assert.deepEqual(ips({}), ['192.0.2.9'])
    assert.deepEqual(ips({}, '::ffff:192.0.2.9'), ['192.0.2.9'])
    assert.deepEqual(ips({}, '2001:DB8:0::1'), ['2001:db8::1'])
    assert.deepEqual(ips({}, ''), [])
  })

  it('begin with the valid addresses of the proxy headers', () => {
    assert.deepEqual(ips({ 'x-forwarded-for': '10.1.1.1, junk,10.2.2.2' }), ['10.1.1.1', '10.2.2.2', '192.0.2.9'])
    assert.deepEqual(ips({ 'x-real-ip': '10.3.3.3' }), ['10.3.3.3', '192.0.2.9'])
  })

  it('contain X-Real-Ip once, and the peer address not twice in a row', () => {
    const headers = { 'x-forwarded-for': '10.1.1.1, 192.0.2.9', 'x-real-ip': '10.1.1.1' }
    assert.deepEqual(ips(headers), ['10.1.1.1', '192.0.2.9'])
    assert.deepEqual(ips({ 'x-forwarded-for': '192.0.2.9, 10.1.1.1' }), ['192.0.2.9', '10.1.1.1', '192.0.2.9'])
  })
})
