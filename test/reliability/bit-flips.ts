/**
 * Flips one random bit in the files of a killed SQLite store, opens the store and reads everything. Each damage is
 * either reported with its position or changes no returned value. `node test/reliability/bit-flips.ts --times 200
 * --seed 1`
 */
import { copyFileSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'

import { realClock } from '#lib/clock.ts'
import { createSeededRandom, secureRandom } from '#lib/random.ts'
import { type Backend, prefixEnd, type Revision, StorageError } from '#storage/backend.ts'
import { openSqliteBackend } from '#storage/sqlite.ts'

const { values } = parseArgs({
  options: { times: { type: 'string', default: '50' }, seed: { type: 'string', default: '1' } },
})
const random = createSeededRandom(Number(values.seed))
const folder = mkdtempSync(join(tmpdir(), 'reliability-flips-'))
process.on('exit', () => rmSync(folder, { recursive: true, force: true }))
const SIDES = ['', '-wal'] as const
/** The commits that a torn end of the log may lose: the last two groups (see src/storage/sqlite/wal-check.ts). */
const TAIL = 8
/** A report says where: a row, an index, a page, a byte of the log. */
const PLACE =
  /row|index|page|Tree|byte|header|"meta"|not a hyperkube database|has format|image is malformed|not a database/i

const counts = { reported: 0, 'reported when read': 0, harmless: 0, 'taken for a torn end': 0 }
const problems: string[] = []
const good = join(folder, 'good.db')
const written = await fillStore(good)
for (let n = 0; n < Number(values.times); n++) await flipOnce(n)
for (const problem of problems) console.log(`VIOLATION: ${problem}`)
const summary = Object.entries(counts)
  .map(([name, count]) => `${count} ${name}`)
  .join(', ')
console.log(`${values.times} flipped bits, seed ${values.seed}: ${summary}, ${problems.length} violations`)
process.exit(problems.length === 0 ? 0 : 1)

function open(file: string): Promise<Backend> {
  return openSqliteBackend(file, { clock: realClock, random: secureRandom, ballastBytes: 0, historyMs: Infinity })
}

/** A store with some history, as a kill would leave it: half of it in the database, half in the log. By revision. */
async function fillStore(file: string): Promise<Map<string, string>> {
  const written = new Map<string, string>()
  for (const half of [0, 1]) {
    const store = await open(file)
    for (let n = 0; n < 150; n++) {
      const key = `/registry/things/${random.int(40)}`
      const value = `${half}.${n}~`.repeat(1 + random.int(100))
      const { revision } = await store.commit([{ key, value: Buffer.from(value) }])
      written.set(`${key} ${revision}`, value)
    }
    if (half === 1) for (const side of SIDES) copyFileSync(`${file}${side}`, `${file}.kept${side}`)
    await store.close()
  }
  return written
}

async function flipOnce(n: number): Promise<void> {
  const bad = join(folder, `bad${n}.db`)
  for (const side of SIDES) copyFileSync(`${good}.kept${side}`, `${bad}${side}`)
  const side = SIDES[random.int(2)] as string
  const bytes = readFileSync(`${bad}${side}`)
  const bit = random.int(8 * bytes.length)
  bytes[bit >> 3] = (bytes[bit >> 3] as number) ^ (1 << (bit & 7))
  writeFileSync(`${bad}${side}`, bytes)
  const name = `bit ${bit} of store${side}`
  let store: Backend | undefined
  try {
    store = await open(bad)
    judge(name, await readAll(store, name))
  } catch (error) {
    report(name, error, store !== undefined)
  } finally {
    await store?.close()
    for (const side of ['', '-wal', '-shm', '.lock']) if (existsSync(`${bad}${side}`)) rmSync(`${bad}${side}`)
  }
}

/** Everything that is there now and everything that happened. */
async function readAll(store: Backend, name: string): Promise<Revision> {
  const all = { start: '', end: prefixEnd('') }
  const { items, revision } = await store.range(all)
  for (const { key, value, modRevision } of items) {
    if (written.get(`${key} ${modRevision}`) !== Buffer.from(value).toString())
      problems.push(`${name}: ${key} was served changed`)
  }
  const stop = new AbortController()
  for await (const batch of store.watch({ ...all, from: 1, signal: stop.signal })) {
    for (const { key, value, modRevision } of batch.events) {
      if (written.get(`${key} ${modRevision}`) !== Buffer.from(value).toString())
        problems.push(`${name}: ${key} was sent changed`)
    }
    if (batch.revision >= revision) stop.abort()
  }
  return revision
}

function judge(name: string, revision: Revision): void {
  if (revision === written.size) counts.harmless++
  else if (revision >= written.size - TAIL) counts['taken for a torn end']++
  else problems.push(`${name}: revision ${revision} instead of ${written.size}, and nothing was said`)
}

function report(name: string, error: unknown, isOpen: boolean): void {
  if (!(error instanceof StorageError)) throw error
  counts[isOpen ? 'reported when read' : 'reported']++
  if (!PLACE.test(error.message)) problems.push(`${name}: reported without a place: ${error.message}`)
}
