import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { statSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { describe, it } from 'node:test'
import { fileURLToPath } from 'node:url'

import { realClock, sleep } from '#lib/clock.ts'
import { createSeededRandom } from '#lib/random.ts'

import { prefixEnd } from './backend.ts'
import { openSqliteBackend } from './sqlite.ts'
import { WAL_BYTES } from './sqlite/layout.ts'

const WRITER = fileURLToPath(new URL('../../test/reliability/sqlite-writer.ts', import.meta.url))
const KILLS = 10
const KEYS = 16

interface Acknowledged {
  readonly counter: number
  readonly revision: number
}

/** Runs a writer on `file` and kills it `delayMs` after its hundredth answer; returns the acknowledged writes. */
async function writeAndKill(
  file: string,
  delayMs: number,
): Promise<{ opened: number; acks: Map<string, Acknowledged> }> {
  const child = spawn(process.execPath, [WRITER, file, String(KEYS)], { stdio: ['ignore', 'pipe', 'inherit'] })
  const acks = new Map<string, Acknowledged>()
  let opened = -1
  let lines = 0
  for await (const line of createInterface({ input: child.stdout })) {
    const [word, key = '', counter, revision] = line.split(' ')
    if (word === 'open') opened = Number(key)
    // The kill may have cut off the last line.
    if (word === 'ack' && revision) acks.set(key, { counter: Number(counter), revision: Number(revision) })
    if (++lines === 100) void sleep(realClock, delayMs).then(() => child.kill('SIGKILL'))
  }
  assert.ok(opened >= 0, 'the store could be opened')
  return { opened, acks }
}

describe('sqlite backend under SIGKILL', () => {
  it('keeps every acknowledged write, and its revision never decreases', { timeout: 120_000 }, async (t) => {
    const folder = await mkdtemp(join(tmpdir(), 'sqlite-crash-'))
    t.after(() => rm(folder, { recursive: true }))
    const file = join(folder, 'store.db')
    const random = createSeededRandom(5)
    const promised = new Map<string, Acknowledged>()
    let highest = 0
    for (let kill = 0; kill < KILLS; kill++) {
      const { opened, acks } = await writeAndKill(file, random.int(120))
      assert.ok(opened >= highest, `opened at ${opened}, had acknowledged ${highest}`)
      for (const [key, ack] of acks) {
        assert.ok(ack.counter > (promised.get(key)?.counter ?? 0), 'the writer went on from what it had been promised')
        assert.ok(ack.revision > (promised.get(key)?.revision ?? 0))
        promised.set(key, ack)
        highest = Math.max(highest, ack.revision)
      }
    }
    assert.ok(statSync(`${file}-wal`).size >= WAL_BYTES, 'the log had been given its size')
    const backend = await openSqliteBackend(file, { clock: realClock, random, ballastBytes: 0 })
    try {
      const { items, revision } = await backend.range({ start: '/', end: prefixEnd('/') })
      assert.ok(revision >= highest)
      assert.equal(promised.size, KEYS)
      for (const { key, value } of items) {
        const counter = Number(Buffer.from(value).toString().trim())
        assert.ok(counter >= promised.get(key)!.counter, `${key} has ${counter}`)
      }
    } finally {
      await backend.close()
    }
  })
})
