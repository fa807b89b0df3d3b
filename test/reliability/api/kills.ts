/**
 * Kills the server repeatedly while clients write. Checks that every acknowledged write survives, that revisions never
 * go back, and that resumed watches miss no change. `node test/reliability/main.ts kills --datastore sqlite --times 100
 * --seed 1`
 */
import { createSeededRandom } from '#lib/random.ts'
import { startCluster, type TestCluster } from '#storage/etcd/etcd-cluster.fixture.ts'

import { pause } from '../pause.ts'
import { Follower } from './follower.ts'
import { type Found, Ledger } from './ledger.ts'
import { ApiProgram, credentials } from './program.ts'
import { RawClient } from './raw-http.ts'
import { MAPS, writeOn } from './writers.ts'

export interface KillsOptions {
  /** `sqlite` or `etcd`. */
  readonly datastore: string
  readonly times: number
  readonly writers: number
  readonly seed: number
  /** Run what was built last instead of the sources. */
  readonly isBuilt?: boolean
  readonly progress?: (done: number) => void
}

export interface KillsReport {
  readonly kills: number
  readonly acknowledged: number
  readonly events: number
  readonly watches: number
  /** From the start of the process until /readyz said ok, sorted. */
  readonly readyMs: readonly number[]
  readonly problems: readonly string[]
}

export async function runKills(options: KillsOptions): Promise<KillsReport> {
  const cluster = options.datastore === 'etcd' ? await startCluster() : undefined
  const program = await ApiProgram.create({
    datastore: storeOf(options, cluster),
    isBuilt: options.isBuilt ?? false,
  })
  try {
    return await killAgain(program, options)
  } finally {
    await program.close()
    await cluster?.stop()
  }
}

function storeOf({ datastore }: KillsOptions, cluster: TestCluster | undefined): string {
  return cluster === undefined ? datastore : cluster.urls.join(',')
}

async function killAgain(program: ApiProgram, options: KillsOptions): Promise<KillsReport> {
  const { times, seed, writers, progress } = options
  const random = createSeededRandom(seed)
  const ledger = new Ledger()
  const readyMs: number[] = [await program.start()]
  const { version } = await listMaps(program)
  const follower = new Follower(program.target, MAPS, version)
  follower.start()
  let kills = 0
  for (; kills < times && ledger.problems.length + follower.problems.length === 0; kills++) {
    const stop = new AbortController()
    const options = { target: program.target, ledger, random }
    const writing = Array.from({ length: writers }, (_, writer) => writeOn({ ...options, writer }, stop.signal))
    await pause(60 + random.int(300))
    await untilWritten(ledger, ledger.acknowledged.length + MIN_WRITES)
    await program.kill()
    await Promise.all(writing)
    readyMs.push(await program.start())
    const found = await listMaps(program)
    ledger.compare(found.objects, found.version)
    progress?.(kills + 1)
  }
  await follower.reach(Math.max(0, ...ledger.acknowledged.map((write) => write.version)))
  await follower.stop()
  follower.compare(ledger.acknowledged)
  return {
    kills,
    acknowledged: ledger.acknowledged.length,
    events: follower.events,
    watches: follower.begun,
    readyMs: readyMs.toSorted((a, b) => a - b),
    problems: [...ledger.problems, ...follower.problems],
  }
}

/** A kill without writes under way shows nothing. */
const MIN_WRITES = 20

async function untilWritten({ acknowledged, problems }: Ledger, count: number): Promise<void> {
  for (let tries = 0; tries < 1000 && acknowledged.length < count && problems.length === 0; tries++) await pause(5)
}

interface MapList {
  readonly metadata: { readonly resourceVersion: string }
  readonly items: readonly {
    readonly metadata: { readonly name: string; readonly resourceVersion: string }
    readonly data?: { readonly content?: string }
  }[]
}

/** Everything the writers may have written, and the version it is at. */
async function listMaps({ target }: ApiProgram): Promise<{ objects: Map<string, Found>; version: number }> {
  const client = new RawClient(target, credentials('root'))
  const { status, body } = await client.send({ path: MAPS })
  client.close()
  if (status !== 200) throw new Error(`The list was answered ${status}: ${body.toString().slice(0, 300)}`)
  const { metadata, items } = JSON.parse(body.toString()) as MapList
  const own = items.filter((item) => item.metadata.name.startsWith('w'))
  const objects = own.map(
    ({ metadata: { name, resourceVersion }, data }) =>
      [name, { content: data?.content, version: Number(resourceVersion) }] as const,
  )
  return { objects: new Map(objects), version: Number(metadata.resourceVersion) }
}
