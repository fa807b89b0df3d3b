/**
 * Tests that no answer below `/past` has a value of a Secret: a canary is created, changed, applied with a copy in an
 * annotation, and deleted. Whatever the form of the answer or of the stored bytes, none of its values comes back.
 */
import assert from 'node:assert/strict'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { describe, it } from 'node:test'
import { zstdDecompressSync } from 'node:zlib'

import { type RawData, WebSocket } from 'ws'

import { createSeededRandom } from '#lib/random.ts'

import { type Bed, JSON_TYPE, METADATA, METADATA_LIST, past, PROTOBUF, startBed, TABLE, turns } from './bed.ts'

const SECRETS = '/api/v1/namespaces/default/secrets'
const SECRET = `${SECRETS}/canary`
const LAST_APPLIED = 'kubectl.kubernetes.io/last-applied-configuration'
const PLURAL = SECRETS.split('/').at(-1)
const MERGE = { 'content-type': 'application/merge-patch+json' }
const APPLY = { 'content-type': 'application/apply-patch+yaml' }
const ENCRYPTION = JSON.stringify({
  kind: 'EncryptionConfiguration',
  apiVersion: 'apiserver.config.k8s.io/v1',
  resources: [
    {
      resources: ['secrets'],
      providers: [
        { aescbc: { keys: [{ name: 'one', secret: Buffer.alloc(32, 'k').toString('base64') }] } },
        { identity: {} },
      ],
    },
  ],
})

interface Storing {
  readonly name: string
  readonly isProtobuf: boolean
  readonly isEncrypted: boolean
}

const STORINGS: readonly Storing[] = [
  { name: 'JSON', isProtobuf: false, isEncrypted: false },
  { name: 'protobuf', isProtobuf: true, isEncrypted: false },
  { name: 'encrypted JSON', isProtobuf: false, isEncrypted: true },
  { name: 'encrypted protobuf', isProtobuf: true, isEncrypted: true },
]

function startStoring({ isProtobuf, isEncrypted }: Storing, historyFile = ''): Promise<Bed> {
  return startBed({
    settings: {
      'history-file': historyFile,
      ...(isProtobuf && { 'storage-media-type': PROTOBUF }),
      ...(isEncrypted && { 'encryption-provider-config': 'encryption.yaml' }),
    },
    changed: new Set(isProtobuf ? ['storage-media-type'] : []),
    files: new Map([['encryption.yaml', ENCRYPTION]]),
  })
}

/** The settings above have an effect. */
async function checkStored(bed: Bed, { isProtobuf, isEncrypted }: Storing): Promise<void> {
  const { backend } = bed.plane.running.server.registry.services
  await bed.must('POST', SECRETS, { metadata: { name: 'form' } })
  const { items } = await backend.range({ start: '/registry/secrets/default/form' })
  const start = Buffer.from(items[0]?.value ?? [])
    .toString('latin1')
    .slice(0, 8)
  assert.ok(start.startsWith(isEncrypted ? 'k8s:enc:' : isProtobuf ? 'k8s\0' : '{'), start)
}

/** The values of the canary, and the revisions at which it had them. */
interface Life {
  readonly values: string[]
  readonly revisions: number[]
}

/** Creates, changes, applies and deletes the canary, a second apart. */
async function live(bed: Bed): Promise<Life> {
  const random = createSeededRandom(7)
  const life: Life = { values: [], revisions: [] }
  const next = (): string => {
    const value = `canary-${random.bytes(12).toString('hex')}`
    life.values.push(value)
    return value
  }
  const kept = async (): Promise<void> => {
    life.revisions.push(await bed.revision())
    // Present readers put encodings with the values into caches.
    for (const accept of [JSON_TYPE, PROTOBUF, TABLE]) await bed.send(SECRET, { accept })
    for (const accept of [JSON_TYPE, PROTOBUF, TABLE]) await bed.send(SECRETS, { accept })
    await bed.clock.advance(1000)
  }
  await bed.must('POST', SECRETS, { metadata: { name: 'canary' }, stringData: { key: next() } })
  await kept()
  await bed.must('PATCH', SECRET, { stringData: { key: next() } }, MERGE)
  await kept()
  const data = { key: encoded(next()) }
  const copy = JSON.stringify({ data, stringData: { key: life.values.at(-1) }, metadata: { name: 'canary' } })
  await bed.must('PATCH', SECRET, { data, metadata: { annotations: { [LAST_APPLIED]: copy } } }, MERGE)
  await kept()
  const applied = { apiVersion: 'v1', kind: 'Secret', metadata: { name: 'canary' }, stringData: { other: next() } }
  await bed.must('PATCH', `${SECRET}?fieldManager=test&force=true`, applied, APPLY)
  await kept()
  await bed.must('PATCH', SECRET, { data: { [next().slice(0, 3)]: null, third: encoded(next()) } }, MERGE)
  await kept()
  await bed.must('DELETE', SECRET)
  await kept()
  return life
}

