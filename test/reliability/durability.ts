/**
 * The long durability test: a store with many objects gets writes at full speed and is killed, or loses power, at
 * random moments. After each restart every acknowledged write is present, revisions have not gone back, and nothing
 * else has changed. `node test/reliability/durability.ts --backend sqlite --fault kill --times 200 --objects 10000
 * --seed 1`
 */
import { performance } from 'node:perf_hooks'
import { parseArgs } from 'node:util'

import { createSeededRandom } from '#lib/random.ts'
import { type Revision, StorageError } from '#storage/backend.ts'

import { type Arena, createArena } from './arena.ts'
import { pause } from './pause.ts'
import { NotSentError, type Store, under } from './store.ts'

const { values } = parseArgs({
  options: {
    backend: { type: 'string', default: 'sqlite' },
    fault: { type: 'string', default: 'kill' },
    times: { type: 'string', default: '20' },
    objects: { type: 'string', default: '10000' },
    seed: { type: 'string', default: '1' },
  },
})
const [times, objects, seed] = [Number(values.times), Number(values.objects), Number(values.seed)]
const WRITERS = 16
const OBJECT_BYTES = 1024
/** Every so often all objects are compared, not only those that were written. */
const FULL_CHECK_EVERY = 20

/** The possible values of one key. */
interface Promised {
  counter: number
  revision: Revision
  /** The counter of a write without an answer, if the last one had none. */
  attempted: number
}

for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => process.exit(1))
const random = createSeededRandom(seed)
const arena = await createArena({
  backend: values.backend === 'etcd' ? 'etcd' : 'sqlite',
  seed,
  ...(values.fault === 'power' && { diskMebibytes: 512 }),
})
const promised = Array.from({ length: WRITERS }, (): Promised => ({ counter: 0, revision: 0, attempted: 0 }))
const problems: string[] = []
const restartsMs: number[] = []
let acknowledged = 0
let highest: Revision = 0
try {
  await fillStore(arena.store)
  for (let time = 1; time <= times && problems.length === 0; time++) {
    await writeUntilFault(arena)
    await verify(arena.store, time % FULL_CHECK_EVERY === 0 || time === times)
    if (time % Math.ceil(times / 20) === 0)
      console.log(
        `${time} of ${times}: ${acknowledged} acknowledged, revision ${highest}, last restart ${restartsMs.at(-1)?.toFixed(0)} ms ${arena.server?.startTimes}`,
      )
  }
} finally {
  const trouble = await arena.close()
  if (trouble !== undefined) problems.push(trouble)
}
for (const problem of problems) console.log(`VIOLATION: ${problem}`)
restartsMs.sort((a, b) => a - b)
const at = (share: number): string =>
  (restartsMs[Math.min(restartsMs.length - 1, Math.floor(share * restartsMs.length))] ?? 0).toFixed(0)
console.log(
  `${values.fault} × ${restartsMs.length} on ${values.backend} with ${objects} objects, seed ${seed}: ${acknowledged} acknowledged commits, ` +
    `${problems.length} violations; restart to serving p50 ${at(0.5)} ms, p90 ${at(0.9)} ms, max ${at(1)} ms`,
)
process.exit(problems.length === 0 ? 0 : 1)

function objectValue(n: number): string {
  return `object-${n}~`.padEnd(OBJECT_BYTES, `${n}.`)
}

async function fillStore(store: Store): Promise<void> {
  const PART = 50
  for (let first = 0; first < objects; first += 8 * PART) {
    await Promise.all(
      Array.from({ length: 8 }, async (_, part) => {
        const from = first + part * PART
        const count = Math.max(0, Math.min(PART, objects - from))
        const writes = Array.from({ length: count }, (_, n) => ({
          key: `/registry/things/object/${from + n}`,
          value: objectValue(from + n),
        }))
        if (count > 0) await store.call('commit', writes)
      }),
    )
  }
}

