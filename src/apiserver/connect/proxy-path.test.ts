import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import fc from 'fast-check'

import { requestInfoOf } from '#auth/request-info.ts'

import { proxyPath } from './proxy-path.ts'

const BASE = '/api/v1/namespaces/a/pods/b/proxy'

/** The path behind `proxy` and the forwarded path. Compared with upstream v1.36. */
const PATHS: readonly (readonly [string, string])[] = [
  ['', ''],
  ['/', '/'],
  ['/x', '/x'],
  ['/x/', '/x/'],
  ['//x//y', '/x/y'],
  ['/a/../b', '/b'],
  ['/../../../etc', '/etc'],
  ['/a/..', '/'],
  ['/%2e%2e/%2E%2E/x', '/x'],
  ['/a%2f..%2f..%2fb', '/b'],
  ['/a%2Fb%20c%3Fd/', '/a/b%20c%3Fd/'],
  ['/%ff%00', '/%FF%00'],
  ['/%0d%0aHost:x', '/%0D%0AHost:x'],
  ["/a!b'c(d)e*f[g]", '/a%21b%27c%28d%29e%2Af%5Bg%5D'],
  ['/%C3%A4', '/%C3%A4'],
  ['/x%2F', '/x/'],
]

const pass = (behind: string): string => {
  const path = `${BASE}${behind}`
  return proxyPath(path, requestInfoOf('GET', path, undefined).rest.length)
}

describe('path of a proxied request', () => {
  for (const [behind, sent] of PATHS)
    it(`is normalized from "${behind}" to "${sent}"`, () => assert.equal(pass(behind), sent))

  it('is refused if its percent encoding is invalid', () => {
    assert.throws(() => pass('/%zz'), /invalid URL escape "%zz"/)
    assert.throws(() => pass('/a%2'), /invalid URL escape "%2"/)
  })

  it('never contains dot segments or line breaks, and stays the same when it is forwarded again', () => {
    const piece = fc.constantFrom(
      '/',
      '..',
      '.',
      'a',
      '%2e',
      '%2f',
      '%5c',
      '%0a',
      '%20',
      '%25',
      'b',
      '~',
      ';',
      '%c3%28',
    )
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 20 }), (pieces) => {
        const sent = pass(`/${pieces.join('')}`)
        assert.match(sent, /^\/(?:[A-Za-z0-9\-_.~$&+,/:;=@]|%[0-9A-F]{2})*$/)
        assert.ok(!sent.split('/').includes('..') && !sent.split('/').includes('.'))
        assert.equal(pass(sent), sent)
      }),
    )
  })
})
