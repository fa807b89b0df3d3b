/**
 * Benchmarks the cost of a history: CREATE on two servers of ours, one without and one with a history file, in turns. Then
 * both get 100 writes a second, and the thread of the history is measured alone.
 */
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { performance } from 'node:perf_hooks'

import { pause } from '../reliability/pause.ts'
import { type Bench, inTurns, quantile } from './bench.ts'
import { post } from './config-maps.ts'
import { runLoad, sendAll } from './http-load.ts'
import { processorMs, type ServerUnderTest, startOursWith } from './server-under-test.ts'
import { figure, type Table, times } from './table.ts'

const WARM_UP_REQUESTS = 20_000
const TURNS = 15
const TURN_MS = 800
const SETTLE_MS = 200
const CLIENTS = [1, 16]
const WRITES_PER_SECOND = 100
const PACED_SECONDS = 20
/** The goals at that pace. */
const MAX_CORE_PERCENT = 2
const MAX_MB = 15

export const bench: Bench = {
  about: `CREATE over TLS without and with --history-file, in turns of ${TURN_MS} ms`,
  async run() {
    const folder = await mkdtemp(join(tmpdir(), 'hyperkube-history-bench-'))
    const servers: ServerUnderTest[] = []
    const begin = async (name: string, flags: readonly string[]): Promise<ServerUnderTest> => {
      const server = await startOursWith(flags)(join(folder, name))
      servers.push(server)
      await sendAll(
        server,
        Array.from({ length: WARM_UP_REQUESTS }, (_, at) => post('default', `warm-${at}`)),
      )
      return server
    }
    try {
      const without = await begin('without', [])
      const recording = await begin('recording', [`--history-file=${join(folder, 'history.db')}`])
      return [await measurePaced(without, recording), await measureRates([without, recording])]
    } finally {
      for (const server of servers) await server.stop()
      await rm(folder, { recursive: true, force: true })
    }
  },
}

async function measureRates(servers: readonly ServerUnderTest[]): Promise<Table> {
  const rows: string[][] = []
  for (const clients of CLIENTS) {
    const measures = servers.map((server) => (turn: number) => rateOf(server, clients, turn))
    const [without = [], recording = []] = await inTurns(measures, TURNS)
    const ratios = recording.map((rate, turn) => rate / (without[turn] ?? Number.NaN))
    const medians = [without, recording].map((rates) => figure(quantile(rates, 0.5)))
    rows.push([`CREATE, ${clients} clients`, ...medians, times(quantile(ratios, 0.5))])
  }
  const title = `durable writes a second, as fast as possible, medians of ${TURNS} turns`
  return { title, columns: ['', 'without', 'with history', 'ratio'], rows }
}

async function rateOf(server: ServerUnderTest, clients: number, turn: number): Promise<number> {
  const request = (at: number): Buffer => post('default', `w-${clients}-${turn}-${at}`)
  const { perSecond } = await runLoad(server, { clients, warmUpMs: SETTLE_MS, durationMs: TURN_MS, request })
  return perSecond
}

async function measurePaced(without: ServerUnderTest, recording: ServerUnderTest): Promise<Table> {
  const [threadBefore, startMs] = [await threadMs(recording.pid), performance.now()]
  for (let second = 0; second < PACED_SECONDS; second++) {
    const requests = Array.from({ length: WRITES_PER_SECOND }, (_, at) => post('default', `p-${second}-${at}`))
    await Promise.all([sendAll(without, requests), sendAll(recording, requests)])
    await pause(startMs + (second + 1) * 1000 - performance.now())
  }
  const corePercent = (((await threadMs(recording.pid)) - threadBefore) / (performance.now() - startMs)) * 100
  const [usage, usageWithout] = [await recording.usage(), await without.usage()]
  const megabytes = usage.anonymousMb - usageWithout.anonymousMb
  const isKept = corePercent <= MAX_CORE_PERCENT && megabytes <= MAX_MB
  return {
    title: `${WRITES_PER_SECOND} writes a second for ${PACED_SECONDS} s, after ${WARM_UP_REQUESTS} at once`,
    columns: ['', 'budget', 'history'],
    rows: [
      ['thread of the history (% of a core)', figure(MAX_CORE_PERCENT), figure(corePercent)],
      ['memory more than without (MB)', figure(MAX_MB), figure(megabytes)],
    ],
    result: isKept ? 'both budgets are kept' : 'a budget is missed',
    missesGoal: !isKept,
  }
}

/** The processor time of the thread of the history so far. */
async function threadMs(pid: number): Promise<number> {
  const folder = `/proc/${pid}/task`
  for (const thread of await readdir(folder)) {
    const name = await readFile(`${folder}/${thread}/comm`, 'utf8')
    if (name.trim() === 'history') return processorMs(await readFile(`${folder}/${thread}/stat`, 'utf8'))
  }
  return Number.NaN
}
