import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { returnPath } from './return-to.ts'

const ACCEPTED: readonly (readonly [string | null, string])[] = [
  [null, '/ui/'],
  ['', '/ui/'],
  ['/', '/'],
  ['/clusters', '/clusters'],
  ['/clusters/c-x7k2p/pods?namespace=a%20b&x=//y#top', '/clusters/c-x7k2p/pods?namespace=a%20b&x=//y#top'],
  ['/a/../b', '/b'],
  ['/a?to=https://evil.example', '/a?to=https://evil.example'],
]

const REFUSED = [
  '//evil.example',
  '///evil.example',
  '/\\evil.example',
  '\\\\evil.example',
  '\\/evil.example',
  '/a\\b',
  'https://evil.example',
  'https:evil.example',
  'javascript:alert(1)',
  'evil.example',
  '?x',
  '#x',
  ' /a',
  '/\t/evil.example',
  '/\n/evil.example',
  '/%0a\n',
  '\t//evil.example',
  '/.//evil.example',
  '/x/..//evil.example',
  '/ä',
  '/\u0000',
  '/\u2028',
  `/${'a'.repeat(3000)}`,
]

describe('returnPath() after a log-in', () => {
  for (const [wanted, path] of ACCEPTED) {
    it(`accepts ${JSON.stringify(wanted)}`, () => assert.equal(returnPath(wanted), path))
  }
  for (const wanted of REFUSED) {
    it(`refuses ${JSON.stringify(wanted.slice(0, 40))}`, () => assert.equal(returnPath(wanted), undefined))
  }
})
