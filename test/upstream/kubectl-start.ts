/**
 * Measures the start time of our kubectl and upstream's: `node test/upstream/kubectl-start.ts [--runs 40] [--package
 * FOLDER]`. Upstream's and ours run in turns, without a server and with one whose discovery both have cached. Ours is
 * the package as npm installs it, built from these sources unless --package names one. Prints the median and the
 * fastest elapsed time, beside two minimal Node programs: one that does nothing, and one that only sends the same
 * request. Needs Go once.
 */
import { execFileSync, spawnSync } from 'node:child_process'
import { cpSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'

import { realClock } from '#lib/clock.ts'

import { ask, type Server, startOurs, writeKubeconfig } from './ours.ts'
import { upstreamPrograms } from './programs.ts'

const { values: options } = parseArgs({
  options: { runs: { type: 'string', default: '40' }, package: { type: 'string' } },
})

const ROOT = join(import.meta.dirname, '..', '..')
const LINES = ['version --client', 'get pods', 'get pods -o yaml', 'describe pod pod-0']
const LEAST = `const { KUBE_PORT, KUBE_FOLDER } = process.env
const read = (name) => require('node:fs').readFileSync(KUBE_FOLDER + '/' + name)
if (KUBE_PORT !== undefined)
  require('node:https').get(
    { port: KUBE_PORT, path: '/api/v1/namespaces/default/pods', ca: read('ca'), cert: read('cert'), key: read('key'), agent: false },
    (answer) => answer.pipe(process.stdout),
  )
`
/** The first ones fill caches. */
const WARM_UP = 3

/** As npm would install it: no sources beside it. */
function installed(folder: string): string {
  if (options.package !== undefined) return options.package
  const built = join(folder, 'package')
  mkdirSync(built)
  execFileSync(process.execPath, [join(ROOT, 'scripts', 'build.ts'), '--into', join(built, 'dist')], { cwd: ROOT })
  cpSync(join(ROOT, 'bin'), join(built, 'bin'), { recursive: true })
  cpSync(join(ROOT, 'package.json'), join(built, 'package.json'))
  symlinkSync(join(ROOT, 'node_modules'), join(built, 'node_modules'))
  return built
}

async function fill(server: Server): Promise<void> {
  for (let number = 0; number < 3; number++) {
    const spec = { containers: [{ name: 'c', image: 'nginx' }] }
    const body = { kind: 'Pod', apiVersion: 'v1', metadata: { name: `pod-${number}` }, spec }
    const { status } = await ask(server, { method: 'POST', path: '/api/v1/namespaces/default/pods', body })
    if (status !== 201) throw new Error(`A pod was refused with ${status}`)
  }
}

function measure(program: string, line: string, env: NodeJS.ProcessEnv): number {
  const start = realClock.elapsed()
  const { status, stderr } = spawnSync(program, line.split(' '), { env, stdio: ['ignore', 'pipe', 'pipe'] })
  const wallMs = realClock.elapsed() - start
  if (status !== 0) throw new Error(`${program} ${line} ended with ${status}: ${String(stderr)}`)
  return wallMs
}

function told(times: readonly number[]): string {
  const sorted = times.toSorted((one, other) => one - other)
  const [median = 0, fastest = 0] = [sorted[sorted.length >> 1], sorted[0]]
  return `${median.toFixed(1).padStart(7)} ms (fastest ${fastest.toFixed(1)})`
}

async function main(): Promise<void> {
  const { kubectl } = await upstreamPrograms(['kubectl'], () => undefined)
  const folder = await mkdtemp(join(tmpdir(), 'hyperkube-kubectl-start-'))
  const ours = join(folder, 'kubectl')
  symlinkSync(join(installed(folder), 'bin', 'hyperkube'), ours)
  const server = await startOurs(join(folder, 'server'), ['--disable-admission-plugins=ServiceAccount'])
  try {
    await fill(server)
    const kubeconfig = await writeKubeconfig(join(folder, 'kubeconfig'), server)
    const env = { PATH: process.env['PATH'], HOME: folder, KUBECONFIG: kubeconfig }
    const least = join(folder, 'least.cjs')
    writeFileSync(least, LEAST)
    for (const [name, text] of Object.entries(server.tls)) writeFileSync(join(folder, name), String(text))
    for (const line of LINES) {
      const asks = line.startsWith('version') ? {} : { KUBE_PORT: String(server.port), KUBE_FOLDER: folder }
      const contestants: [string, () => number][] = [
        ['upstream', () => measure(kubectl, line, env)],
        ['ours    ', () => measure(ours, line, env)],
        ['least   ', () => measure(process.execPath, least, { ...env, ...asks })],
      ]
      const runs = Array.from({ length: WARM_UP + Number(options.runs) }, () => contestants.map(([, run]) => run()))
      process.stdout.write(`kubectl ${line}\n`)
      for (const [at, [name]] of contestants.entries())
        process.stdout.write(`  ${name} ${told(runs.slice(WARM_UP).map((run) => run[at] ?? 0))}\n`)
    }
  } finally {
    await server.stop()
    await rm(folder, { recursive: true, force: true })
  }
}

await main()
