import assert from 'node:assert/strict'
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'

import { realClock } from '#lib/clock.ts'
import { createSeededRandom } from '#lib/random.ts'

import { copySnapshot, deleteCopies, fetchSnapshot, listCopies } from '../apply/snapshot-copies.ts'
import { readClusterFile } from '../file/cluster-file.ts'
import { completeBundle } from '../pki/bundle.ts'
import { Bucket, type BucketLocation } from './bucket.ts'
import { type S3Options, type S3Server, startS3, TEST_KEYS } from './s3-server.fixture.ts'
import { encodePath, sign } from './signature.ts'

/** Examples from the service's documentation. */
const EXAMPLE = {
  accessKey: 'AKIAIOSFODNN7EXAMPLE',
  secretKey: 'wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY',
  region: 'us-east-1',
}
const NOTHING = 'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855'
const VECTORS: readonly [name: string, request: Partial<Parameters<typeof sign>[0]>, signature: string][] = [
  [
    'GET of an object',
    { path: '/test.txt', headers: { range: 'bytes=0-9' } },
    'f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41',
  ],
  [
    'PUT of an object',
    {
      method: 'PUT',
      path: encodePath('/test$file.text'),
      headers: { date: 'Fri, 24 May 2013 00:00:00 GMT', 'x-amz-storage-class': 'REDUCED_REDUNDANCY' },
      sha256: '44ce7dd67c959e0d3524ffac1771dfbba87d2b6b4b4e99e42034a8b803f8b072',
    },
    '98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd',
  ],
  [
    'a key of a query without value',
    { query: { lifecycle: '' } },
    'fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543',
  ],
  [
    'GET of a list',
    { query: { prefix: 'J', 'max-keys': '2' } },
    '34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7',
  ],
]

test('the S3 signature matches the examples of the documentation', () => {
  for (const [name, request, signature] of VECTORS) {
    const whole = {
      method: 'GET',
      host: 'examplebucket.s3.amazonaws.com',
      path: '/',
      query: {},
      headers: {},
      sha256: NOTHING,
    }
    const { authorization } = sign({ ...whole, ...request }, EXAMPLE, Date.parse('2013-05-24T00:00:00Z'))
    assert.ok(authorization?.endsWith(`Signature=${signature}`), `${name}: ${authorization}`)
  }
})

const never = new AbortController().signal

interface World {
  readonly s3: S3Server
  readonly bucket: Bucket
  readonly folder: string
}

async function makeWorld(
  closing: AsyncDisposableStack,
  more: Partial<BucketLocation> = {},
  options: S3Options = {},
): Promise<World> {
  const s3 = await startS3(closing, options)
  const location = {
    endpoint: s3.endpoint,
    bucket: 'copies',
    region: '',
    folder: 'my cluster',
    authority: '',
    ...TEST_KEYS,
    ...more,
  }
  const bucket = new Bucket(location, realClock, 1)
  closing.defer(() => bucket.close())
  const folder = await mkdtemp(join(tmpdir(), 'hyperkube-s3-'))
  closing.defer(() => rm(folder, { recursive: true }))
  return { s3, bucket, folder }
}

const FILES = {
  'one.snapshot': 'all that etcd holds, '.repeat(50_000),
  'one.snapshot.json': '{"sha256":"…"}',
  'one.rkestate': 'keys',
}

async function fill(folder: string): Promise<void> {
  for (const [name, text] of Object.entries(FILES)) await writeFile(join(folder, name), text)
}

async function read(folder: string): Promise<Record<string, string>> {
  const names = (await readdir(folder)).toSorted()
  return Object.fromEntries(
    await Promise.all(names.map(async (name) => [name, await readFile(join(folder, name), 'utf8')])),
  )
}

const SORTED = Object.fromEntries(Object.entries(FILES).toSorted(([one], [other]) => (one < other ? -1 : 1)))