function encoded(value: string): string {
  return Buffer.from(value).toString('base64')
}

class Search {
  answers = 0
  readonly #traces: readonly string[]

  constructor({ values }: Life) {
    this.#traces = values.flatMap((value) => [value, encoded(value), encoded(`"${value}`).slice(4, -4)])
  }

  check(bytes: Buffer, where: string): void {
    this.answers++
    const text = bytes.toString('latin1')
    const found = this.#traces.filter((trace) => text.includes(trace))
    assert.deepEqual(found, [], where)
  }

  has(bytes: Buffer): boolean {
    const text = bytes.toString('latin1')
    return this.#traces.some((trace) => text.includes(trace))
  }
}

const ITEM_FORMS = [JSON_TYPE, PROTOBUF, TABLE, METADATA, 'application/yaml', `${METADATA},${PROTOBUF}`]
const LIST_FORMS = [JSON_TYPE, PROTOBUF, TABLE, METADATA_LIST, 'application/yaml', 'application/cbor']

async function searchAnswers(bed: Bed, search: Search, revision: number): Promise<void> {
  const moment = `rv:${revision}`
  const tries = [
    ...ITEM_FORMS.map((accept) => [SECRET, accept] as const),
    ...LIST_FORMS.map((accept) => [SECRETS, accept] as const),
    ...LIST_FORMS.map((accept) => ['/api/v1/secrets?limit=1', accept] as const),
    [`${SECRETS}?includeObject=Object`, TABLE],
    [`${SECRET}?includeObject=Object`, TABLE],
    [`${SECRETS}?fieldSelector=type=Opaque`, JSON_TYPE],
    [`${SECRETS}?resourceVersion=0`, JSON_TYPE],
    [`${SECRETS}?resourceVersion=${revision}&resourceVersionMatch=Exact&limit=5`, PROTOBUF],
    [`${SECRETS}?resourceVersion=${revision - 1}&resourceVersionMatch=Exact`, JSON_TYPE],
  ] as const
  for (const [path, accept] of tries) {
    const { bytes } = await bed.send(past(moment, path), { accept })
    search.check(bytes, `${moment} ${path} ${accept}`)
  }
}

const WATCHES = [
  `${SECRETS}?watch=1`,
  `/api/v1/secrets?watch=1&fieldSelector=metadata.name=canary`,
  `/api/v1/watch/namespaces/default/${PLURAL}`,
  `/api/v1/watch/namespaces/default/${PLURAL}/canary`,
]

/** Watches in all forms from the revision on, until the canary is deleted. */
async function searchWatches(bed: Bed, search: Search, revision: number): Promise<void> {
  const moment = `rv:${revision}@100x`
  const forms = [JSON_TYPE, PROTOBUF, TABLE, METADATA]
  const open = await Promise.all(
    WATCHES.flatMap((path) => forms.map((accept) => bed.watch(past(moment, path), { accept }))),
  )
  for (let second = 0; second < 5; second++) await bed.clock.advance(1000)
  await turns()
  for (const watch of open) {
    assert.equal(watch.status, 200)
    search.check(watch.bytes(), `${moment} watch`)
  }
  const events = open[0]?.bytes().toString() ?? ''
  for (const type of ['ADDED', 'MODIFIED', 'DELETED']) assert.ok(events.includes(`"type":"${type}"`), type)
  for (const watch of open) await watch.end()
}

