import assert from 'node:assert/strict'
import { execFileSync, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import {
  chmodSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text as readAll } from 'node:stream/consumers'
import { afterEach, beforeEach, describe, it } from 'node:test'

import { writeFileAtomically } from './atomic-file.ts'

describe('writeFileAtomically', () => {
  let dir = ''
  beforeEach(() => {
    dir = mkdtempSync(join(tmpdir(), 'atomic-file-'))
  })
  afterEach(() => rmSync(dir, { recursive: true, force: true }))

  it('creates a file with the requested permissions, and no other files', async () => {
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

  it('replaces the content and the permissions of a file together', async () => {
    const file = join(dir, 'x')
    writeFileSync(file, 'a much longer text')
    chmodSync(file, 0o666)
    const before = statSync(file).ino
    await writeFileAtomically(file, Buffer.from('short'), { mode: 0o600 })
    assert.deepEqual([readFileSync(file, 'utf8'), statSync(file).mode & 0o777], ['short', 0o600])
    assert.notEqual(statSync(file).ino, before)
  })

  it('keeps a symbolic link, and replaces its target', async () => {
    writeFileSync(join(dir, 'real'), 'old')
    symlinkSync('real', join(dir, 'link'))
    await writeFileAtomically(join(dir, 'link'), 'new', { mode: 0o600 })
    assert.ok(lstatSync(join(dir, 'link')).isSymbolicLink())
    assert.equal(readFileSync(join(dir, 'real'), 'utf8'), 'new')
  })

  it('creates the file that a dangling link points to, through further links', async () => {
    mkdirSync(join(dir, 'a/b'), { recursive: true })
    symlinkSync('a/b', join(dir, 'folder'))
    symlinkSync('../second', join(dir, 'a/b/first'))
    symlinkSync('b/real', join(dir, 'a/second'))
    await writeFileAtomically(join(dir, 'folder/first'), 'new', { mode: 0o600 })
    assert.equal(readFileSync(join(dir, 'a/b/real'), 'utf8'), 'new')
    assert.ok(lstatSync(join(dir, 'a/b/first')).isSymbolicLink())
    assert.ok(lstatSync(join(dir, 'a/second')).isSymbolicLink())
  })

  it('rejects links that point to themselves', async () => {
    symlinkSync('x', join(dir, 'x'))
    await assert.rejects(writeFileAtomically(join(dir, 'x'), 'new', { mode: 0o600 }), { code: 'ELOOP' })
  })

  it('writes to a character device without replacing it', async () => {
    const device = nullDevice(dir)
    symlinkSync(device, join(dir, 'link'))
    const { ino, mode, rdev } = lstatSync(device)
    for (const path of [device, join(dir, 'link')]) await writeFileAtomically(path, 'x', { mode: 0o600 })
    const after = lstatSync(device)
    assert.deepEqual([after.ino, after.mode, after.rdev, after.isCharacterDevice()], [ino, mode, rdev, true])
    assert.ok(lstatSync(join(dir, 'link')).isSymbolicLink())
  })

  it('writes to a named pipe with a reader, and rejects one without', async () => {
    const pipe = join(dir, 'pipe')
    execFileSync('mkfifo', [pipe])
    const text = 'x'.repeat(200_000)
    await assert.rejects(
      writeFileAtomically(pipe, text, { mode: 0o600 }),
      /"\S+pipe" is a named pipe that no process reads/,
    )
    const reader = spawn('cat', [pipe], { stdio: ['ignore', 'pipe', 'inherit'] })
    const read = readAll(reader.stdout)
    while (true) {
      const done = await writeFileAtomically(pipe, text, { mode: 0o600 }).then(
        () => true,
        () => false,
      )
      if (done) break
    }
    assert.equal(await read, text)
    assert.ok(lstatSync(pipe).isFIFO())
  })

  it('rejects folders and sockets without changing them', async () => {
    mkdirSync(join(dir, 'folder'))
    await assert.rejects(writeFileAtomically(join(dir, 'folder'), 'x', { mode: 0o600 }), { code: 'EISDIR' })
    const server = createServer().listen(join(dir, 'socket'))
    await once(server, 'listening')
    await assert.rejects(
      writeFileAtomically(join(dir, 'socket'), 'x', { mode: 0o600 }),
      /"\S+" is a socket; name a file/,
    )
    server.close()
    assert.deepEqual(readdirSync(dir), ['folder'])
  })

  it('writes to /dev/stdout when it is a pipe or a file with other output', async () => {
    const module = join(import.meta.dirname, 'atomic-file.ts')
    const program = `
      const { writeFileAtomically } = await import(${JSON.stringify(module)})
      process.stdout.write('before\\n')
      await writeFileAtomically(process.argv[1], 'content\\n', { mode: 0o600 })
      process.stdout.write('after\\n')`
    const run = (command: string): string =>
      execFileSync('sh', ['-c', command, process.execPath, program], { cwd: dir, encoding: 'utf8' })
    for (const path of ['/dev/stdout', '/dev/fd/1', '/proc/self/fd/1', '/proc/thread-self/fd/1']) {
      assert.equal(run(`"$0" --input-type=module -e "$1" ${path} | cat`), 'before\ncontent\nafter\n', path)
      assert.equal(run(`"$0" --input-type=module -e "$1" ${path} > out; cat out`), 'before\ncontent\nafter\n', path)
    }
  })

  it('keeps the old file and leaves no temporary file when it fails', async () => {
    const file = join(dir, 'folder')
    await writeFileAtomically(join(dir, 'x'), 'old', { mode: 0o600 })
    await assert.rejects(writeFileAtomically(join(file, 'y'), 'new', { mode: 0o600 }), { code: 'ENOENT' })
    const broken = 7 as unknown as string
    await assert.rejects(writeFileAtomically(join(dir, 'x'), broken, { mode: 0o600 }), { code: 'ERR_INVALID_ARG_TYPE' })
    assert.equal(readFileSync(join(dir, 'x'), 'utf8'), 'old')
    assert.deepEqual(readdirSync(dir), ['x'])
  })

  it('runs concurrent writes of one file one after the other', async () => {
    const texts = Array.from({ length: 20 }, (_, n) => String(n).repeat(1000))
    await Promise.all(texts.map((text) => writeFileAtomically(join(dir, 'x'), text, { mode: 0o600 })))
    assert.ok(texts.includes(readFileSync(join(dir, 'x'), 'utf8')))
    assert.deepEqual(readdirSync(dir), ['x'])
  })
})

/** A device that a test may destroy; the machine's own for users who could not destroy it. */
function nullDevice(dir: string): string {
  const own = join(dir, 'null')
  const { status } = spawnSync('mknod', [own, 'c', '1', '3'])
  if (status !== 0) return '/dev/null'
  try {
    writeFileSync(own, '')
    return own
  } catch {
    return '/dev/null'
  }
}
