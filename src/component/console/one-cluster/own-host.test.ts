import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { isOwnHost } from './own-host.ts'

describe('isOwnHost()', () => {
  const rows: readonly (readonly [authority: string, port: number, isOwn: boolean])[] = [
    ['127.0.0.1:6444', 6444, true],
    ['localhost:6444', 6444, true],
    ['LOCALHOST:6444', 6444, true],
    ['[::1]:6444', 6444, true],
    ['localhost', 80, true],
    ['localhost:80', 80, false],
    ['127.0.0.1', 6444, false],
    ['127.0.0.1:6445', 6444, false],
    ['127.0.0.2:6444', 6444, false],
    ['localhost.:6444', 6444, false],
    ['localhost.evil.example:6444', 6444, false],
    ['evil.example:6444', 6444, false],
    ['127.0.0.1:6444@evil.example', 6444, false],
    ['127.0.0.1:06444', 6444, false],
    ['2130706433:6444', 6444, false],
    ['0.0.0.0:6444', 6444, false],
    ['::1:6444', 6444, false],
    ['[::ffff:127.0.0.1]:6444', 6444, false],
    ['', 6444, false],
  ]
  for (const [authority, port, isOwn] of rows) {
    it(`returns ${isOwn} for "${authority}" at port ${port}`, () => assert.equal(isOwnHost(authority, port), isOwn))
  }
})
