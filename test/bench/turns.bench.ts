/**
 * Benchmarks CREATE on two servers that run side by side and take turns, so that a change in the speed of the machine
 * affects both. Each ratio compares two neighbouring turns. Both servers are warmed up first; `apiserver --only=writes`
 * measures a server that has just started.
 */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import { type Bench, inTurns, quantile } from './bench.ts'
import { post } from './config-maps.ts'
import { runLoad, sendAll } from './http-load.ts'
import { type ServerUnderTest, startOurs, type StartServer, startTheirs } from './server-under-test.ts'
import { figure, type Table, times } from './table.ts'

const WARM_UP_REQUESTS = 40_000
const TURNS = 15
const TURN_MS = 800
/** Of each turn, before it is counted: connections are made, and caches of the processor are the other server's. */
const SETTLE_MS = 200
const CLIENTS = [1, 16, 64]

export const bench: Bench = {
  about: `CREATE over TLS, kube-apiserver as npm installs it and upstream's asked in turns of ${TURN_MS} ms after ${WARM_UP_REQUESTS.toLocaleString('en-US')} requests each`,
  async run({ reference }) {
    const folder = await mkdtemp(join(tmpdir(), 'hyperkube-turns-bench-'))
    const servers: ServerUnderTest[] = []
    const begin = async (start: StartServer, name: string): Promise<void> => {
      const server = await start(join(folder, name))
      servers.push(server)
      await sendAll(
        server,
        Array.from({ length: WARM_UP_REQUESTS }, (_, at) => post('default', `warm-${at}`)),
      )
    }
    try {
      await begin(startOurs, 'ours')
      if (reference) await begin(startTheirs, 'theirs')
      return [await measure(servers)]
    } finally {
      for (const server of servers) await server.stop()
      await rm(folder, { recursive: true, force: true })
    }
  },
}

async function measure(servers: readonly ServerUnderTest[]): Promise<Table> {
  const rows: string[][] = []
  for (const clients of CLIENTS) {
    const measures = servers.map((server) => (turn: number) => rateOf(server, clients, turn))
    rows.push([`CREATE, ${clients} clients`, ...cells(await inTurns(measures, TURNS))])
  }
  return {
    title: `durable writes, medians of ${TURNS} turns`,
    columns: ['', 'per second', 'reference', 'ratio', 'lowest', 'highest'],
    rows,
  }
}

async function rateOf(server: ServerUnderTest, clients: number, turn: number): Promise<number> {
  const request = (at: number): Buffer => post('default', `w-${clients}-${turn}-${at}`)
  const { perSecond } = await runLoad(server, { clients, warmUpMs: SETTLE_MS, durationMs: TURN_MS, request })
  return perSecond
}

function cells([ours = [], theirs = []]: readonly (readonly number[])[]): string[] {
  const ratios = ours.map((rate, turn) => rate / (theirs[turn] ?? Number.NaN))
  const spread = [quantile(ratios, 0.5), Math.min(...ratios), Math.max(...ratios)]
  return [figure(quantile(ours, 0.5)), figure(quantile(theirs, 0.5)), ...spread.map(times)]
}
