/** Runs upstream's e2e tests with a label against `hyperkube up` with containers on this machine. */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import { startRealCluster } from '../conformance/cluster.ts'
import type { TestRun } from '../conformance/report.ts'
import { listTests, runTests } from '../conformance/suite.ts'
import { upstreamPrograms } from './programs.ts'

export interface Labelled {
  readonly label: string
  /** Of the catalog: what the tests run. */
  readonly images: readonly string[]
  readonly procs: number
  /** For `hyperkube up`. */
  readonly flags?: readonly string[]
  readonly isChosen: (name: string) => boolean
  /** In place of upstream's kubectl, for a folder of its own. */
  readonly kubectl?: (folder: string) => Promise<string>
}

const say = (line: string): void => void process.stderr.write(`${line}\n`)

/** The exit code: 0 when all of them pass. Leaves reports and logs when one fails. */
export async function runLabelled({ label, images, procs, isChosen, kubectl, flags = [] }: Labelled): Promise<number> {
  const built = await upstreamPrograms(['e2e.test', 'ginkgo', 'kubectl'], say)
  const folder = await mkdtemp(join(tmpdir(), 'hyperkube-labelled-'))
  const programs = { ...built, ...(kubectl !== undefined && { kubectl: await kubectl(folder) }) }
  const all = await listTests(programs['e2e.test'], folder, label)
  const chosen = all.filter(isChosen)
  say(`${chosen.length} of ${all.length} tests`)
  const runs = await inCluster(folder, { images, flags }, (cluster) =>
    runTests({ programs, folder, cluster, procs }, chosen),
  )
  for (const run of runs) process.stdout.write(told(run))
  const passed = runs.filter(({ result }) => result !== 'failed').length
  const skipped = chosen.filter((name) => runs.every((run) => run.name !== name))
  for (const name of skipped) process.stdout.write(`skipped          ${name}\n`)
  process.stdout.write(`${passed} of ${chosen.length} pass, ${skipped.length} skip themselves\n`)
  const isGood = passed > 0 && passed + skipped.length === chosen.length
  if (isGood) await rm(folder, { recursive: true })
  else say(`Reports and logs are in ${folder}`)
  return isGood ? 0 : 1
}

async function inCluster(
  folder: string,
  { images, flags }: Required<Pick<Labelled, 'images' | 'flags'>>,
  work: (cluster: Awaited<ReturnType<typeof startRealCluster>>) => Promise<TestRun[]>,
): Promise<TestRun[]> {
  await using cluster = await startRealCluster(folder, 1, images, flags)
  return await work(cluster)
}

function told({ name, result, seconds, message }: TestRun): string {
  const why = result === 'passed' ? '' : `    ${message.split('\n', 6).join('\n    ')}\n`
  return `${result.padEnd(7)} ${seconds.toFixed(0).padStart(4)} s  ${name}\n${why}`
}
