/**
 * Decisions beside upstream's kube-scheduler: `node test/upstream/scheduling.ts [--seed N] [--clusters N] [--pods N]`. Clusters and
 * pods by chance; upstream's program decides about one pod after the other on our server and tells its points for every node
 * (verbosity 10); ours is asked what it would decide with the same in view. See `scheduling-decisions.ts`.
 */
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'

import { ApiClient, type ApiClientOptions } from '#client/api-client.ts'
import { createGates } from '#control-plane/flags/gates.ts'
import { runControllers } from '#controllers/manager.ts'
import { persistentVolumeBinderController } from '#controllers/persistentvolume-binder/controller.ts'
import { realClock } from '#lib/clock.ts'
import { createHttpClient } from '#lib/http/client.ts'
import { createSeededRandom } from '#lib/random.ts'
import { DEFAULT_PROFILE } from '#scheduler/profiles.ts'
import { type RunningScheduler, startScheduler } from '#scheduler/start.ts'
import { errorLog } from '#testing/control-plane.ts'

import { end, launch } from './kube-apiserver.ts'
import { type Server, startOurs, writeKubeconfig } from './ours.ts'
import { upstreamPrograms } from './programs.ts'
import { Comparison, type Tally } from './scheduling-decisions.ts'

const { values: options } = parseArgs({
  options: {
    seed: { type: 'string', default: '1' },
    clusters: { type: 'string', default: '50' },
    pods: { type: 'string', default: '40' },
  },
})

const SHOWN = 40

function reach({ port, tls }: Server): Pick<ApiClientOptions, 'transport' | 'server'> {
  const { ca, cert, key } = tls
  const transport = createHttpClient({ clock: realClock, tls: { ca, certificate: cert, key } })
  return { transport, server: `https://127.0.0.1:${port}` }
}

function clientOf(server: Server): ApiClient {
  return new ApiClient({ ...reach(server), clock: realClock, userAgent: 'scheduling' })
}

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

/** Upstream's program, with every node looked at, nothing held back, and its points in the log. */
async function startTheirs(folder: string, server: Server): Promise<{ log: string; stop(): Promise<void> }> {
  const say = (line: string): boolean => process.stderr.write(`${line}\n`)
  const { 'kube-scheduler': program } = await upstreamPrograms(['kube-scheduler'], say)
  const kubeconfig = await writeKubeconfig(join(folder, 'kubeconfig'), server)
  const config = join(folder, 'config.json')
  await writeFile(
    config,
    JSON.stringify({
      apiVersion: 'kubescheduler.config.k8s.io/v1',
      kind: 'KubeSchedulerConfiguration',
      percentageOfNodesToScore: 100,
      leaderElection: { leaderElect: false },
      clientConnection: { kubeconfig, qps: 1000, burst: 1000 },
    }),
  )
  const log = join(folder, 'scheduler.log')
  const child = await launch(program, [`--config=${config}`, '--secure-port=0', '-v=10'], log)
  return { log, stop: () => end(child, 'SIGTERM') }
}

/** Ours, which only looks: it places nobody's pods. */
function startLooking(server: Server): { running: RunningScheduler; stop(): Promise<void> } {
  const stop = new AbortController()
  const running = startScheduler({
    client: clientOf(server),
    clock: realClock,
    random: createSeededRandom(1),
    log: errorLog(),
    signal: stop.signal,
    isEnabled: createGates(new Map()),
    host: 'ours',
    profiles: [{ ...DEFAULT_PROFILE, percentageOfNodesToScore: 100 }],
    isOurs: () => false,
  })
  return { running, stop: () => (stop.abort(), running.ended()) }
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
  const folder = await mkdtemp(join(tmpdir(), 'hyperkube-scheduling-'))
  const off = ['ServiceAccount', 'TaintNodesByCondition', 'DefaultTolerationSeconds', 'StorageObjectInUseProtection']
  const server = await startOurs(folder, [`--disable-admission-plugins=${off.join()}`])
  const theirs = await startTheirs(folder, server)
  const ours = startLooking(server)
  const stopBinder = startBinder(server)
  try {
    await ours.running.synced
    const comparison = new Comparison(clientOf(server), ours.running, theirs.log)
    await comparison.prepare()
    const first = Number(options.seed)
    let told = 0
    for (let at = 0; at < Number(options.clusters); at++) {
      await comparison.play(first + at, Number(options.pods))
      for (const one of comparison.differences.slice(told, SHOWN)) process.stdout.write(`${one}\n`)
      told = comparison.differences.length
    }
    process.stdout.write(tableOf(comparison.tallies))
    return comparison.differences.length === 0 ? 0 : 1
  } finally {
    await ours.stop()
    await stopBinder()
    await theirs.stop()
    await server.stop()
    await rm(folder, { recursive: true, force: true })
  }
}

process.exitCode = await main()
