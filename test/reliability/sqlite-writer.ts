/**
 * Writes to a SQLite store as fast as possible until it is killed. Prints `open REVISION`, then `ack KEY COUNTER
 * REVISION` for each acknowledged write. Each key has one writer, whose counter increases by one. Usage:
 * sqlite-writer.ts FILE KEYS
 */
import { realClock } from '#lib/clock.ts'
import { secureRandom } from '#lib/random.ts'
import { prefixEnd } from '#storage/backend.ts'
import { openSqliteBackend } from '#storage/sqlite.ts'

const [file = '', keys = '16'] = process.argv.slice(2)
const backend = await openSqliteBackend(file, { clock: realClock, random: secureRandom, ballastBytes: 0 })
const counters = new Map<string, { counter: number; revision: number }>()
const { items, revision } = await backend.range({ start: '/', end: prefixEnd('/') })
for (const { key, value, modRevision } of items) {
  counters.set(key, { counter: Number(Buffer.from(value).toString().trim()), revision: modRevision })
}
process.stdout.write(`open ${revision}\n`)

async function writeOn(key: string): Promise<never> {
  let { counter, revision } = counters.get(key) ?? { counter: 0, revision: 0 }
  for (;;) {
    counter++
    const value = Buffer.from(String(counter).padEnd(200 + (counter % 7) * 500))
    const result = await backend.commit([{ key, value, expected: revision }])
    if (!result.ok) throw new Error(`Somebody else wrote "${key}"`)
    revision = result.revision
    process.stdout.write(`ack ${key} ${counter} ${revision}\n`)
    // Some history to lose, and some compaction to be interrupted.
    if (counter % 100 === 0) await backend.compact(revision - 50)
  }
}

await Promise.all(Array.from({ length: Number(keys) }, (_, n) => writeOn(`/key/${n}`)))
