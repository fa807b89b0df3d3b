import assert from 'node:assert/strict'
import {
  chmodSync,
  lstatSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, it } from 'node:test'

import { writeFileAtomically } from './atomic-file.ts'

describe('writeFileAtomically', () => {
  let dir = ''
  beforeEach(() => {
    dir = mkdtempSync(join(tmpdir(), 'atomic-file-'))
  })
  afterEach(() => rmSync(dir, { recursive: true, force: true }))

  it('writes a file with the permissions asked for, and nothing else', async () => {
    const file = join(dir, 'x')
    const umask = process.umask(0o077)
    try {
      await writeFileAtomically(file, 'one', { mode: 0o644 })
    } finally {
      process.umask(umask)
    }
    assert.deepEqual([readFileSync(file, 'utf8'), statSync(file).mode & 0o777], ['one', 0o644])
    assert.deepEqual(readdirSync(dir), ['x'])
  })

  it('replaces a file as a whole, permissions included', async () => {
    const file = join(dir, 'x')
    writeFileSync(file, 'a much longer text')
    chmodSync(file, 0o666)
    const before = statSync(file).ino
    await writeFileAtomically(file, Buffer.from('short'), { mode: 0o600 })
    assert.deepEqual([readFileSync(file, 'utf8'), statSync(file).mode & 0o777], ['short', 0o600])
    assert.notEqual(statSync(file).ino, before)
  })

  it('keeps a symbolic link, and replaces what it leads to', async () => {
    writeFileSync(join(dir, 'real'), 'old')
    symlinkSync('real', join(dir, 'link'))
    await writeFileAtomically(join(dir, 'link'), 'new', { mode: 0o600 })
    assert.ok(lstatSync(join(dir, 'link')).isSymbolicLink())
    assert.equal(readFileSync(join(dir, 'real'), 'utf8'), 'new')
  })

  it('leaves the old file and nothing else when it fails', async () => {
    const file = join(dir, 'folder')
    await writeFileAtomically(join(dir, 'x'), 'old', { mode: 0o600 })
    await assert.rejects(writeFileAtomically(join(file, 'y'), 'new', { mode: 0o600 }), { code: 'ENOENT' })
    const broken = 7 as unknown as string
    await assert.rejects(writeFileAtomically(join(dir, 'x'), broken, { mode: 0o600 }), { code: 'ERR_INVALID_ARG_TYPE' })
    assert.equal(readFileSync(join(dir, 'x'), 'utf8'), 'old')
    assert.deepEqual(readdirSync(dir), ['x'])
  })

  it('lets several writers of one file follow each other', async () => {
    const texts = Array.from({ length: 20 }, (_, n) => String(n).repeat(1000))
    await Promise.all(texts.map((text) => writeFileAtomically(join(dir, 'x'), text, { mode: 0o600 })))
    assert.ok(texts.includes(readFileSync(join(dir, 'x'), 'utf8')))
    assert.deepEqual(readdirSync(dir), ['x'])
  })
})
