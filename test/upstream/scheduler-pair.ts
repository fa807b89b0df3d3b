/** Runs upstream's kube-scheduler on our server, and ours beside it, which only predicts decisions. */
import { mkdtemp, open, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import { ApiClient, type ApiClientOptions } from '#client/api-client.ts'
import { createGates } from '#component/flags/gates.ts'
import { realClock } from '#lib/clock.ts'
import { createHttpClient } from '#lib/http/client.ts'
import { createSeededRandom } from '#lib/random.ts'
import { DEFAULT_PROFILE } from '#scheduler/profiles.ts'
import { type RunningScheduler, type SchedulerOptions, startScheduler } from '#scheduler/start.ts'
import { errorLog } from '#testing/control-plane.ts'

import { end, launch } from './kube-apiserver.ts'
import { type Server, startOurs, writeKubeconfig } from './ours.ts'
import { upstreamPrograms } from './programs.ts'

export interface SchedulerPair {
  readonly server: Server
  readonly client: ApiClient
  /** Our scheduler; its scheduler name matches no pods unless the test changes it. */
  readonly ours: RunningScheduler
  /** Returns what upstream's scheduler has logged since the previous call. */
  readonly news: () => Promise<string>
  stop(): Promise<void>
}

export interface PairOptions {
  /** Gates that are on in all three programs; with what they need of the server. */
  readonly gates?: readonly string[]
  readonly serverFlags?: readonly string[]
  /** The name of the profile whose pods ours places; default: it only looks. */
  readonly placing?: string
  /** Of KubeSchedulerConfiguration, for upstream's. */
  readonly configuration?: object
  /** The extenders of our scheduler. */
  readonly extenders?: SchedulerOptions['extenders']
}

/** `without`: admission plugins that would be in the way. */
export async function startPair(without: readonly string[], options: PairOptions = {}): Promise<SchedulerPair> {
  const folder = await mkdtemp(join(tmpdir(), 'hyperkube-schedulers-'))
  const { gates = [], serverFlags = [] } = options
  const gateFlags = gates.length === 0 ? [] : [`--feature-gates=${gates.map((gate) => `${gate}=true`).join()}`]
  const flags = [`--disable-admission-plugins=${without.join()}`, ...gateFlags, ...serverFlags]
  const server = await startOurs(folder, flags)
  const theirs = await startTheirs(folder, server, { flags: gateFlags, configuration: options.configuration ?? {} })
  const over = new AbortController()
  const ours = startBeside(server, over.signal, options)
  await ours.synced
  let read = 0
  return {
    server,
    client: clientOf(server),
    ours,
    async news() {
      await using log = await open(theirs.log)
      const { size } = await log.stat()
      const { buffer, bytesRead } = await log.read({ buffer: Buffer.alloc(size - read), position: read })
      read += bytesRead
      return buffer.toString('utf8', 0, bytesRead)
    },
    async stop() {
      over.abort()
      await ours.ended()
      await theirs.stop()
      await server.stop()
      await rm(folder, { recursive: true, force: true })
    },
  }
}

export function reach({ port, tls }: Server): Pick<ApiClientOptions, 'transport' | 'server'> {
  const { ca, cert, key } = tls
  const transport = createHttpClient({ clock: realClock, tls: { ca, certificate: cert, key } })
  return { transport, server: `https://127.0.0.1:${port}` }
}

function clientOf(server: Server): ApiClient {
  return new ApiClient({ ...reach(server), clock: realClock, userAgent: 'scheduling' })
}

/** Upstream's program, with every node looked at, nothing held back, and its points in the log. */
async function startTheirs(
  folder: string,
  server: Server,
  { flags, configuration }: { readonly flags: readonly string[]; readonly configuration: object },
): Promise<{ log: string; stop(): Promise<void> }> {
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
      ...configuration,
    }),
  )
  const log = join(folder, 'scheduler.log')
  const child = await launch(program, [`--config=${config}`, '--secure-port=0', '-v=10', ...flags], log)
  return { log, stop: () => end(child, 'SIGTERM') }
}

function startBeside(
  server: Server,
  signal: AbortSignal,
  { gates = [], placing, extenders = [] }: PairOptions,
): RunningScheduler {
  return startScheduler({
    client: clientOf(server),
    clock: realClock,
    random: createSeededRandom(1),
    log: errorLog(),
    signal,
    isEnabled: createGates(new Map(gates.map((gate) => [gate, true]))),
    host: 'ours',
    profiles: [{ ...DEFAULT_PROFILE, percentageOfNodesToScore: 100, ...(placing !== undefined && { name: placing }) }],
    extenders,
    ...(placing === undefined && { isOurs: () => false }),
  })
}
