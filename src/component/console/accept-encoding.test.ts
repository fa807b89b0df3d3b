import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { chooseEncoding, type Encoding } from './accept-encoding.ts'

const BOTH: ReadonlySet<Encoding> = new Set(['br', 'gzip'])

describe('chooseEncoding()', () => {
  const rows: readonly (readonly [header: string | undefined, available: ReadonlySet<Encoding>, Encoding])[] = [
    [undefined, BOTH, 'identity'],
    ['', BOTH, 'identity'],
    ['gzip, deflate, br, zstd', BOTH, 'br'],
    ['gzip, deflate, br', new Set(['gzip']), 'gzip'],
    ['gzip, deflate, br', new Set(), 'identity'],
    ['gzip', BOTH, 'gzip'],
    ['GZIP', BOTH, 'gzip'],
    ['br;q=0, gzip', BOTH, 'gzip'],
    ['br;q=0.0, gzip;q=0', BOTH, 'identity'],
    ['br; q=0.5', BOTH, 'br'],
    ['br;q=x, gzip;q=1', BOTH, 'gzip'],
    ['*', BOTH, 'br'],
    ['*, br;q=0', BOTH, 'gzip'],
    ['identity', BOTH, 'identity'],
    ['xbr, gzipx', BOTH, 'identity'],
  ]
  for (const [header, available, wanted] of rows) {
    it(`returns ${wanted} for "${header}" with ${[...available].join(' and ') || 'no encoding'}`, () => {
      assert.equal(chooseEncoding(header, available), wanted)
    })
  }
})
