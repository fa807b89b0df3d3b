import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, it } from 'node:test'

import * as fc from 'fast-check'

import { readTar, TarError } from './tar-read.ts'
import { tarArchive, tarHeader } from './tar-write.ts'

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

describe('tar reader', () => {
  const long = `${'a-folder/'.repeat(40)}file`
  const archive = tarArchive([
    { name: 'd/', mode: 0o755 },
    { name: 'd/a', mode: 0o644, content: Buffer.from('hello') },
    { name: 'unread', mode: 0o644, content: Buffer.alloc(5000, 'x') },
    { name: 'd/l', mode: 0o777, link: 'a' },
    { name: 'last', mode: 0o644, content: Buffer.from('end') },
  ])

  it('yields every entry for any split of the input, and skips content that the caller does not read', async () => {
    for (const piece of [1, 511, 512, 513, 100_000])
      assert.deepEqual(await listed(archive, piece), [
        'folder|d/|0||',
        'file|d/a|5||hello',
        'file|unread|5000||',
        'link|d/l|0|a|',
        'file|last|3||end',
      ])
  })

  it("reads archives that the system's tar wrote in every format", { skip: process.platform === 'win32' }, async () => {
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

  it('reports an archive that is invalid, damaged or truncated', async () => {
    await assert.rejects(listed(Buffer.alloc(1024, 'x')), /no tar archive, or it is broken/)
    for (const at of [700, 1100, 1600]) await assert.rejects(listed(archive.subarray(0, at)), /cut short/)
    const changed = Buffer.from(archive)
    changed[512 + 10] = 7
    await assert.rejects(listed(changed), /broken/)
    assert.deepEqual(await listed(Buffer.alloc(0)), [])
  })

  for (const size of [
    'x',
    '',
    '-1',
    '-9007199254740993',
    '1e3',
    '0x10',
    '1.5',
    ' 5',
    'NaN',
    'Infinity',
    '9'.repeat(30),
  ])
    it(`rejects a pax header with the size "${size}"`, async () => {
      const whole = Buffer.concat([
        paxHeader(record('size', size)),
        tarHeader({ name: 'a', mode: 0o644 }, 5),
        block('hello'),
      ])
      await assert.rejects(listed(whole), { name: 'TarError', message: 'a pax header is broken' })
    })

  for (const text of ['99 path=a\n', '3 \n', '8 path=a', '0 path=a\n', '+9 path=a\n', 'x', '12 path=ab\nx'])
    it(`rejects a pax header with the malformed record ${JSON.stringify(text)}`, async () => {
      await assert.rejects(listed(paxHeader(Buffer.from(text))), {
        name: 'TarError',
        message: 'a pax header is broken',
      })
    })

  it('reports a truncated archive if a pax header has a huge size', async () => {
    const size = String(Number.MAX_SAFE_INTEGER)
    const whole = Buffer.concat([
      paxHeader(record('size', size)),
      tarHeader({ name: 'a', mode: 0o644 }, 5),
      block('hello'),
    ])
    await assert.rejects(listed(whole), { name: 'TarError', message: 'the archive is cut short' })
  })

  it('applies the size of a pax header only to the file, not to a second pax header or a link', async () => {
    const headers = [paxHeader(record('size', '5')), paxHeader(record('path', 'b'))]
    const file = Buffer.concat([...headers, tarHeader({ name: 'a', mode: 0o644 }, 0), block('hello')])
    assert.deepEqual(await listed(file), ['file|b|5||hello'])
    const link = Buffer.concat([tarHeader({ name: 'l', mode: 0o777, link: 'a' }, 700), archive])
    assert.deepEqual((await listed(link)).slice(0, 3), ['link|l|0|a|', 'folder|d/|0||', 'file|d/a|5||hello'])
  })

  it('yields all entries or throws a TarError for any headers', async () => {
    const size = fc.oneof(
      fc.constantFrom('', 'x', '-1', '8', '1e9', 'NaN', '77777777777', '\u{80}'),
      fc.nat(2000).map((value) => value.toString(8)),
    )
    const part = fc.oneof(
      fc
        .record({ type: fc.constantFrom('0', '1', '2', '5', '7', 'x', 'g', 'L', 'K', 'S'), size })
        .map(({ type, size: text }) => headerWith(type, text)),
      fc
        .tuple(fc.constantFrom('size', 'path', 'linkpath', ''), size)
        .map(([key, value]) => paxHeader(record(key, value))),
      fc.string({ maxLength: 600 }).map(block),
      fc.uint8Array({ maxLength: 600 }).map((bytes) => Buffer.from(bytes)),
    )
    await fc.assert(
      fc.asyncProperty(fc.array(part, { maxLength: 8 }), fc.integer({ min: 1, max: 2000 }), async (parts, piece) => {
        const whole = Buffer.concat(parts)
        const pieces = inPieces(whole, piece)
        try {
          for await (const { content } of readTar(pieces))
            for await (const bytes of content) assert.ok(bytes.length > 0)
        } catch (error) {
          assert.ok(error instanceof TarError, String(error))
        }
      }),
    )
  })
})

function block(text: string): Buffer {
  const bytes = Buffer.from(text)
  return Buffer.concat([bytes, Buffer.alloc((512 - (bytes.length % 512)) % 512)])
}

function record(key: string, value: string): Buffer {
  const rest = ` ${key}=${value}\n`
  let length = Buffer.byteLength(rest) + 1
  while (String(length).length + Buffer.byteLength(rest) !== length) length++
  return Buffer.from(`${length}${rest}`)
}

function paxHeader(records: Buffer): Buffer {
  return Buffer.concat([headerWith('x', records.length.toString(8)), block(records.toString('latin1'))])
}

/** With a right checksum. */
function headerWith(type: string, size: string): Buffer {
  const header = tarHeader({ name: 'name', mode: 0o644 }, 0)
  header.fill(0, 124, 136)
  header.write(size, 124, 12, 'latin1')
  header.write(type, 156)
  header.write(' '.repeat(8), 148)
  const sum = header.reduce((total, byte) => total + byte, 0)
  header.write(`${sum.toString(8).padStart(6, '0')}\u0000 `, 148)
  return header
}
