import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, it } from 'node:test'

import { readTar } from './tar-read.ts'
import { tarArchive } from './tar-write.ts'

async function* inPieces(archive: Buffer, size: number): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < archive.length; at += size) yield archive.subarray(at, at + size)
}

async function listed(archive: Buffer, piece = 1000): Promise<string[]> {
  const lines: string[] = []
  for await (const { name, type, size, link, content } of readTar(inPieces(archive, piece))) {
    const parts: Buffer[] = []
    if (!name.includes('unread')) for await (const part of content) parts.push(part)
    lines.push([type, name, size, link, Buffer.concat(parts).toString().slice(0, 8)].join('|'))
  }
  return lines
}

describe('reading tar archives', () => {
  const long = `${'a-folder/'.repeat(40)}file`
  const archive = tarArchive([
    { name: 'd/', mode: 0o755 },
    { name: 'd/a', mode: 0o644, content: Buffer.from('hello') },
    { name: 'unread', mode: 0o644, content: Buffer.alloc(5000, 'x') },
    { name: 'd/l', mode: 0o777, link: 'a' },
    { name: 'last', mode: 0o644, content: Buffer.from('end') },
  ])

  it('gives every entry with its content, whatever the pieces, and passes over what is not read', async () => {
    for (const piece of [1, 511, 512, 513, 100_000])
      assert.deepEqual(await listed(archive, piece), [
        'folder|d/|0||',
        'file|d/a|5||hello',
        'file|unread|5000||',
        'link|d/l|0|a|',
        'file|last|3||end',
      ])
  })

  it('reads what the system writes, in every form', { skip: process.platform === 'win32' }, async () => {
    const folder = mkdtempSync(join(tmpdir(), 'hk-tar-'))
    try {
      mkdirSync(join(folder, long, '..'), { recursive: true })
      writeFileSync(join(folder, long), 'deep')
      symlinkSync(long, join(folder, 'z'))
      for (const form of ['gnu', 'pax']) {
        const args = [`--format=${form}`, '-C', folder, '-cf', '-', long, 'z']
        const { stdout } = spawnSync('tar', args)
        assert.deepEqual(await listed(stdout), [`file|${long}|4||deep`, `link|z|0|${long}|`])
      }
    } finally {
      rmSync(folder, { recursive: true })
    }
  })

  it('says when an archive is none, is broken or is cut short', async () => {
    await assert.rejects(listed(Buffer.alloc(1024, 'x')), /no tar archive, or it is broken/)
    for (const at of [700, 1100, 1600]) await assert.rejects(listed(archive.subarray(0, at)), /cut short/)
    const changed = Buffer.from(archive)
    changed[512 + 10] = 7
    await assert.rejects(listed(changed), /broken/)
    assert.deepEqual(await listed(Buffer.alloc(0)), [])
  })
})
