/**
 * `npm run bench [-- NAME… --reference --only=PART]`: runs benchmarks. Figures depend on the machine and its load, so
 * every table has its reference in the same run: compare the ratios. --reference builds or finds upstream's programs
 * and measures them too.
 */
import { availableParallelism, loadavg } from 'node:os'
import { performance } from 'node:perf_hooks'

import { ETCD_NAME } from '../upstream/etcd.ts'
import { UPSTREAM_VERSION } from '../upstream/programs.ts'
import { type Bench, WARM_UP_MS } from './bench.ts'
import { figure, printTable } from './table.ts'

/** Every bench, in the order in which they run. Each is loaded only when its turn comes. */
const BENCHES: readonly (readonly [name: string, load: () => Promise<{ readonly bench: Bench }>])[] = [
  ['codec', () => import('./codec.bench.ts')],
  ['lib', () => import('./lib.bench.ts')],
  ['storage', () => import('./storage.bench.ts')],
  ['start', () => import('./start.bench.ts')],
  ['apiserver', () => import('./apiserver.bench.ts')],
  ['turns', () => import('./turns.bench.ts')],
  ['history', () => import('./history.bench.ts')],
  ['custom', () => import('./custom.bench.ts')],
  ['controllers', () => import('./controllers.bench.ts')],
  ['scheduler', () => import('./scheduler.bench.ts')],
  ['scale', () => import('./scale.bench.ts')],
  ['idle', () => import('./idle.bench.ts')],
  ['node', () => import('./node.bench.ts')],
  ['testing', () => import('./testing.bench.ts')],
  ['flood', () => import('./flood.bench.ts')],
  ['cel', () => import('./cel.bench.ts')],
  ['tunnel', () => import('./tunnel.bench.ts')],
  ['management', () => import('./management.bench.ts')],
  ['console', () => import('./console.bench.ts')],
]

async function main(args: readonly string[]): Promise<number> {
  const reference = args.includes('--reference')
  const only = args.find((arg) => arg.startsWith('--only='))?.slice('--only='.length)
  const names = args.filter((arg) => !arg.startsWith('--'))
  const unknown = names.filter((name) => !BENCHES.some(([known]) => known === name))
  if (unknown.length > 0) {
    const known = BENCHES.map(([name]) => name).join(', ')
    process.stderr.write(`No bench "${unknown.join('", "')}"; there are ${known}\n`)
    return 1
  }
  const busy = figure(loadavg()[0] ?? 0)
  process.stdout.write(`Node ${process.version}, ${availableParallelism()} cores, load ${busy} at the start. `)
  process.stdout.write(`Rates are medians after ${WARM_UP_MS} ms of warm-up each.\n`)
  if (reference) process.stdout.write(`Upstream's programs are ${UPSTREAM_VERSION}, on ${ETCD_NAME}.\n`)
  let missesGoal = false
  for (const [name, load] of BENCHES) {
    if (names.length > 0 && !names.includes(name)) continue
    const { bench } = await load()
    process.stdout.write(`\n# ${name}: ${bench.about}\n`)
    const start = performance.now()
    const tables = await bench.run({ reference, only })
    for (const table of tables) process.stdout.write(printTable(table))
    process.stdout.write(`  (${figure((performance.now() - start) / 1000)} s)\n`)
    for (const { result } of tables) if (result !== undefined) process.stdout.write(`${result}\n`)
    missesGoal ||= tables.some((table) => table.missesGoal === true)
  }
  return missesGoal ? 1 : 0
}

process.exitCode = await main(process.argv.slice(2))
