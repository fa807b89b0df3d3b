/**
 * Kills the server repeatedly while clients write and its history file grows. Then checks that past states at random
 * revisions equal the lists of that time, and that the history has no gap. `node test/reliability/main.ts history
 * --seconds 600 --every 20 --samples 1000 --seed 1`
 */
import { mkdtempSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { performance } from 'node:perf_hooks'

import { createSeededRandom } from '#lib/random.ts'

import { pause } from '../pause.ts'
import { Ledger } from './ledger.ts'
import { ApiProgram, credentials } from './program.ts'
import { RawClient } from './raw-http.ts'
import { MAPS, writeOn } from './writers.ts'

export interface HistoryOptions {
  readonly seconds: number
  readonly killEverySeconds: number
  readonly samples: number
  readonly writers: number
  readonly seed: number
  readonly isBuilt: boolean
  readonly progress?: (done: string) => void
}

export interface HistoryReport {
  readonly kills: number
  readonly acknowledged: number
  readonly compared: number
  readonly gaps: number
  readonly fileBytes: number
  readonly readMs: readonly number[]
  readonly problems: readonly string[]
}

/** The store keeps so little that the samples are in the history only. */
const STORE_SECONDS = 30

/** A list of all objects, as the server answered it. */
interface Sample {
  readonly version: string
  readonly items: string
}

export async function runHistory(options: HistoryOptions): Promise<HistoryReport> {
  const folder = mkdtempSync(join(tmpdir(), 'reliability-history-'))
  const file = join(folder, 'history.db')
  const flags = [`--history-file=${file}`, `--etcd-compaction-interval=${STORE_SECONDS}s`]
  const program = await ApiProgram.create({ datastore: 'sqlite', flags, isBuilt: options.isBuilt })
  try {
    return await record(program, file, options)
  } finally {
    await program.close()
    rmSync(folder, { recursive: true, force: true })
  }
}

async function record(program: ApiProgram, file: string, options: HistoryOptions): Promise<HistoryReport> {
  const { seconds, killEverySeconds, samples: wanted, writers, seed, progress } = options
  const random = createSeededRandom(seed)
  const ledger = new Ledger()
  const samples: Sample[] = []
  const problems: string[] = []
  await program.start()
  const endMs = performance.now() + seconds * 1000
  let kills = 0
  while (performance.now() < endMs) {
    const stop = new AbortController()
    const around = { target: program.target, ledger, random }
    const writing = Array.from({ length: writers }, (_, writer) => writeOn({ ...around, writer }, stop.signal))
    const sampling = sample(program, samples, (seconds * 1000) / wanted, stop.signal)
    await pause(Math.min(killEverySeconds * 1000, endMs - performance.now()))
    await program.kill()
    stop.abort()
    await Promise.all([...writing, sampling])
    kills++
    await program.start()
    const found = await listMaps(program)
    const parsed = (JSON.parse(found.items) as readonly Item[]).filter(({ metadata }) => metadata.name.startsWith('w'))
    const objects = parsed.map(({ metadata: { name, resourceVersion }, data }) => {
      return [name, { content: data?.content, version: Number(resourceVersion) }] as const
    })
    ledger.compare(new Map(objects), Number(found.version))
    progress?.(`${kills} kills, ${ledger.acknowledged.length} writes, ${samples.length} samples`)
  }
  await pause(2 * STORE_SECONDS * 1000)
  const readMs: number[] = []
  for (const { version, items } of samples) {
    const begun = performance.now()
    const then = await listMaps(program, `/past/rv:${version}`)
    readMs.push(performance.now() - begun)
    if (then.items !== items)
      problems.push(`revision ${version}: ${then.items.slice(0, 500)} instead of ${items.slice(0, 500)}`)
    if (readMs.length % 100 === 0) progress?.(`${readMs.length} of ${samples.length} samples compared`)
  }
  return {
    kills,
    acknowledged: ledger.acknowledged.length,
    compared: samples.length,
    gaps: await countGaps(program, samples[0]?.version ?? '1'),
    fileBytes: statSync(file).size,
    readMs: readMs.toSorted((a, b) => a - b),
    problems: [...ledger.problems, ...problems],
  }
}

interface Item {
  readonly metadata: { readonly name: string; readonly resourceVersion: string }
  readonly data?: { readonly content?: string }
}

/** Keeps a list from time to time, until the signal or the end of the server. */
async function sample(program: ApiProgram, samples: Sample[], everyMs: number, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    try {
      const made = await listMaps(program)
      if (made.version !== samples.at(-1)?.version) samples.push(made)
    } catch {
      // The server is gone.
    }
    await pause(everyMs)
  }
}

async function listMaps(program: ApiProgram, base = ''): Promise<Sample> {
  const { metadata, items } = (await get(program, `${base}${MAPS}`)) as {
    readonly metadata: { readonly resourceVersion: string }
    readonly items: readonly unknown[]
  }
  return { version: metadata.resourceVersion, items: JSON.stringify(items) }
}

async function countGaps(program: ApiProgram, from: string): Promise<number> {
  const { gaps = [] } = (await get(program, `/past/rv:${from}..${MAPS}?limit=1`)) as {
    readonly gaps?: readonly unknown[]
  }
  return gaps.length
}

async function get(program: ApiProgram, path: string): Promise<unknown> {
  const client = new RawClient(program.target, credentials('root'))
  try {
    const { status, body } = await client.send({ path })
    if (status !== 200) throw new Error(`${path} was answered ${status}: ${body.toString().slice(0, 300)}`)
    return JSON.parse(body.toString())
  } finally {
    client.close()
  }
}
