import assert from 'node:assert/strict'
import { mkdtemp, rename, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'

import { eventually } from '#kits/lib/eventually.ts'

import { followArchives } from './image-archives.ts'

test('followArchives() passes on existing and new image archives once, and skips incomplete ones', async () => {
  await using closing = new AsyncDisposableStack()
  const root = await mkdtemp(join(tmpdir(), 'hyperkube-archives-'))
  closing.defer(() => rm(root, { recursive: true }))
  const folder = join(root, 'images')
  const loaded: string[] = []
  const load = async (file: string): Promise<void> => void loaded.push(file.slice(folder.length + 1))
  {
    await using early = new AsyncDisposableStack()
    await followArchives(folder, load, early)
  }
  await writeFile(join(folder, 'a.tar'), '')
  await followArchives(folder, load, closing)
  await writeFile(join(folder, 'b.tar.123.part'), '')
  await rename(join(folder, 'b.tar.123.part'), join(folder, 'b.tar'))
  await eventually(
    () => loaded.join(),
    (found) => found === 'a.tar,b.tar',
  )
  await writeFile(join(folder, 'a.tar'), 'again')
  await writeFile(join(folder, 'c.tar'), '')
  await eventually(
    () => loaded.join(),
    (found) => found === 'a.tar,b.tar,c.tar',
  )
  assert.equal(loaded.length, 3)
})
