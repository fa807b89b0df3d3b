/** `hyperkube status`: shows the cluster of a data directory: components, addresses, sizes and certificate expiry. */
import { readdir, readFile, stat } from 'node:fs/promises'
import { join } from 'node:path'

import { Nodes } from '#apis/core/v1.ts'
import { ApiClient } from '#client/api-client.ts'
import type { Clock } from '#lib/clock.ts'
import { flag } from '#lib/flags/flags.ts'
import { oneOf } from '#lib/flags/kinds.ts'
import { createHttpClient } from '#lib/http/client.ts'
import { defineProgram, type Program } from '#lib/program.ts'
import { parseCertificate } from '#lib/x509/certificate.ts'
import { humanDuration } from '#meta/duration.ts'
import { hyperkubeVersion, KUBERNETES_VERSION, kubernetesVersion } from '#model/version.ts'

import { formatBytes } from '../bytes.ts'
import { readConsoleLink } from '../console/console-files.ts'
import { type ClusterFile, readClusterFile } from './cluster-file.ts'
import { clusterOwner } from './cluster-lock.ts'
import { DATA_DIR_FLAGS, dataDir } from './data-dir.ts'
import { type Style, styleFor } from './style.ts'

interface Status {
  /** `busy`: a process is starting, stopping or deleting it. */
  readonly state: 'running' | 'busy' | 'stopped' | 'none'
  readonly dataDir: string
  readonly hyperkube: string
  readonly kubernetes: string
  /** The process that keeps it busy. */
  readonly pid?: number
  readonly cluster?: ClusterFile
  /** The log-in link of the web console, which works once. */
  readonly consoleUrl?: string
  /** The health reported by the server: `ok`, or the problem. */
  readonly ready?: string
  readonly nodes?: readonly { readonly name: string; readonly ready: boolean }[]
  readonly sizeBytes: number
  readonly certificates: readonly { readonly name: string; readonly expires: string }[]
}

export const status: Program = defineProgram({
  name: 'status',
  long: 'status shows the cluster of a data directory: its components, nodes, versions, sizes, and the expiry of its certificates.',
  version: kubernetesVersion(),
  flags: {
    cluster: {
      'data-dir': DATA_DIR_FLAGS['data-dir'],
      output: flag(oneOf('text', 'json'), 'text', 'output format: text or json', { shorthand: 'o' }),
    },
  },
  async run({ flags, stdout, env, clock, ...context }) {
    const { path } = dataDir({ ...flags, datastore: 'sqlite' }, { env, ...context })
    const found = await look(path, clock)
    stdout.write(
      flags.output === 'json'
        ? `${JSON.stringify(found, undefined, 2)}\n`
        : shown(found, styleFor(stdout, env), clock.now()),
    )
    return found.ready === 'ok' ? 0 : 1
  },
})

async function look(path: string, clock: Clock): Promise<Status> {
  const owner = await clusterOwner(path)
  const cluster = await readClusterFile(path)
  const certificates = await expiries(join(path, 'pki'))
  const common = {
    dataDir: path,
    hyperkube: hyperkubeVersion(),
    kubernetes: KUBERNETES_VERSION,
    sizeBytes: await sizeOf(path),
    certificates,
  }
  if (owner === undefined) return { state: certificates.length === 0 ? 'none' : 'stopped', ...common }
  if (cluster?.pid !== owner.pid) return { state: 'busy', pid: owner.pid, ...common }
  const consoleUrl = await readConsoleLink(path)
  const found = { state: 'running', ...common, cluster, ...(consoleUrl !== undefined && { consoleUrl }) } as const
  return { ...found, ...(await queryServer(cluster, join(path, 'pki'), clock)) }
}

