/**
 * Compares scheduling decisions with upstream's kube-scheduler: `node test/upstream/scheduling.ts [--seed N]
 * [--clusters N] [--pods N]`. Upstream's scheduler places random pods in random clusters on our server and logs the
 * scores of every node. Ours predicts each decision from the same state. See `scheduling-decisions.ts`.
 */
import { parseArgs } from 'node:util'

import { createGates } from '#component/flags/gates.ts'
import { runControllers } from '#controllers/manager.ts'
import { persistentVolumeBinderController } from '#controllers/volumes/persistentvolume-binder/controller.ts'
import { realClock } from '#lib/clock.ts'
import { createSeededRandom } from '#lib/random.ts'
import { errorLog } from '#testing/control-plane.ts'

import type { Server } from './ours.ts'
import { reach, startPair } from './scheduler-pair.ts'
import { Comparison, type Tally } from './scheduling-decisions.ts'

const { values: options } = parseArgs({
  options: {
    seed: { type: 'string', default: '1' },
    clusters: { type: 'string', default: '50' },
    pods: { type: 'string', default: '40' },
  },
})

const SHOWN = 40

/** Binds claims to volumes, as a controller manager does. */
function startBinder(server: Server): () => Promise<void> {
  const over = new AbortController()
  const reached = reach(server)
  const ended = runControllers(
    {
      controllers: [persistentVolumeBinderController],
      clock: realClock,
      random: createSeededRandom(1),
      log: errorLog(),
      connect: () => reached,
      userAgent: 'binder',
      isEnabled: createGates(new Map()),
    },
    over.signal,
  )
  return () => (over.abort(), ended)
}

function tableOf(tallies: ReadonlyMap<string, Tally>): string {
  const rows = [...tallies].sort(([, a], [, b]) => b.decisions - a.decisions)
  const lines = rows.map(([kind, { decisions, placed, points, preempting, differ }]) =>
    [kind.padEnd(24), ...[decisions, placed, points, preempting, differ].map((one) => String(one).padStart(11))].join(
      '',
    ),
  )
  const head = ['decisions', 'placed', 'points', 'preempting', 'differ'].map((one) => one.padStart(11)).join('')
  return `${''.padEnd(24)}${head}\n${lines.join('\n')}\n`
}

async function main(): Promise<number> {
  const off = ['ServiceAccount', 'TaintNodesByCondition', 'DefaultTolerationSeconds', 'StorageObjectInUseProtection']
  const pair = await startPair(off)
  const stopBinder = startBinder(pair.server)
  try {
    const comparison = new Comparison(pair)
    await comparison.prepare()
    const first = Number(options.seed)
    let told = 0
    for (let at = 0; at < Number(options.clusters); at++) {
      await comparison.play(first + at, Number(options.pods))
      for (const one of comparison.differences.slice(told, SHOWN)) process.stdout.write(`${one}\n`)
      told = comparison.differences.length
    }
    process.stdout.write(
      `${tableOf(comparison.tallies)}${comparison.differences.length} decisions differ from upstream\n`,
    )
    return comparison.differences.length === 0 ? 0 : 1
  } finally {
    await stopBinder()
    await pair.stop()
  }
}

process.exitCode = await main()
