/**
 * Upstream's own tests of NetworkPolicy ([Feature:NetworkPolicy], no conformance tests): `node test/upstream/network-policies.ts`. As root, against
 * `hyperkube up` with containers. `--focus REGEXP` takes some of the tests. Those that need SCTP are left out where the kernel has none.
 * Ends with 1 when one fails; leaves nothing on the machine.
 */
import { readFileSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'

import { startRealCluster } from '../conformance/cluster.ts'
import type { TestRun } from '../conformance/report.ts'
import { endWithSuite, listTests, runTests } from '../conformance/suite.ts'
import { upstreamPrograms } from './programs.ts'

const { values: options } = parseArgs({
  options: { focus: { type: 'string' }, procs: { type: 'string' } },
})
const say = (line: string): void => void process.stderr.write(`${line}\n`)

async function main(): Promise<number> {
  const programs = await upstreamPrograms(['e2e.test', 'ginkgo', 'kubectl'], say)
  const folder = await mkdtemp(join(tmpdir(), 'hyperkube-policies-'))
  const all = await listTests(programs['e2e.test'], folder, 'Feature:NetworkPolicy')
  const possible = all.filter((name) => hasSctp() || !name.includes('[Feature:SCTPConnectivity]'))
  const chosen = possible.filter((name) => new RegExp(options.focus ?? '').test(name))
  say(`${chosen.length} of ${all.length} tests; ${all.length - possible.length} need SCTP, which this kernel lacks`)
  const runs = await runAll(programs, folder, chosen)
  for (const { name, result, seconds, message } of runs) {
    process.stdout.write(`${result.padEnd(7)} ${seconds.toFixed(0).padStart(4)} s  ${name}\n`)
    if (result === 'failed') process.stdout.write(`    ${message.split('\n', 3).join('\n    ')}\n`)
  }
  const passed = runs.filter(({ result }) => result !== 'failed').length
  process.stdout.write(`${passed} of ${chosen.length} pass\n`)
  if (passed < chosen.length) say(`Reports and logs are in ${folder}`)
  else await rm(folder, { recursive: true })
  return passed === chosen.length && passed > 0 ? 0 : 1
}

function hasSctp(): boolean {
  return /^SCTP /m.test(readFileSync('/proc/net/protocols', 'utf8'))
}

async function runAll(
  programs: Record<'e2e.test' | 'ginkgo' | 'kubectl', string>,
  folder: string,
  chosen: readonly string[],
): Promise<readonly TestRun[]> {
  await using cluster = await startRealCluster(folder, 1, ['agnhost'])
  return await runTests({ programs, folder, cluster, procs: Number(options.procs ?? 1) }, chosen)
}

endWithSuite()
process.exitCode = await main()
