import assert from 'node:assert/strict'
import { mkdir, mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, it } from 'node:test'

import { openJournal } from './journal.ts'

async function withFolder(task: (folder: string) => Promise<void>): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), 'hyperkube-journal-'))
  try {
    await task(folder)
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

describe('journal of file changes on a machine', () => {
  it('removes created files and restores earlier ones, also in a later process', () =>
    withFolder(async (folder) => {
      const home = join(folder, 'home')
      const [own, old] = [join(folder, 'etc/kubernetes/ca.pem'), join(folder, 'hosts')]
      await writeFile(old, 'before')
      const first = openJournal(home)
      await first.file(own)
      await writeFile(own, 'ours')
      await first.file(old)
      await writeFile(old, 'ours')
      await first.tree(join(folder, 'var/lib/etcd'))
      await mkdir(join(folder, 'var/lib/etcd/member'), { recursive: true })
      await openJournal(home).file(old)
      await openJournal(home).undo()
      await assert.rejects(stat(join(folder, 'etc')), /ENOENT/)
      await assert.rejects(stat(join(folder, 'var')), /ENOENT/)
      assert.equal(await readFile(old, 'utf8'), 'before')
    }))

  it('keeps folders with other files, and folders that existed before', () =>
    withFolder(async (folder) => {
      const journal = openJournal(join(folder, 'home'))
      await mkdir(join(folder, 'kubelet'))
      await journal.tree(join(folder, 'kubelet'))
      await journal.file(join(folder, 'etc/own'))
      await writeFile(join(folder, 'etc/theirs'), '')
      await journal.undo()
      await stat(join(folder, 'kubelet'))
      await stat(join(folder, 'etc/theirs'))
    }))

  it('removes files that were added to a shared folder', () =>
    withFolder(async (folder) => {
      const journal = openJournal(join(folder, 'home'))
      const [old, fresh] = [join(folder, 'pods'), join(folder, 'containers')]
      await mkdir(join(old, 'theirs'), { recursive: true })
      for (const path of [old, fresh, old]) await journal.shelf(path)
      await mkdir(join(old, 'ours/logs'), { recursive: true })
      await mkdir(fresh)
      await journal.undo()
      assert.deepEqual(await readdir(old), ['theirs'])
      await assert.rejects(stat(fresh), /ENOENT/)
    }))

  it('ignores an incomplete last line', () =>
    withFolder(async (folder) => {
      const home = join(folder, 'home')
      await openJournal(home).file(join(folder, 'a'))
      await writeFile(join(home, 'made'), `${await readFile(join(home, 'made'), 'utf8')}{"path":"/et`)
      await openJournal(home).undo()
    }))
})
