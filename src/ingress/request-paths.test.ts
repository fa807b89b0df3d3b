import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import * as fc from 'fast-check'

import { normalPath, rewrittenTarget, sendable } from './request-paths.ts'

describe('normalPath() of an ingress request', () => {
  for (const [path, normal] of [
    ['/', '/'],
    ['//a//b', '/a/b'],
    ['/a/./b/', '/a/b/'],
    ['/a/../b', '/b'],
    ['/a/..', '/'],
    ['/%61dmin', '/admin'],
    ['/x/%2e%2e/admin', '/admin'],
    ['/../etc', undefined],
    ['/%zz', undefined],
    ['/a%00', undefined],
    ['*', undefined],
  ] as const)
    it(`normalizes ${path} to ${normal ?? 'no path'}`, () => assert.equal(normalPath(path), normal))
})

describe('rewrittenTarget() of an ingress request', () => {
  it('returns a target that decodes to the rewritten path and fits in a request line', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), (text) => {
        const group = text.toWellFormed()
        const target = rewrittenTarget('/x/$1', ['', group], '?q')
        assert.match(target, /^\/x\/[\x21-\x7e]*\?q$/)
        assert.equal(target.indexOf('?'), target.length - 2)
        assert.equal(decodeURIComponent(target.slice('/x/'.length, -'?q'.length)), group)
      }),
    )
  })
})

describe('sendable() for the path of an ingress request', () => {
  it('keeps valid characters and encodes all others', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme-ascii' }), (text) => {
        const once = sendable(text)
        assert.match(once, /^[\x21-\x7e]*$/)
        assert.equal(sendable(once), once)
      }),
    )
  })
})