/** Writes from many clients at once, and lets the fault happen in the midst of it. */
async function writeUntilFault({ store, server, disk, cluster }: Arena): Promise<void> {
  const stop = new AbortController()
  const writers = promised.map((mine, n) => writeOn(store, { key: keyOf(n), mine, signal: stop.signal }))
  await pause(50 + random.int(250))
  let begun = performance.now()
  if (values.fault === 'power') {
    disk?.cutPower()
    await server?.kill()
    await disk?.restorePower()
    begun = performance.now()
    await server?.start()
  } else if (cluster !== undefined && random.int(2) === 0) {
    await Promise.all(cluster.members.map((member) => member.kill()))
    begun = performance.now()
    await Promise.all(cluster.members.map((member) => member.start()))
  } else {
    await server?.kill()
    begun = performance.now()
    await server?.start()
  }
  await untilAnswered(store)
  restartsMs.push(performance.now() - begun)
  stop.abort()
  await Promise.all(writers)
}

function keyOf(writer: number): string {
  return `/registry/things/counter/${writer}`
}

async function writeOn(
  store: Store,
  { key, mine, signal }: { readonly key: string; readonly mine: Promised; readonly signal: AbortSignal },
): Promise<void> {
  let isDown = false
  while (!signal.aborted && !isDown) {
    mine.attempted = mine.counter + 1
    const value = `${key} ${mine.attempted}~`.padEnd(200 + (mine.attempted % 7) * 300, '.')
    try {
      const result = await store.call('commit', [{ key, value, expected: mine.revision }])
      if (!result.ok) return void problems.push(`Somebody else wrote ${key}: ${JSON.stringify(result)}`)
      Object.assign(mine, { counter: mine.attempted, revision: result.revision })
      acknowledged++
      highest = Math.max(highest, result.revision)
      // Some history to lose, and some compaction to be interrupted.
      if (mine.counter % 100 === 0) await store.call('compact', result.revision - 50)
    } catch (error) {
      if (!(error instanceof NotSentError || error instanceof StorageError)) throw error
      isDown = true
    }
  }
}

async function untilAnswered(store: Store): Promise<void> {
  for (const deadline = performance.now() + 30_000; performance.now() < deadline;) {
    try {
      highest = Math.max(highest, await checkedRevision(store))
      return
    } catch (error) {
      if (!(error instanceof StorageError)) throw error
      await pause(5)
    }
  }
  problems.push('The store did not answer within 30 s')
}

async function checkedRevision(store: Store): Promise<Revision> {
  const known = highest
  const revision = await store.call('revision', null)
  if (revision < known) problems.push(`Revision ${known} had been seen; the store is at ${revision}`)
  return revision
}

/** All that was promised is there; a write without an answer may be, and is from now on. */
async function verify(store: Store, isFull: boolean): Promise<void> {
  const range = under(isFull ? '/registry/things/' : '/registry/things/counter/')
  const { items } = await store.call('range', { ...range, via: 'backend' })
  const found = new Map(items.map((item) => [item.key, item]))
  promised.forEach((mine, n) => {
    const item = found.get(keyOf(n))
    const counter = Number(item?.value.split(/[ ~]/)[1] ?? 0)
    if (counter !== mine.counter && counter !== mine.attempted) {
      problems.push(
        `${keyOf(n)} was acknowledged at ${mine.counter}, attempted at ${mine.attempted}, and is at ${counter}`,
      )
    }
    Object.assign(mine, { counter, revision: item?.mod ?? 0 })
  })
  if (!isFull) return
  for (let n = 0; n < objects; n++) {
    const { value, create, mod } = found.get(`/registry/things/object/${n}`) ?? {}
    if (value !== objectValue(n) || create !== mod) problems.push(`Object ${n} is ${value?.slice(0, 40)}`)
  }
  const cached = await store.call('range', { ...range, via: 'cache' })
  if (JSON.stringify(cached.items) !== JSON.stringify(items))
    problems.push('The cache shows something else than the store')
}
