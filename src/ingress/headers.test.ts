import assert from 'node:assert/strict'
import { test } from 'node:test'

import type { Exchange } from '#lib/http/exchange.ts'

import { requestHeaders, responseHeaders } from './headers.ts'

const asked = (headers: Readonly<Record<string, string>>): Pick<Exchange, 'headers' | 'authority' | 'peer'> => ({
  headers,
  authority: 'web.example',
  peer: { address: '192.0.2.1', isEncrypted: true } as Exchange['peer'],
})
const PASSING = { port: 443, trustsForwarded: false, keepsUnderscores: false, requestId: 'abc' }

test('a pod is told who asks, for what, and by which way', () => {
  const headers = requestHeaders(
    asked({ cookie: 'a=b', 'x-forwarded-for': '10.9.9.9', 'x-real-ip': '1.1.1.1' }),
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

test('whoever is believed may say for whom they ask', () => {
  const said = { 'x-forwarded-for': '203.0.113.9', 'x-forwarded-proto': 'http', 'x-forwarded-host': 'front.example' }
  const headers = requestHeaders(asked(said), { ...PASSING, trustsForwarded: true })
  assert.equal(headers['x-forwarded-for'], '203.0.113.9, 192.0.2.1')
  assert.equal(headers['x-real-ip'], '203.0.113.9')
  assert.equal(headers['x-forwarded-proto'], 'http')
  assert.equal(headers['x-forwarded-host'], 'front.example')
})

test('what is about one connection stays there', () => {
  const said = {
    connection: 'keep-alive, x-private',
    'x-private': '1',
    'keep-alive': '5',
    te: 'trailers',
    accept: '*/*',
  }
  const names = Object.keys(requestHeaders(asked(said), PASSING))
  assert.deepEqual(
    names.filter((name) => Object.hasOwn(said, name)),
    ['accept'],
  )
  assert.deepEqual(responseHeaders({ connection: 'close', 'set-cookie': ['a=1', 'b=2'], date: 'today' }), [
    'Set-Cookie',
    'a=1',
    'Set-Cookie',
    'b=2',
  ])
})

test('a header whose name another program takes for that of a proxy is not passed on', () => {
  const said = {
    x_forwarded_for: '10.9.9.9',
    'x-forwarded_proto': 'https',
    x_api_key: '1',
    'x.real.ip': '1',
    accept: '*/*',
  }
  const passed = (passing = PASSING): string[] =>
    Object.keys(requestHeaders(asked(said), passing)).filter((name) => Object.hasOwn(said, name))
  assert.deepEqual(passed(), ['accept'])
  assert.deepEqual(passed({ ...PASSING, keepsUnderscores: true }), ['x_api_key', 'accept'])
  assert.deepEqual(passed({ ...PASSING, trustsForwarded: true }), ['accept'])
})