test('the S3 client stores a snapshot as one object, lists it and returns it unchanged', async () => {
  await using closing = new AsyncDisposableStack()
  const { s3, bucket, folder } = await makeWorld(closing)
  await fill(folder)
  await copySnapshot(bucket, folder, 'one', never)
  assert.deepEqual([...s3.objects.keys()], ['/copies/my cluster/one.tar'])
  s3.objects.set('/copies/other/two.tar', { content: Buffer.alloc(1), meta: '' })
  s3.objects.set('/copies/my cluster/letter & more.txt', { content: Buffer.alloc(1), meta: '' })
  const [copy, ...others] = await listCopies(bucket, never)
  assert.deepEqual([copy?.name, others], ['one', []])
  const elsewhere = join(folder, 'elsewhere')
  await fetchSnapshot(bucket, elsewhere, 'one', never)
  assert.deepEqual(await read(elsewhere), SORTED)
})

test('the S3 client lists several pages, and deletes old snapshots', async () => {
  await using closing = new AsyncDisposableStack()
  const { s3, bucket } = await makeWorld(closing, { folder: '' })
  for (const name of ['a', 'b', 'c', 'd', 'e'])
    s3.objects.set(`/copies/${name}.tar`, { content: Buffer.alloc(3), meta: '' })
  assert.equal((await listCopies(bucket, never)).length, 5)
  await deleteCopies(bucket, ['a', 'b', 'gone'], never)
  assert.deepEqual(
    (await listCopies(bucket, never)).map(({ name }) => name),
    ['c', 'd', 'e'],
  )
})

test('the S3 client reports a rejected request without a retry', async () => {
  await using closing = new AsyncDisposableStack()
  const { s3, bucket, folder } = await makeWorld(closing)
  await fill(folder)
  s3.faults.push('refuse')
  await assert.rejects(copySnapshot(bucket, folder, 'one', never), /answers 403 AccessDenied: No & no/)
  assert.equal(s3.requests.length, 1)
  await assert.rejects(fetchSnapshot(bucket, folder, 'gone', never), /answers 404 NoSuchKey/)
})

test('the S3 client reports a wrong secret key', async () => {
  await using closing = new AsyncDisposableStack()
  const { bucket, folder } = await makeWorld(closing, { secretKey: 'another' })
  await fill(folder)
  await assert.rejects(copySnapshot(bucket, folder, 'one', never), /SignatureDoesNotMatch/)
})

test('the S3 client trusts an endpoint only with the given CA', async () => {
  await using closing = new AsyncDisposableStack()
  const { cluster } = readClusterFile('nodes: [{address: 10.0.0.1, user: root, role: [controlplane, etcd, worker]}]')
  assert.ok(cluster)
  const { bundle } = completeBundle(cluster, {}, { clock: realClock, random: createSeededRandom(1) })
  const { certificatePEM: cert = '', keyPEM: key = '' } = bundle['kube-apiserver'] ?? {}
  const authority = bundle['kube-ca']?.certificatePEM ?? ''
  const { bucket, folder } = await makeWorld(closing, { authority }, { tls: { cert, key } })
  await fill(folder)
  await copySnapshot(bucket, folder, 'one', never)
  assert.equal((await listCopies(bucket, never)).length, 1)
  const stranger = await makeWorld(closing, {}, { tls: { cert, key } })
  await assert.rejects(listCopies(stranger.bucket, never), /certificate/)
})

test('the S3 client restarts an interrupted or failed upload', async () => {
  await using closing = new AsyncDisposableStack()
  const { s3, bucket, folder } = await makeWorld(closing)
  await fill(folder)
  s3.faults.push('cut', 'fail')
  await copySnapshot(bucket, folder, 'one', never)
  assert.equal(s3.requests.length, 3)
  await fetchSnapshot(bucket, join(folder, 'back'), 'one', never)
  assert.deepEqual(await read(join(folder, 'back')), SORTED)
})

test('the S3 client repeats an interrupted or corrupted download, and never accepts it', async () => {
  await using closing = new AsyncDisposableStack()
  const { s3, bucket, folder } = await makeWorld(closing)
  await fill(folder)
  await copySnapshot(bucket, folder, 'one', never)
  const back = join(folder, 'back')
  s3.faults.push('cut', 'spoil', 'cut')
  await assert.rejects(fetchSnapshot(bucket, back, 'one', never))
  assert.deepEqual(await read(back), {})
  s3.faults.push('spoil', 'cut')
  assert.equal((await listCopies(bucket, never)).length, 1, 'a list that cannot be read is no empty one')
  s3.faults.push('cut', 'spoil')
  await fetchSnapshot(bucket, back, 'one', never)
  assert.deepEqual(await read(back), SORTED)
})
