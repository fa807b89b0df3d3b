/**
 * Runs controller-runtime's own envtest suites with `hyperkube assets` and with upstream's programs: `node
 * test/upstream/envtest.ts [package…]`. Prints the passed tests and the duration of each suite on both sides. Exits
 * with 1 if a test fails only with ours. Needs Go to build the suites once.
 */
import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { homedir, tmpdir } from 'node:os'
import { join } from 'node:path'

import { realClock } from '#lib/clock.ts'

import { envtestAssets } from './envtest-assets.ts'
import { UPSTREAM_VERSION } from './programs.ts'

const MODULE = 'sigs.k8s.io/controller-runtime'
/** The version that is made for the Kubernetes we answer for. */
const VERSION = 'v0.24.1'
const FOLDER = join(process.env['XDG_CACHE_HOME'] ?? join(homedir(), '.cache'), 'hyperkube', 'envtest')
const PACKAGES = ['envtest', 'client', 'cache', 'manager', 'controller', 'builder']
const STAGING = ['api', 'apiextensions-apiserver', 'apimachinery', 'client-go']

function go(args: readonly string[]): string {
  const env = { ...process.env, GOFLAGS: `${process.env['GOFLAGS'] ?? ''} -mod=mod`.trim(), CGO_ENABLED: '0' }
  const { status, stdout } = spawnSync('go', args, {
    cwd: FOLDER,
    env,
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  if (status !== 0) throw new Error(`go ${args.join(' ')} ended with ${status}`)
  return stdout.trim()
}

/** Returns where the sources of the module are: suites read files beside theirs. */
async function build(packages: readonly string[]): Promise<string> {
  await mkdir(FOLDER, { recursive: true })
  const required = STAGING.map((name) => `require k8s.io/${name} ${UPSTREAM_VERSION.replace('v1.', 'v0.')}\n`)
  const text = `module hyperkube.upstream/envtest\ngo 1.26.0\nrequire ${MODULE} ${VERSION}\n${required.join('')}`
  if (!existsSync(join(FOLDER, 'go.mod'))) await writeFile(join(FOLDER, 'go.mod'), text)
  for (const name of packages) {
    if (existsSync(join(FOLDER, `${name}.test`))) continue
    go(['test', '-c', '-vet=off', '-o', `${name}.test`, `${MODULE}/pkg/${name}`])
  }
  return go(['list', '-m', '-f', '{{.Dir}}', MODULE])
}

interface Outcome {
  readonly passed: number
  readonly failed: readonly string[]
  readonly seconds: number
}

function run(name: string, sources: string, assets: string): Outcome {
  const startMs = realClock.elapsed()
  const env = { ...process.env, KUBEBUILDER_ASSETS: assets }
  const { stdout } = spawnSync(join(FOLDER, `${name}.test`), ['-ginkgo.no-color'], {
    cwd: join(sources, 'pkg', name),
    env,
    encoding: 'utf8',
    maxBuffer: 1 << 30,
    timeout: 600_000,
  })
  return {
    passed: Number(/(\d+) Passed/u.exec(stdout)?.[1] ?? 0),
    failed: [...stdout.matchAll(/^ {2}\[FAIL\] (.*)$/gmu)].map(([, what = '']) => what),
    seconds: (realClock.elapsed() - startMs) / 1000,
  }
}

const packages = process.argv.length > 2 ? process.argv.slice(2) : PACKAGES
const folder = await mkdtemp(join(tmpdir(), 'hyperkube-envtest-'))
try {
  const sources = await build(packages)
  const { ours, theirs } = await envtestAssets(folder)
  let worse = 0
  for (const name of packages) {
    const [one, other] = [ours, theirs].map((assets) => run(name, sources, assets)) as [Outcome, Outcome]
    const text = ({ passed, failed, seconds }: Outcome): string =>
      `${passed} passed, ${failed.length} failed, ${seconds.toFixed(1)} s`
    process.stdout.write(`${name}: ours ${text(one)}; upstream's ${text(other)}\n`)
    for (const what of one.failed)
      process.stdout.write(`  ${other.failed.includes(what) ? 'with both' : 'only ours'}  ${what}\n`)
    if (one.passed === 0 || one.failed.some((what) => !other.failed.includes(what))) worse++
  }
  process.stdout.write(`${packages.length} suites, ${worse} fail only with ours\n`)
  if (worse > 0) process.exitCode = 1
} finally {
  await rm(folder, { recursive: true, force: true })
}