/** Connects as administrator. A failure becomes the reported health. */
async function queryServer(
  { apiServer }: ClusterFile,
  pki: string,
  clock: Clock,
): Promise<Pick<Status, 'ready' | 'nodes'>> {
  const read = (name: string): Promise<string> => readFile(join(pki, name), 'utf8')
  const [ca, certificate, key] = await Promise.all([read('ca.crt'), read('admin.crt'), read('admin.key')])
  const http = createHttpClient({ clock, tls: { ca, certificate, key } })
  const client = new ApiClient({ transport: http, server: apiServer, clock, userAgent: 'hyperkube-status' })
  const late = new AbortController()
  const timer = clock.after(ASK_MS, () => late.abort(new Error(`no response within ${ASK_MS / 1000} s`)))
  const { signal } = late
  try {
    const answer = await client.ask({ method: 'GET', path: '/readyz', accept: '*/*', signal })
    const ready = await answer.text(1 << 20)
    const { items } = await client.list(Nodes, { signal })
    const nodes = items.map(({ metadata, status: { conditions } }) => ({
      name: metadata.name ?? '',
      ready: conditions?.some(({ type, status: is }) => type === 'Ready' && is === 'True') ?? false,
    }))
    return { ready, nodes }
  } catch (error) {
    return { ready: (error as Error).message }
  } finally {
    timer.cancel()
    http.close()
  }
}

/** The time limit for an answer. */
const ASK_MS = 5000

async function expiries(pki: string): Promise<Status['certificates']> {
  const names = (await readdir(pki).catch(() => [])).filter((name) => name.endsWith('.crt'))
  const all = names.map(async (name) => {
    const { notAfterMs } = parseCertificate(await readFile(join(pki, name), 'utf8'))
    return { name: name.slice(0, -'.crt'.length), expires: new Date(notAfterMs).toISOString() }
  })
  return (await Promise.all(all)).sort((a, b) => (a.expires < b.expires ? -1 : 1))
}

async function sizeOf(path: string): Promise<number> {
  const names = await readdir(path, { recursive: true }).catch(() => [])
  const sizes = names.map(async (name) => {
    const found = await stat(join(path, name)).catch(() => undefined)
    return found?.isFile() === true ? found.size : 0
  })
  return (await Promise.all(sizes)).reduce((sum, size) => sum + size, 0)
}

function shown(found: Status, { bold, good, bad, dim }: Style, nowMs: number): string {
  const { cluster, nodes = [], certificates } = found
  const unready = nodes.filter(({ ready }) => !ready).map(({ name }) => name)
  const [soonest] = certificates
  const rows: [string, string][] = [
    ['Cluster', found.state === 'running' ? good('running') : bad(found.state)],
    ['Data', `${found.dataDir}, ${formatBytes(found.sizeBytes)}`],
    ['Versions', `hyperkube v${found.hyperkube}, Kubernetes ${found.kubernetes}`],
  ]
  if (found.pid !== undefined) rows.push(['Process', `${found.pid}, which starts, stops or deletes it`])
  if (cluster !== undefined) {
    const since = humanDuration(nowMs - Date.parse(cluster.startedAt))
    rows.push(
      ['API server', `${cluster.apiServer}, ${found.ready === 'ok' ? good('ready') : bad(found.ready ?? '')}`],
      ['Controllers', `${cluster.controllers} in process ${cluster.pid}, for ${since}`],
      ['Scheduler', cluster.scheduler ? 'in the same process' : 'none'],
      ['Nodes', `${nodes.length - unready.length} of ${nodes.length} ready ${dim(unready.join(', '))}`.trimEnd()],
      ['Kubeconfig', `${cluster.kubeconfig}, context "${cluster.context}"`],
    )
  }
  if (found.consoleUrl !== undefined) rows.push(['Console', found.consoleUrl])
  if (soonest !== undefined)
    rows.push([
      'Certificates',
      `the first, ${soonest.name}, expires on ${soonest.expires.slice(0, 10)} and is renewed before`,
    ])
  return `${rows.map(([name, text]) => `${bold(name.padEnd(14))}${text}`).join('\n')}\n`
}
