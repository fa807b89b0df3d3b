import assert from 'node:assert/strict'
import { chmod, mkdir, mkdtemp, rm, stat, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'

import { setOwnership } from './ownership.ts'

const gid = process.getgid?.() ?? 0

test('fsGroup gets access to all files of a volume, and links are not followed', async (t) => {
  const root = await mkdtemp(join(tmpdir(), 'ownership-'))
  t.after(() => rm(root, { recursive: true }))
  const dir = join(root, 'volume')
  const outside = join(root, 'outside')
  await mkdir(join(dir, 'sub'), { recursive: true, mode: 0o700 })
  await writeFile(join(dir, 'sub/file'), '', { mode: 0o600 })
  await writeFile(outside, '', { mode: 0o600 })
  await symlink(outside, join(dir, 'link'))
  const modeOf = async (path: string): Promise<number> => (await stat(path)).mode & 0o7777
  await setOwnership(dir, { fsGroup: undefined, readOnly: false })
  assert.equal(await modeOf(join(dir, 'sub/file')), 0o600)
  await setOwnership(dir, { fsGroup: gid, readOnly: true })
  assert.equal(await modeOf(join(dir, 'sub/file')), 0o640)
  await setOwnership(dir, { fsGroup: gid, readOnly: false })
  assert.equal(await modeOf(join(dir, 'sub/file')), 0o660)
  assert.equal(await modeOf(join(dir, 'sub')), 0o2770)
  assert.equal(await modeOf(dir), 0o2770)
  assert.equal(await modeOf(outside), 0o600)
  await chmod(join(dir, 'sub/file'), 0o600)
  await setOwnership(dir, { fsGroup: gid, readOnly: false, policy: 'OnRootMismatch' })
  assert.equal(await modeOf(join(dir, 'sub/file')), 0o600)
  await chmod(dir, 0o770)
  await setOwnership(dir, { fsGroup: gid, readOnly: false, policy: 'OnRootMismatch' })
  assert.equal(await modeOf(join(dir, 'sub/file')), 0o660)
})
