import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { unchangedMappings } from './return-memory.ts'

const FILE = '/opt/node 26/bin/node'

/** As the kernel tells of a mapping, as far as it matters here. */
const mapping = (range: string, access: string, path: string, anonymousKb: number): string =>
  `${range} ${access} 00001000 fe:00 4711                       ${path}\nSize:               8192 kB\nRss:                1024 kB\nAnonymous:          ${anonymousKb} kB\nVmFlags: rd ex mr mw me\n`

describe('memory mappings that can be unmapped', () => {
  it('are unmodified and read-only', () => {
    const smaps = [
      mapping('00400000-00c00000', 'r--p', FILE, 0),
      mapping('00c00000-02000000', 'r-xp', FILE, 0),
      mapping('02000000-02100000', 'r--p', FILE, 24),
      mapping('02100000-02200000', 'rw-p', FILE, 0),
      mapping('7f0000000000-7f0000800000', 'r-xp', '/usr/lib/libc.so.6', 0),
      mapping('7f0001000000-7f0001800000', 'r-xp', '', 0),
    ].join('')
    assert.deepEqual(unchangedMappings(smaps, FILE), [
      { start: 0x400000n, end: 0xc00000n },
      { start: 0xc00000n, end: 0x2000000n },
    ])
  })

  it('are none without /proc', () => {
    assert.deepEqual(unchangedMappings('', FILE), [])
  })
})
