import assert from 'node:assert/strict'
import { copyFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, describe, it } from 'node:test'

import { createSeededRandom, type Random } from '#lib/random.ts'

import { prefixEnd, type StorageError, type KeyValue, type Revision } from '../backend.ts'
import { checkAll } from './check.ts'
import { asStorageError } from './failures.ts'
import { connect, prepareSchema } from './layout.ts'
import { packWrites, type Operation } from './messages.ts'
import { unpackRange } from './read-calls.ts'
import { Reader } from './reader.ts'
import { findLostCommits } from './wal-check.ts'
import { Writer } from './writer.ts'

const folder = mkdtempSync(join(tmpdir(), 'sqlite-damage-'))
after(() => rmSync(folder, { recursive: true }))

/** Writes `commits` transactions of a few writes each; `leave` gets the files before the store is closed. */
function fill(file: string, random: Random, commits: number, leave: () => void = () => undefined): void {
  const db = connect(file)
  prepareSchema(db, file)
  db.exec('PRAGMA journal_mode = WAL')
  const writer = new Writer(db)
  for (let n = 0; n < commits; n++) {
    const operations = Array.from({ length: 1 + random.int(3) }, (): Operation => {
      const key = `/registry/things/${random.int(60)}`
      const value = random.int(5) === 0 ? null : Buffer.from(`{"n":${n}} `.repeat(random.int(200)))
      return ['commit', packWrites([{ key, value }])]
    })
    writer.run(operations, 1, () => undefined)
  }
  leave()
  db.exec('PRAGMA wal_checkpoint(TRUNCATE)')
  db.close()
}

function readAll(file: string): { items: KeyValue[]; revision: Revision } {
  const reader = new Reader(file)
  try {
    const items: KeyValue[] = []
    reader.sendPart = (part) => unpackRange(part, items)
    const call = { start: '', end: prefixEnd(''), revision: undefined, limit: 0, countOnly: false, keysOnly: false }
    return { items, revision: reader.range(call).revision }
  } finally {
    reader.close()
  }
}

const fingerprint = (item: KeyValue): string =>
  `${item.key} ${item.createRevision} ${item.modRevision} ${Buffer.from(item.value).toString('latin1')}`

function flipBit(source: string, target: string, bit: number): void {
  const bytes = readFileSync(source)
  bytes[bit >> 3]! ^= 1 << (bit & 7)
  writeFileSync(target, bytes)
}

/** The error that the caller of the backend would see; undefined if there is none. */
function failureOf(task: () => void): StorageError | undefined {
  try {
    task()
    return undefined
  } catch (error) {
    return asStorageError(error)
  }
}

describe('a flipped bit in the SQLite database', () => {
  const good = join(folder, 'good.db')
  const bad = join(folder, 'bad.db')
  const random = createSeededRandom(7)
  fill(good, random, 120)
  const expected = readAll(good)
  const known = new Set(expected.items.map(fingerprint))
  const bits = 8 * readFileSync(good).length

  it('is detected by the check at start, or changes nothing', () => {
    let found = 0
    for (let n = 0; n < 150; n++) {
      const bit = random.int(bits)
      flipBit(good, bad, bit)
      const failure = failureOf(() => {
        const db = connect(bad)
        try {
          prepareSchema(db, bad)
          checkAll(db, bad)
        } finally {
          db.close()
        }
      })
      if (failure !== undefined) found++
      else assert.deepEqual(readAll(bad), expected, `bit ${bit} is harmless`)
    }
    assert.ok(found > 75, `most bits matter: ${found}`)
  })

  it('never leads to a wrong value, also if it happens while the store is open', () => {
    for (let n = 0; n < 150; n++) {
      const bit = random.int(bits)
      flipBit(good, bad, bit)
      const failure = failureOf(() => {
        for (const item of readAll(bad).items) assert.ok(known.has(fingerprint(item)), `bit ${bit} shows`)
      })
      assert.doesNotMatch(failure?.message ?? '', /shows/)
    }
  })

  it('in a value is reported with its position, and only reads of that key fail', () => {
    const { key, modRevision } = expected.items.find((item) => item.value.length > 300)!
    copyFileSync(good, bad)
    const db = connect(bad)
    prepareSchema(db, bad)
    db.prepare(`UPDATE log SET value = replace(value, '}', ']') WHERE key = ? AND value IS NOT NULL`).run(key)
    const place = new RegExp(`table "log", row \\d+ \\(key "${key}", revision ${modRevision}\\)`)
    const writer = new Writer(db)
    const other = expected.items.find((item) => item.key !== key)!
    const commit = (key: string): Operation => ['commit', packWrites([{ key, value: Buffer.from('new') }])]
    const [suffers, goesOn] = writer.run([commit(key), commit(other.key)], 1, () => undefined)
    assert.ok(suffers?.[0] === 'error')
    assert.equal(suffers[1].code, 'corrupt')
    assert.match(suffers[1].message, place)
    assert.equal(goesOn![0], 'commit')
    assert.equal(writer.trouble?.code, 'corrupt')
    db.close()
    assert.match(failureOf(() => void readAll(bad))!.message, place)
  })
})

describe('a flipped bit in the SQLite write-ahead log', () => {
  it('is reported if it would revert commits; at the very end it looks like a torn write', () => {
    const file = join(folder, 'wal.db')
    const copy = join(folder, 'wal-copy.db')
    const kept = join(folder, 'wal-kept.db')
    const bad = join(folder, 'wal-bad.db')
    const random = createSeededRandom(11)
    const restore = (to: string): void => {
      for (const side of ['', '-wal']) copyFileSync(`${kept}${side}`, `${to}${side}`)
      rmSync(`${to}-shm`, { force: true })
    }
    fill(file, random, 40, () => {
      for (const side of ['', '-wal']) copyFileSync(`${file}${side}`, `${kept}${side}`)
    })
    restore(copy)
    assert.equal(findLostCommits(copy), undefined)
    const expected = readAll(copy)
    const bits = 8 * readFileSync(`${kept}-wal`).length
    let [found, harmless] = [0, 0]
    for (let n = 0; n < 120; n++) {
      restore(bad)
      flipBit(`${kept}-wal`, `${bad}-wal`, n < 20 ? random.int(8 * 56) : random.int(bits))
      if (findLostCommits(bad) !== undefined) {
        found++
        continue
      }
      const { revision } = readAll(bad)
      // A transaction here has up to three commits.
      assert.ok(revision >= expected.revision - 6, `only the last two transactions may go: ${revision}`)
      harmless++
    }
    assert.ok(found > 90, `${found} found, ${harmless} not`)
  })

  it('is ignored behind a torn write at the end', () => {
    const file = join(folder, 'torn.db')
    let log = Buffer.alloc(0)
    fill(file, createSeededRandom(3), 20, () => (log = readFileSync(`${file}-wal`)))
    const torn = join(folder, 'torn-copy.db')
    const frame = 4096 + 24
    for (let cut = 1; cut < 12; cut++) {
      writeFileSync(`${torn}-wal`, log.subarray(0, log.length - Math.floor(frame * cut * 0.7)))
      assert.equal(findLostCommits(torn), undefined)
    }
    const ragged = Buffer.from(log)
    ragged.fill(0, log.length - 2 * frame, log.length - frame)
    writeFileSync(`${torn}-wal`, ragged)
    assert.equal(findLostCommits(torn), undefined, 'the last transaction, with a page missing in the middle')
    assert.equal(findLostCommits(join(folder, 'absent.db')), undefined)
  })
})
