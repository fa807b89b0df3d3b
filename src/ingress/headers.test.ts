import assert from 'node:assert/strict'
import { test } from 'node:test'

import type { Exchange } from '#lib/http/exchange.ts'

import { requestHeaders, responseHeaders } from './headers.ts'

const exchangeWith = (headers: Readonly<Record<string, string>>): Pick<Exchange, 'headers' | 'authority' | 'peer'> => ({
  headers,
  authority: 'web.example',
  peer: { address: '192.0.2.1', isEncrypted: true } as Exchange['peer'],
})
const PASSING = { port: 443, trustsForwarded: false, keepsUnderscores: false, requestId: 'abc' }

test('the ingress proxy sends client address, host and protocol in X-Forwarded-* headers', () => {
  const headers = requestHeaders(
    exchangeWith({ cookie: 'a=b', 'x-forwarded-for': '10.9.9.9', 'x-real-ip': '1.1.1.1' }),
    PASSING,
  )
  assert.deepEqual(headers, {
    cookie: 'a=b',
    host: 'web.example',
    'x-request-id': 'abc',
    'x-real-ip': '192.0.2.1',
    'x-forwarded-for': '192.0.2.1',
    'x-forwarded-host': 'web.example',
    'x-forwarded-port': '443',
    'x-forwarded-proto': 'https',
    'x-forwarded-scheme': 'https',
    'x-scheme': 'https',
  })
})

test('the ingress proxy keeps X-Forwarded-* headers of the client if configured', () => {
  const sent = { 'x-forwarded-for': '203.0.113.9', 'x-forwarded-proto': 'http', 'x-forwarded-host': 'front.example' }
  const headers = requestHeaders(exchangeWith(sent), { ...PASSING, trustsForwarded: true })
  assert.equal(headers['x-forwarded-for'], '203.0.113.9, 192.0.2.1')
  assert.equal(headers['x-real-ip'], '203.0.113.9')
  assert.equal(headers['x-forwarded-proto'], 'http')
  assert.equal(headers['x-forwarded-host'], 'front.example')
})

test('the ingress proxy drops hop-by-hop headers', () => {
  const sent = {
    connection: 'keep-alive, x-private',
    'x-private': '1',
    'keep-alive': '5',
    te: 'trailers',
    accept: '*/*',
  }
  const names = Object.keys(requestHeaders(exchangeWith(sent), PASSING))
  assert.deepEqual(
    names.filter((name) => Object.hasOwn(sent, name)),
    ['accept'],
  )
  assert.deepEqual(responseHeaders({ connection: 'close', 'set-cookie': ['a=1', 'b=2'], date: 'today' }), [
    'Set-Cookie',
    'a=1',
    'Set-Cookie',
    'b=2',
  ])
})

test('the ingress proxy drops headers whose names some programs mistake for proxy headers', () => {
  const sent = {
    x_forwarded_for: '10.9.9.9',
    'x-forwarded_proto': 'https',
    x_api_key: '1',
    'x.real.ip': '1',
    accept: '*/*',
  }
  const passed = (passing = PASSING): string[] =>
    Object.keys(requestHeaders(exchangeWith(sent), passing)).filter((name) => Object.hasOwn(sent, name))
  assert.deepEqual(passed(), ['accept'])
  assert.deepEqual(passed({ ...PASSING, keepsUnderscores: true }), ['x_api_key', 'accept'])
  assert.deepEqual(passed({ ...PASSING, trustsForwarded: true }), ['accept'])
})
