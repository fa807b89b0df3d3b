import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import type { Exchange } from '#lib/http/exchange.ts'

import { requestHeaders, responseHeaders, upgradeHeaders } from './headers.ts'

const from = (headers: Record<string, string>, address = '10.0.0.9'): Exchange =>
  ({ headers, authority: 'cluster.example', peer: { address } }) as unknown as Exchange

describe('headers of a proxied request', () => {
  it('contain no connection headers and no credentials', () => {
    const sent = requestHeaders(
      from({
        host: 'cluster.example',
        authorization: 'Bearer secret',
        'proxy-authorization': 'Basic x',
        'x-remote-user': 'root',
        'x-remote-extra-a': 'b',
        'impersonate-user': 'root',
        'impersonate-extra-a': 'b',
        connection: 'keep-alive, X-Mine',
        'keep-alive': '5',
        'x-mine': '1',
        te: 'trailers',
        'transfer-encoding': 'chunked',
        upgrade: 'h2c',
        'http2-settings': 'x',
        expect: '100-continue',
        accept: '*/*',
        cookie: 'a=b',
        ':path': '/x',
      }),
    )
    assert.deepEqual(sent, {
      host: 'cluster.example',
      accept: '*/*',
      cookie: 'a=b',
      'x-forwarded-for': '10.0.0.9',
    })
  })

  it('list all proxies in X-Forwarded-For, the nearest last', () => {
    assert.equal(requestHeaders(from({ 'x-forwarded-for': '1.2.3.4' }))['x-forwarded-for'], '1.2.3.4, 10.0.0.9')
    assert.equal(requestHeaders(from({}, ''))['x-forwarded-for'], undefined)
  })

  it('keep the upgrade protocol, without the token among the WebSocket subprotocols', () => {
    const token = 'base64url.bearer.authorization.k8s.io.c2VjcmV0'
    const sent = upgradeHeaders(
      from({ connection: 'Upgrade', upgrade: 'websocket', 'sec-websocket-protocol': `v5.channel.k8s.io, ${token}` }),
    )
    assert.equal(sent['connection'], 'Upgrade')
    assert.equal(sent['upgrade'], 'websocket')
    assert.equal(sent['sec-websocket-protocol'], 'v5.channel.k8s.io')
    assert.ok(!JSON.stringify(sent).includes('c2VjcmV0'))
  })

  it("lose the backend's CORS headers in a response", () => {
    const list = responseHeaders(
      {
        'content-type': 'text/html',
        'content-length': '5',
        'set-cookie': ['a=1', 'b=2'],
        'access-control-allow-origin': '*',
        'access-control-allow-credentials': 'true',
        connection: 'close, x-gone',
        'x-gone': '1',
        'transfer-encoding': 'chunked',
        date: 'now',
        'x-own': 'y',
      },
      ['content-length'],
    )
    assert.deepEqual(list, ['Content-Type', 'text/html', 'Set-Cookie', 'a=1', 'Set-Cookie', 'b=2', 'X-Own', 'y'])
  })
})
