/**
 * Two kubectls on one cluster: `node test/upstream/kubectl-pair.ts [--only TEXT]`. Upstream's and ours run the same command lines
 * against a cluster of ours with simulated nodes and objects of many kinds; standard output, standard error and exit code must
 * be the same but for ages. Command lines are in `kubectl-pair/lines.ts`. Ends with 1 when anything differs. Needs Go, once.
 */
import { execFile } from 'node:child_process'
import { mkdtemp, rm, symlink } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'

import { end, launch } from './kube-apiserver.ts'
import { LINES, type Line } from './kubectl-pair/lines.ts'
import { HYPERKUBE } from './ours.ts'
import { upstreamPrograms } from './programs.ts'

const { values: options } = parseArgs({ options: { only: { type: 'string' } } })
const OBJECTS = join(import.meta.dirname, 'kubectl-pair')

interface Outcome {
  readonly code: number
  readonly out: string
  readonly err: string
}

function run(program: string, args: readonly string[], env: NodeJS.ProcessEnv): Promise<Outcome> {
  return new Promise((resolve) => {
    execFile(program, args, { env, cwd: OBJECTS, timeout: 60_000, maxBuffer: 2 ** 27 }, (error, out, err) => {
      resolve({ code: error === null ? 0 : Number(error.code ?? 1), out, err })
    })
  })
}

/** Ages go on while the two are asked one after the other, and columns with them. */
function masked(text: string): string {
  return text
    .replaceAll(/(?<=^|[\s(])(?:\d+[dhms]){1,2}(?=[\s)]|$)/gm, 'AGE')
    .replaceAll(/\(x\d+ over/g, '(xN over')
    .replaceAll(/ {2,}/g, '  ')
    .replaceAll(/-{4,}/g, '----')
    .replaceAll(/(RenewTime: +).*/g, '$1TIME')
}

function difference(theirs: Outcome, ours: Outcome): string {
  for (const part of ['out', 'err'] as const) {
    const [left, right] = [masked(theirs[part]).split('\n'), masked(ours[part]).split('\n')]
    const at = left.findIndex((line, number) => line !== right[number])
    if (at >= 0 || left.length !== right.length) {
      const where = at < 0 ? left.length : at
      return `${part} line ${where + 1}\n  - ${left[where] ?? '(end)'}\n  + ${right[where] ?? '(end)'}`
    }
  }
  return theirs.code === ours.code ? '' : `exit code ${theirs.code}, ours ${ours.code}`
}

async function main(): Promise<number> {
  const { kubectl } = await upstreamPrograms(['kubectl'], (text) => void process.stdout.write(`${text}\n`))
  const folder = await mkdtemp(join(tmpdir(), 'hyperkube-kubectl-pair-'))
  const kubeconfig = join(folder, 'kubeconfig')
  const flags = [
    'up',
    '--data-dir',
    folder,
    '--nodes=2',
    '--runtime=simulated',
    '--secure-port=0',
    '--kubeconfig',
    kubeconfig,
  ]
  const cluster = await launch(HYPERKUBE, flags, join(folder, 'log'))
  const env = { PATH: process.env['PATH'], HOME: folder, KUBECONFIG: kubeconfig, TZ: 'UTC' }
  // By the name it is called by it knows what it is.
  const mine = join(folder, 'kubectl')
  await symlink(HYPERKUBE, mine)
  const ask = (args: readonly string[]): Promise<Outcome> => run(kubectl, args, env)
  try {
    await prepare(ask)
    let different = 0
    const lines = LINES.filter(({ args }) => options.only === undefined || args.join(' ').includes(options.only))
    for (const line of lines) {
      const found = await compare(line, { ask, ours: (args) => run(mine, args, env) })
      if (found === '') continue
      different++
      process.stdout.write(`kubectl ${line.args.join(' ')}: ${found}\n`)
    }
    process.stdout.write(`${lines.length} command lines, ${different} different\n`)
    return different === 0 ? 0 : 1
  } finally {
    await end(cluster, 'SIGTERM')
    await rm(folder, { recursive: true, force: true })
  }
}

interface Two {
  readonly ask: (args: readonly string[]) => Promise<Outcome>
  readonly ours: (args: readonly string[]) => Promise<Outcome>
}

/** What changes something is put back before the other one gets its turn. */
async function compare({ args, before, after }: Line, { ask, ours }: Two): Promise<string> {
  if (before !== undefined) await ask(before)
  const theirs = await ask(args)
  if (after !== undefined) await ask(after)
  if (before !== undefined) await ask(before)
  const found = difference(theirs, await ours(args))
  if (after !== undefined) await ask(after)
  return found
}

async function prepare(ask: Two['ask']): Promise<void> {
  for (let tries = 0; (await ask(['get', 'nodes', '-o', 'name'])).out.split('\n').length < 3; tries++) {
    if (tries > 200) throw new Error('The cluster did not come up')
  }
  for (const args of [
    ['apply', '-f', 'objects.yaml'],
    ['wait', 'crd/widgets.example.com', '--for=condition=Established'],
    ['apply', '-f', 'custom.yaml'],
    ['rollout', 'status', 'deploy/web', '-n', 'shown', '--timeout=60s'],
    ['wait', 'pods', '--all', '-n', 'shown', '--for=condition=Ready', '--timeout=20s'],
  ]) {
    await ask(args)
  }
}

process.exitCode = await main()
