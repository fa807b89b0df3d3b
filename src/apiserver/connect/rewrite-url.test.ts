import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { rewriteUrl } from './rewrite-url.ts'

const page = { prefix: '/api/v1/p/proxy', backendHost: '10.1.1.1:80', requestHost: 'cluster.example:6443' }

/** Compared with upstream v1.36. */
const LINKS: readonly (readonly [string, string])[] = [
  ['/abs', '/api/v1/p/proxy/abs'],
  ['/abs/?q=1#f', '/api/v1/p/proxy/abs/?q=1#f'],
  ['/', '/api/v1/p/proxy/'],
  ['/a/../../../..', '/api'],
  ['rel/x', 'rel/x'],
  ['?q=1', '?q=1'],
  ['#top', '#top'],
  ['', ''],
  ['/api/v1/p/proxy/already', '/api/v1/p/proxy/already'],
  ['http://10.1.1.1:80/h?q=1', '/api/v1/p/proxy/h?q=1'],
  ['//10.1.1.1:80/pr', '/api/v1/p/proxy/pr'],
  ['http://10.1.1.1:80', 'http://10.1.1.1:80'],
  ['http://10.1.1.1:81/h', 'http://10.1.1.1:81/h'],
  ['https://elsewhere/x', 'https://elsewhere/x'],
  ['https://cluster.example:6443/mine', 'https://cluster.example:6443/api/v1/p/proxy/mine'],
  ['mailto:a@b', 'mailto:a@b'],
  ['javascript:/x/', 'javascript:/x/'],
]

describe('link rewriting in a proxied response', () => {
  for (const [link, seen] of LINKS)
    it(`turns "${link}" into "${seen}"`, () => assert.equal(rewriteUrl(link, page), seen))
})
