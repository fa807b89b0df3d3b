/**
 * Runs the envtest suite of a memcached operator (beside this file, in Go) with `hyperkube assets` and with upstream's
 * kube-apiserver and etcd: `node test/upstream/memcached.ts [rounds]`. Prints how long envtest takes to start on each
 * side. Exits with 1 if a test fails with ours. Needs Go to build the suite once.
 */
import { spawnSync } from 'node:child_process'
import { cpSync, existsSync, globSync, readFileSync, rmSync } from 'node:fs'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { homedir, tmpdir } from 'node:os'
import { join } from 'node:path'

import { envtestAssets } from './envtest-assets.ts'
import { UPSTREAM_VERSION } from './programs.ts'

/** The version that is made for the Kubernetes we answer for. */
const VERSION = 'v0.24.1'
const STAGING = ['api', 'apiextensions-apiserver', 'apimachinery', 'client-go']
const MODULE = `module hyperkube.upstream/memcached
go 1.26.0
require sigs.k8s.io/controller-runtime ${VERSION}
${STAGING.map((name) => `require k8s.io/${name} ${UPSTREAM_VERSION.replace('v1.', 'v0.')}\n`).join('')}`
const SOURCES = join(import.meta.dirname, 'memcached')
const FOLDER = join(process.env['XDG_CACHE_HOME'] ?? join(homedir(), '.cache'), 'hyperkube', 'memcached')
const SUITE = join(FOLDER, 'memcached.test')

/** Builds the suite where it is not there yet, or has been changed. */
async function build(): Promise<void> {
  const textOf = (folder: string): string =>
    globSync('**/*.{go,yaml}', { cwd: SOURCES })
      .map((name) => (existsSync(join(folder, name)) ? readFileSync(join(folder, name), 'utf8') : ''))
      .join()
  if (existsSync(SUITE) && textOf(FOLDER) === textOf(SOURCES)) return
  rmSync(FOLDER, { recursive: true, force: true })
  await mkdir(FOLDER, { recursive: true })
  cpSync(SOURCES, FOLDER, { recursive: true })
  await writeFile(join(FOLDER, 'go.mod'), MODULE)
  const env = { ...process.env, GOFLAGS: `${process.env['GOFLAGS'] ?? ''} -mod=mod`.trim(), CGO_ENABLED: '0' }
  const args = ['test', '-c', '-vet=off', '-o', SUITE, './internal/controller']
  const { status } = spawnSync('go', args, { cwd: FOLDER, env, stdio: 'inherit' })
  if (status !== 0) throw new Error('The suite was not built')
}

interface Outcome {
  readonly passed: number
  readonly failed: number
  readonly startMs: number
  readonly text: string
}

function run(assets: string): Outcome {
  const { stdout } = spawnSync(SUITE, ['-ginkgo.no-color'], {
    cwd: join(FOLDER, 'internal', 'controller'),
    // On a machine that others use too, upstream's needs more than the 20 s it is given.
    env: { ...process.env, KUBEBUILDER_ASSETS: assets, KUBEBUILDER_CONTROLPLANE_START_TIMEOUT: '180s' },
    encoding: 'utf8',
    timeout: 600_000,
  })
  const count = (pattern: RegExp): number => Number(pattern.exec(stdout)?.[1] ?? Number.NaN)
  return {
    passed: count(/(\d+) Passed/u),
    failed: count(/(\d+) Failed/u),
    startMs: count(/envtest started in (\d+) ms/u),
    text: stdout,
  }
}

const rounds = Number(process.argv[2] ?? 5)
const folder = await mkdtemp(join(tmpdir(), 'hyperkube-memcached-'))
try {
  await build()
  const { ours, theirs } = await envtestAssets(folder)
  const outcomes = { ours: [] as Outcome[], "upstream's": [] as Outcome[] }
  for (let round = 0; round < rounds; round++) {
    outcomes.ours.push(run(ours))
    outcomes["upstream's"].push(run(theirs))
  }
  for (const [name, all] of Object.entries(outcomes)) {
    const times = all.map(({ startMs }) => startMs).toSorted((one, other) => one - other)
    const { passed, failed } = all[0] ?? { passed: 0, failed: 0 }
    const median = times[Math.floor(times.length / 2)]
    process.stdout.write(
      `${name}: ${passed} passed, ${failed} failed; envtest starts in ${median} ms (median of ${rounds})\n`,
    )
  }
  const broken = outcomes.ours.find(({ passed, failed }) => !(passed > 0) || failed > 0)
  if (broken !== undefined) {
    process.stdout.write(broken.text)
    process.exitCode = 1
  }
} finally {
  await rm(folder, { recursive: true, force: true })
}
