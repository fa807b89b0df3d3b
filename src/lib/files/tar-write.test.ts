import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { describe, it } from 'node:test'

import { tarArchive, tarHeader } from './tar-write.ts'

describe('tar writer', () => {
  const long = `${'folder/'.repeat(20)}file`
  const archive = tarArchive([
    { name: 'bin/', mode: 0o755 },
    { name: 'bin/a', mode: 0o755, content: Buffer.from('hello') },
    { name: 'bin/b', mode: 0o777, link: 'a' },
    { name: long, mode: 0o600, uid: 7, gid: 8, modifiedS: 86400, content: Buffer.alloc(512, 1) },
  ])

  it("writes archives that the system's tar can read", { skip: process.platform === 'win32' }, () => {
    const { stdout } = spawnSync('tar', ['-tvf', '-', '--numeric-owner', '--utc'], { input: archive, encoding: 'utf8' })
    const lines = stdout
      .trim()
      .split('\n')
      .map((line) => line.replaceAll(/ +/g, ' '))
    assert.deepEqual(lines, [
      'drwxr-xr-x 0/0 0 1970-01-01 00:00 bin/',
      '-rwxr-xr-x 0/0 5 1970-01-01 00:00 bin/a',
      'lrwxrwxrwx 0/0 0 1970-01-01 00:00 bin/b -> a',
      `-rw------- 7/8 512 1970-01-02 00:00 ${long}`,
    ])
  })

  it('rejects entries that the format cannot represent', () => {
    assert.throws(() => tarHeader({ name: 'x'.repeat(101), mode: 0o644 }, 0), /too long for tar/)
    assert.throws(() => tarHeader({ name: 'x', mode: 0o644 }, 2 ** 40), /too large for tar/)
  })
})
