/** Tests `kubectl cp` from malicious containers: it writes files below the target or not at all. */
import assert from 'node:assert/strict'
import { lstat, mkdir, mkdtemp, readdir, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'

import { TAR_END, tarHeader, tarPadding, type TarFile } from '#lib/files/tar-write.ts'

import { askHostile, json, type Outcome, printing } from './hostile-server.ts'

let bed: string
let runs = 0

before(async () => {
  bed = await mkdtemp(join(tmpdir(), 'hyperkube-archives-'))
})

after(() => rm(bed, { recursive: true, force: true }))

const POD = {
  kind: 'Pod',
  apiVersion: 'v1',
  metadata: { name: 'x', namespace: 'default' },
  spec: { containers: [{ name: 'c', image: 'i' }] },
  status: { phase: 'Running' },
}

interface Entry extends Partial<TarFile> {
  readonly name: string
  readonly content?: string
  /** Other than what is there. */
  readonly size?: number
  readonly type?: string
}

function archive(entries: readonly Entry[]): Buffer {
  const parts = entries.flatMap(({ content = '', size = content.length, type, ...file }) => {
    const header = tarHeader({ mode: 0o644, ...file }, size)
    if (type !== undefined) retype(header, type)
    return [header, Buffer.from(content), tarPadding(content.length)]
  })
  return Buffer.concat([...parts, TAR_END])
}

function retype(header: Buffer, type: string): void {
  header.write(type, 156)
  header.write(' '.repeat(8), 148)
  const sum = header.reduce((total, byte) => total + byte, 0)
  header.write(`${sum.toString(8).padStart(6, '0')}\u0000 `, 148)
}

interface Copied extends Outcome {
  /** Everything below the folder that the target is in, but for what kubectl remembers of the server. */
  readonly files: readonly string[]
  readonly target: string
}

/** `cp x:/data target/inner`, where the container sends these. */
async function copied(...entries: readonly Entry[]): Promise<Copied> {
  const folder = join(bed, String(runs++))
  await mkdir(join(folder, 'target'), { recursive: true })
  const args = ['cp', 'x:/data', 'target/inner', '-n', 'default']
  const outcome = await askHostile(folder, args, json(200, POD), printing(archive(entries)))
  const found = await readdir(folder, { recursive: true })
  const files = found.filter((name) => !name.startsWith('cache')).sort()
  return { ...outcome, files, target: join(folder, 'target', 'inner') }
}

const ALONE = ['target', 'target/inner', 'target/inner/good']
const GOOD = { name: 'data/good', content: 'good' }

void test('kubectl cp copies valid entries of an archive', async () => {
  const { code, files, target, err } = await copied(GOOD)
  assert.deepEqual([code, files, err], [0, ALONE, ''])
  assert.equal(await readFile(join(target, 'good'), 'utf8'), 'good')
})

for (const [name, entry] of [
  ['leaves the target with ..', { name: 'data/../../evil', content: 'evil' }],
  ['leaves the target with many ..', { name: `data/${'../'.repeat(12)}tmp/hyperkube-evil`, content: 'evil' }],
  ['leaves the target with \\..', { name: String.raw`data/..\..\..\evil`, content: 'evil' }],
  ['leads to a sibling of the target', { name: 'data/../inner-evil', content: 'evil' }],
  ['is a directory whose path contains ..', { name: 'data/../../evil/' }],
  ['begins with the source and leaves it with ..', { name: 'data../../evil', content: 'evil' }],
] as const) {
  void test(`kubectl cp skips an archive entry that ${name}`, async () => {
    const { files, err } = await copied(entry, GOOD)
    assert.deepEqual(files, ALONE)
    assert.match(err, /^warning: file .* is outside target destination, skipping\n/)
  })
}

void test('kubectl cp fails for an archive entry outside of the source', async () => {
  const { code, files, err } = await copied({ name: '/etc/evil', content: 'evil' }, GOOD)
  assert.deepEqual([code, files], [1, ['target']])
  assert.match(err, /^error: tar contents corrupted\n/)
})

void test('kubectl cp skips a link, and writes through the link stay below the target', async () => {
  const link = { name: 'data/way', link: '../..' }
  const { files, err } = await copied(link, { name: 'data/way/evil', content: 'evil' }, GOOD)
  assert.deepEqual(files, ['target', 'target/inner', 'target/inner/good', 'target/inner/way', 'target/inner/way/evil'])
  assert.match(err, /^warning: skipping symlink: /)
})

void test('kubectl cp creates empty files for hard links and devices', async () => {
  const hard = { name: 'data/hard', link: '/etc/passwd', type: '1' }
  const { files, target } = await copied(hard, { name: 'data/device', type: '3' }, GOOD)
  assert.deepEqual(files, ['target', 'target/inner', 'target/inner/device', 'target/inner/good', 'target/inner/hard'])
  for (const name of ['hard', 'device']) {
    const made = await lstat(join(target, name))
    assert.deepEqual([made.isFile(), made.size, made.nlink], [true, 0, 1])
  }
})

void test('kubectl cp sets no setuid or setgid bits', async () => {
  const { target } = await copied({ ...GOOD, mode: 0o6755 })
  assert.equal((await lstat(join(target, 'good'))).mode & 0o6000, 0)
})

void test('kubectl cp escapes names for the terminal', async () => {
  const { err } = await copied(
    { name: 'data/../../\u001b[2Jevil', content: 'evil' },
    { name: 'data/\u001b[2J', link: '\r' },
    GOOD,
  )
  assert.equal(err.includes('\u001b') || err.includes('\r'), false)
})

void test('kubectl cp reports a truncated archive', async () => {
  const { code, err } = await copied({ name: 'data/large', content: 'x', size: 2 ** 32 })
  assert.equal(code, 1)
  assert.match(err, /^error: unexpected EOF\n/)
})
