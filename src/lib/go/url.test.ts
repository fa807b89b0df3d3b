import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { parseGoUrl, parseRequestUri } from './url.ts'

describe('parseRequestUri', () => {
  it("rejects invalid URIs with Go's errors", () => {
    for (const [text, message] of [
      ['', 'empty url'],
      ['a/b', 'invalid URI for request'],
      ['://a', 'missing protocol scheme'],
      ['http://a\n', 'net/url: invalid control character in URL'],
      ['http://a b/', 'invalid character " " in host name'],
      ['http://[1.2.3.4]/', 'invalid IP-literal'],
      ['http://a:b:1/', 'invalid port ":b:1" after host'],
      ['http://[::1]x/', 'invalid port "x" after host'],
      ['http://%41/', 'invalid URL escape "%41"'],
      ['http://a/%zz', 'invalid URL escape "%zz"'],
      ['http://u|@a/', 'net/url: invalid userinfo'],
    ] as const) {
      assert.equal(parseRequestUri(text), `parse ${JSON.stringify(text)}: ${message}`)
    }
  })
})

describe('parseGoUrl', () => {
  it('splits URLs into their parts', () => {
    const url = parseGoUrl('HTTPS://u:p@h.x:8443/a/b%2Fc?x=1&y=a%20b&x=2&;&z#frag')
    assert.ok(typeof url !== 'string')
    const { scheme, host, hostname, port, escapedPath } = url
    assert.deepEqual(
      { scheme, host, hostname, port, escapedPath },
      {
        scheme: 'https',
        host: 'h.x:8443',
        hostname: 'h.x',
        port: '8443',
        escapedPath: '/a/b%2Fc',
      },
    )
    assert.deepEqual(Object.fromEntries(url.query()), { x: ['1', '2'], y: ['a b'], z: [''] })
  })

  it('escapes invalid characters of a path', () => {
    const url = parseGoUrl('http://a/b "c"/é')
    assert.ok(typeof url !== 'string')
    assert.equal(url.escapedPath, '/b%20%22c%22/%C3%A9')
  })
})
