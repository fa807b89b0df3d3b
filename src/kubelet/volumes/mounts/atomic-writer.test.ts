import assert from 'node:assert/strict'
import { mkdir, mkdtemp, readdir, readFile, readlink, rm, stat, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'

import { createVirtualClock } from '#lib/clock.ts'
import { createSeededRandom } from '#lib/random.ts'

import type { Payload } from '../volume-plugin.ts'
import { writeAtomically } from './atomic-writer.ts'

const filesOf = (texts: Readonly<Record<string, string>>, mode = 0o644): Payload =>
  new Map(Object.entries(texts).map(([path, text]) => [path, { data: Buffer.from(text), mode }]))

interface Bed {
  readonly dir: string
  readonly write: (texts: Readonly<Record<string, string>>, beforeShown?: () => Promise<void>) => Promise<void>
}

async function bedIn(t: TestContext): Promise<Bed> {
  const dir = await mkdtemp(join(tmpdir(), 'atomic-'))
  t.after(() => rm(dir, { recursive: true }))
  const tools = { clock: createVirtualClock(Date.UTC(2026, 10, 15, 10, 14, 14)), random: createSeededRandom(1) }
  return {
    dir,
    write: (texts, beforeShown) =>
      writeAtomically({ dir, files: filesOf(texts), ...tools, ...(beforeShown !== undefined && { beforeShown }) }),
  }
}

const stampedIn = async (dir: string): Promise<string[]> =>
  (await readdir(dir)).filter((name) => name.startsWith('..2'))

test('files of a projected volume are links into a timestamped directory', async (t) => {
  const { dir, write } = await bedIn(t)
  await write({ a: '1', 'sub/b': '2' })
  const [stamped = ''] = await stampedIn(dir)
  assert.match(stamped, /^\.\.2026_11_15_10_14_14\.\d+$/)
  assert.equal(await readlink(join(dir, '..data')), stamped)
  assert.equal(await readlink(join(dir, 'a')), '..data/a')
  assert.equal(await readlink(join(dir, 'sub')), '..data/sub')
  assert.equal(await readFile(join(dir, 'sub/b'), 'utf8'), '2')
  assert.equal((await stat(join(dir, stamped))).mode & 0o7777, 0o755)
})

test('files of a projected volume are not rewritten if unchanged; changes and removals appear at once', async (t) => {
  const { dir, write } = await bedIn(t)
  await write({ a: '1', b: '2' })
  const before = await readlink(join(dir, '..data'))
  await write({ a: '1', b: '2' })
  assert.equal(await readlink(join(dir, '..data')), before)
  await write({ a: '3', c: '4' })
  assert.deepEqual((await readdir(dir)).filter((name) => !name.startsWith('..')).sort(), ['a', 'c'])
  assert.equal(await readFile(join(dir, 'a'), 'utf8'), '3')
  assert.equal((await stampedIn(dir)).length, 1)
})

test('a failed update of a projected volume keeps the old files and leaves no temporary files', async (t) => {
  const { dir, write } = await bedIn(t)
  await write({ a: '1' })
  await assert.rejects(
    write({ a: '2' }, () => Promise.reject(new Error('no space left on device'))),
    /no space left/,
  )
  assert.equal(await readFile(join(dir, 'a'), 'utf8'), '1')
  assert.equal((await stampedIn(dir)).length, 1)
})

test('timestamped directories that a killed kubelet left in a volume are removed', async (t) => {
  const { dir, write } = await bedIn(t)
  await write({ a: '1' })
  await mkdir(join(dir, '..2026_01_01_00_00_00.7'))
  await writeFile(join(dir, '..2026_01_01_00_00_00.7/a'), 'half')
  await symlink('..2026_01_01_00_00_00.7', join(dir, '..data_tmp'))
  await write({ a: '2' })
  assert.equal(await readFile(join(dir, 'a'), 'utf8'), '2')
  assert.equal((await stampedIn(dir)).length, 1)
  assert.deepEqual((await readdir(dir)).sort(), ['..data', await readlink(join(dir, '..data')), 'a'].sort())
})

test('file paths that lead outside a projected volume are rejected', async (t) => {
  const { dir, write } = await bedIn(t)
  const refused: Readonly<Record<string, string>> = {
    '': 'invalid path: must not be empty: ""',
    '/etc/passwd': 'invalid path: must be relative path: /etc/passwd',
    'a/../../b': "invalid path: must not contain '..': a/../../b",
    '..data/x': "invalid path: must not start with '..': ..data/x",
    ['x'.repeat(256)]: 'invalid path: filenames must be less than or equal to 255 characters',
  }
  for (const [path, message] of Object.entries(refused)) await assert.rejects(write({ [path]: '' }), { message })
  assert.deepEqual(await readdir(dir), [])
})

test('a directory in a projected volume that is a mount point stays', async (t) => {
  const { dir, write } = await bedIn(t)
  await mkdir(join(dir, 'nested'))
  await write({ a: '1', 'nested/b': '2' })
  assert.ok((await stat(join(dir, 'nested'))).isDirectory())
})
