/**
 * Measures our kubectl and upstream's with many pods: `node test/upstream/kubectl-large.ts [--pods 10000] [--runs 5]
 * [--program FILE]`. Both print the pods of one server in turns. Prints the median elapsed time, processor time and
 * peak memory of each command line. `--program` measures another hyperkube than these sources. Needs Linux, and Go
 * once.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'

import { every, realClock } from '#lib/clock.ts'

import { ask, HYPERKUBE, type Server, startOurs, writeKubeconfig } from './ours.ts'
import { upstreamPrograms } from './programs.ts'

const { values: options } = parseArgs({
  options: {
    pods: { type: 'string', default: '10000' },
    runs: { type: 'string', default: '5' },
    program: { type: 'string', default: HYPERKUBE },
  },
})

const LINES = [
  'get pods',
  'get pods -o wide',
  'get pods -o name',
  'get pods -o json',
  'get pods --sort-by=.metadata.name',
]
const AT_ONCE = 16
const LOOK_MS = 5
const TICK_MS = 10

interface Run {
  readonly wallMs: number
  readonly cpuMs: number
  readonly peakMiB: number
  readonly bytes: number
}

async function fill(server: Server, count: number): Promise<void> {
  const numbers = Array.from({ length: count }, (_, number) => number).values()
  const worker = async (): Promise<void> => {
    for (const number of numbers) {
      const metadata = {
        name: `pod-${String(number).padStart(6, '0')}`,
        labels: { app: 'web', shard: String(number % 10) },
      }
      const body = { kind: 'Pod', apiVersion: 'v1', metadata, spec: { containers: [{ name: 'c', image: 'nginx' }] } }
      const { status } = await ask(server, { method: 'POST', path: '/api/v1/namespaces/default/pods', body })
      if (status !== 201) throw new Error(`A pod was refused with ${status}`)
    }
  }
  await Promise.all(Array.from({ length: AT_ONCE }, worker))
}

async function measure(program: string, args: readonly string[], env: NodeJS.ProcessEnv): Promise<Run> {
  const start = realClock.elapsed()
  const child = spawn(program, args, { env, stdio: ['ignore', 'pipe', 'inherit'] })
  let bytes = 0
  child.stdout.on('data', (chunk: Buffer) => (bytes += chunk.length))
  let [peakMiB, cpuMs] = [0, 0]
  const look = async (): Promise<void> => {
    const found = await seen(child.pid ?? 0)
    peakMiB = Math.max(peakMiB, found.peakMiB)
    cpuMs = Math.max(cpuMs, found.cpuMs)
  }
  // The high water mark and the time only grow: the last look before the end counts.
  const looking = every(realClock, LOOK_MS, () => void look())
  const [code] = (await once(child, 'close')) as [number | null]
  looking.cancel()
  if (code !== 0) throw new Error(`${program} ${args.join(' ')} ended with ${code}`)
  return { wallMs: realClock.elapsed() - start, cpuMs, peakMiB, bytes }
}

async function seen(pid: number): Promise<{ peakMiB: number; cpuMs: number }> {
  try {
    const [status, stat] = await Promise.all([
      readFile(`/proc/${pid}/status`, 'utf8'),
      readFile(`/proc/${pid}/stat`, 'utf8'),
    ])
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    const ticks = Number(fields[11]) + Number(fields[12])
    return { peakMiB: Number(/VmHWM:\s+(\d+)/.exec(status)?.[1] ?? 0) / 1024, cpuMs: ticks * TICK_MS }
  } catch {
    // It ended just now.
    return { peakMiB: 0, cpuMs: 0 }
  }
}

function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[values.length >> 1] ?? 0
}

function told(name: string, runs: readonly Run[]): string {
  const of = (pick: (run: Run) => number): string => median(runs.map(pick)).toFixed(0)
  return `  ${name.padEnd(10)}${of((run) => run.wallMs).padStart(8)} ms${of((run) => run.cpuMs).padStart(8)} ms processor${of((run) => run.peakMiB).padStart(8)} MiB${of((run) => run.bytes).padStart(10)} bytes\n`
}

async function main(): Promise<void> {
  const { kubectl } = await upstreamPrograms(['kubectl'], () => undefined)
  const folder = await mkdtemp(join(tmpdir(), 'hyperkube-kubectl-large-'))
  const server = await startOurs(folder, ['--disable-admission-plugins=ServiceAccount'])
  try {
    const kubeconfig = await writeKubeconfig(join(folder, 'kubeconfig'), server)
    const env = { PATH: process.env['PATH'], HOME: folder, KUBECONFIG: kubeconfig }
    await fill(server, Number(options.pods))
    for (const line of LINES) {
      const [theirs, ours]: [Run[], Run[]] = [[], []]
      for (let run = 0; run < Number(options.runs); run++) {
        theirs.push(await measure(kubectl, line.split(' '), env))
        ours.push(await measure(options.program, ['kubectl', ...line.split(' ')], env))
      }
      process.stdout.write(`kubectl ${line}, ${options.pods} pods\n${told('upstream', theirs)}${told('ours', ours)}`)
    }
  } finally {
    await server.stop()
    await rm(folder, { recursive: true, force: true })
  }
}

await main()