/** The lists of changes of the whole life. */
async function searchChanges(bed: Bed, search: Search, revision: number): Promise<void> {
  for (const moment of [`rv:${revision - 1}..`, '-1h..-0s', `rv:0..rv:${revision + 1}`]) {
    for (const path of [
      SECRET,
      SECRETS,
      '/api/v1/secrets?limit=100',
      `${SECRETS}?fieldSelector=metadata.name=canary`,
    ]) {
      const { status, text, bytes } = await bed.send(past(moment, path))
      assert.equal(status, 200, `${moment} ${path}`)
      assert.ok(text.includes('"MODIFIED"'), `${moment} ${path}`)
      search.check(bytes, `${moment} ${path}`)
    }
  }
}

/** The messages of a watch over a WebSocket until the canary is deleted. */
async function searchSocket(bed: Bed, search: Search, revision: number): Promise<void> {
  const url = `${bed.plane.url.replace('https', 'wss')}${past(`rv:${revision}@200x`, `${SECRETS}?watch=1`)}`
  const headers = { authorization: `Bearer ${bed.plane.token}`, origin: 'https://dashboard.example' }
  const socket = new WebSocket(url, { rejectUnauthorized: false, headers })
  const messages: Buffer[] = []
  const deleted = new Promise<void>((resolve, reject) => {
    socket.on('error', reject)
    socket.on('message', (message: RawData) => {
      messages.push(message as Buffer)
      if ((message as Buffer).includes('DELETED')) resolve()
    })
  })
  await new Promise<void>((resolve, reject) => {
    socket.on('open', resolve)
    socket.on('error', reject)
  })
  await bed.clock.advance(5000)
  await deleted
  search.check(Buffer.concat(messages), 'watch over a WebSocket')
  assert.ok(messages.length >= 2)
  const closed = new Promise((resolve) => void socket.on('close', resolve))
  socket.terminate()
  await closed
  await turns()
}

/** All that a closed history file has, compressed and not. */
function bytesOf(file: string): Buffer {
  using db = new DatabaseSync(file, { readOnly: true })
  const rows = db.prepare('SELECT changes FROM run UNION ALL SELECT changes FROM block').all()
  assert.ok(rows.length > 0)
  return Buffer.concat([readFileSync(file), ...rows.map(({ changes }) => zstdDecompressSync(changes as Uint8Array))])
}

describe('the values of Secrets', () => {
  for (const storing of STORINGS) {
    it(`are in no answer of the past of a store with ${storing.name}`, async (t) => {
      await using bed = await startStoring(storing)
      const life = await live(bed)
      await checkStored(bed, storing)
      const search = new Search(life)
      const stored = {
        kind: 'Secret',
        apiVersion: 'v1',
        metadata: { name: 'today' },
        stringData: { key: life.values[0] },
      }
      await bed.must('POST', SECRETS, stored)
      const today = async (): Promise<boolean> => search.has((await bed.send(`${SECRETS}/today`)).bytes)
      assert.ok(await today(), 'the search finds a present value')
      await bed.clock.advance(1000)
      for (const revision of [...life.revisions, await bed.revision()]) await searchAnswers(bed, search, revision)
      await searchChanges(bed, search, life.revisions[0] ?? 0)
      await searchWatches(bed, search, life.revisions[0] ?? 0)
      await searchSocket(bed, search, life.revisions[0] ?? 0)
      assert.ok(await today(), 'reading the past has changed a present answer')
      t.diagnostic(`${search.answers} answers`)
    })

    it(`are in no answer and no byte of the history of a store with ${storing.name}`, async (t) => {
      const folder = mkdtempSync(join(tmpdir(), 'past-secrets-'))
      t.after(() => rmSync(folder, { recursive: true, force: true }))
      const file = join(folder, 'history.db')
      const bed = await startStoring(storing, file)
      t.after(() => bed[Symbol.asyncDispose]())
      const life = await live(bed)
      await bed.leaveToHistory()
      const search = new Search(life)
      const names = new Search({ ...life, values: ['canary'] })
      for (const revision of life.revisions) await searchAnswers(bed, search, revision)
      await searchChanges(bed, search, life.revisions[0] ?? 0)
      await searchWatches(bed, search, life.revisions[0] ?? 0)
      assert.ok(
        names.has((await bed.send(past(`rv:${life.revisions[1]}`, SECRET))).bytes),
        'the history has the Secret',
      )
      await bed[Symbol.asyncDispose]()
      const bytes = bytesOf(file)
      assert.ok(names.has(bytes), 'the search finds what the file has')
      search.check(bytes, 'the history file')
    })
  }
})
