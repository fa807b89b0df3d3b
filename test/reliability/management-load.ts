/**
 * Load test of the management server under kills: `node test/reliability/management-load.ts [seconds]`. 100 users
 * send 2000 requests a second to 200 simulated clusters. The test kills 50 agents or tunnels, and the server three
 * times. No request may fail, except with 503 while its cluster is away.
 */
import { fork } from 'node:child_process'
import { createHash } from 'node:crypto'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'

import { secureRandom } from '#lib/random.ts'

import { type ManagementServer, startManagementServer } from '../upstream/management-server.ts'
import { type LoadUser, Traffic } from './management/traffic.ts'
import type { AgentCommand } from './management/wire.ts'

const CLUSTERS = 200
const USERS = 100
const CLUSTERS_OF_USER = 4
const PER_SECOND = 2000
const SERVER_KILLS = 3
const AGENT_KILLS = 50
const GOAL_RSS_BYTES = 600 << 20
const GOAL_BACK_MS = 10_000
const LIMIT_BACK_MS = 30_000
const DAY_MS = 24 * 3_600_000
const KINDS = '/k8s/clusters/local/apis/management.hyperkube.io/v1'

const seconds = Number(process.argv[2] ?? 30)
const folder = mkdtempSync(join(tmpdir(), 'management-load-'))
const agents = fork(join(import.meta.dirname, 'management', 'agents.ts'), { stdio: 'inherit' })
const command = (one: AgentCommand): void => void agents.send(one)
/** Until when each cluster, and the server, may be away. */
const awayUntil: number[] = []
let serverAwayUntil = 0

let maxRssBytes = 0

function sampleMemory({ pid }: ManagementServer): void {
  try {
    const [, kib = '0'] = /VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? []
    maxRssBytes = Math.max(maxRssBytes, Number(kib) * 1024)
  } catch {
    // The process was killed.
  }
}

async function importClusters(
  server: ManagementServer,
): Promise<{ readonly ids: string[]; readonly tokens: string[] }> {
  const ids: string[] = []
  const tokens: string[] = []
  for (let at = 0; at < CLUSTERS; at++) {
    const { cluster, token } = (await server.request('POST', '/v3/clusters', { displayName: `c${at}` })) as Imported
    ids.push(cluster.metadata.name)
    tokens.push(token)
  }
  return { ids, tokens }
}

interface Imported {
  readonly cluster: { readonly metadata: { readonly name: string } }
  readonly token: string
}

/** With the objects that the routes would make, without the time of password hashes. */
async function createUser(server: ManagementServer, at: number, ids: readonly string[]): Promise<LoadUser> {
  const { name: user } = (await server.request('POST', '/v3/users', { username: `load-${at}` })) as { name: string }
  const secret = secureRandom.bytes(32).toString('base64url')
  const hash = createHash('sha256').update(secret).digest('hex')
  const spec = { user, type: 'api', hash, expiresAt: new Date(Date.now() + DAY_MS).toISOString() }
  const head = { apiVersion: 'management.hyperkube.io/v1' }
  const token = { ...head, kind: 'Token', metadata: { name: `t-load-${at}` }, spec }
  await server.request('POST', `${KINDS}/tokens`, token)
  const clusters = Array.from({ length: CLUSTERS_OF_USER }, (_none, step) => (at * 2 + step) % CLUSTERS)
  for (const cluster of clusters)
    await server.request('POST', `/v3/clusters/${ids[cluster]}/members`, { role: 'cluster-member', user })
  return { token: `hk_t-load-${at}_${secret}`, clusters }
}

/** The time until every cluster answers. */
async function allBack(server: ManagementServer, ids: readonly string[]): Promise<number> {
  const began = performance.now()
  const missing = new Set(ids)
  while (missing.size > 0 && performance.now() - began < LIMIT_BACK_MS) {
    // At once: one after the other would measure the latency of 200 requests.
    const asks = [...missing].map(async (id) => {
      await server.request('GET', `/k8s/clusters/${id}/version`)
      missing.delete(id)
    })
    await Promise.allSettled(asks)
    await sleep(200)
  }
  return missing.size === 0 ? performance.now() - began : Infinity
}

async function killAgents(): Promise<void> {
  for (let kill = 0; kill < AGENT_KILLS; kill++) {
    await sleep((seconds * 1000) / AGENT_KILLS)
    const cluster = secureRandom.int(CLUSTERS)
    if (kill % 2 === 0) {
      awayUntil[cluster] = performance.now() + GOAL_BACK_MS
      command({ kill: cluster })
      continue
    }
    // Which cluster has the connection is unknown here.
    anyAwayUntil = performance.now() + GOAL_BACK_MS
    command({ cut: secureRandom.float() })
  }
}

let anyAwayUntil = 0

async function killServer(server: ManagementServer, ids: readonly string[]): Promise<number[]> {
  const times: number[] = []
  for (let kill = 0; kill < SERVER_KILLS; kill++) {
    await sleep((seconds * 1000) / (SERVER_KILLS + 1) - 1000)
    serverAwayUntil = Infinity
    await server.kill()
    await server.start()
    times.push(await allBack(server, ids))
    serverAwayUntil = performance.now() + 1000
  }
  return times
}

async function run(): Promise<number> {
  await using server = await startManagementServer(folder)
  const { ids, tokens } = await importClusters(server)
  const users: LoadUser[] = []
  for (let at = 0; at < USERS; at++) users.push(await createUser(server, at, ids))
  command({ plan: { port: Number(new URL(server.url).port), ca: server.authority, tokens } })
  const first = await allBack(server, ids)
  console.log(`${CLUSTERS} agents registered in ${Math.round(first)} ms`)
  const memory = setInterval(() => sampleMemory(server), 500)
  const traffic = new Traffic({
    url: server.url,
    ca: server.authority,
    users,
    clusters: ids,
    perSecond: PER_SECOND,
    isAway: (cluster) => performance.now() < Math.max(awayUntil[cluster] ?? 0, anyAwayUntil),
    isServerAway: () => performance.now() < serverAwayUntil,
  })
  const began = performance.now()
  const [back] = await Promise.all([killServer(server, ids), killAgents(), traffic.run(seconds)])
  const tookMs = performance.now() - began
  clearInterval(memory)
  return report(traffic, back, tookMs)
}

function report(traffic: Traffic, back: readonly number[], tookMs: number): number {
  const { answers, unavailable, skipped, watchEvents, errors } = traffic
  const errorCount = [...errors.values()].reduce((sum, count) => sum + count, 0)
  for (const [what, count] of errors) console.log(`error: ${count} x ${what}`)
  const mib = Math.round(maxRssBytes / (1 << 20))
  console.log(
    `answers ${answers} (${Math.round(answers / (tookMs / 1000))}/s), not sent ${skipped}, 503 ${unavailable}`,
  )
  console.log(`p50 ${Math.round(traffic.percentile(0.5))} ms, p99 ${Math.round(traffic.percentile(0.99))} ms`)
  console.log(`watch events ${watchEvents}, memory of the server at most ${mib} MiB`)
  console.log(`all agents back after ${back.map((ms) => Math.round(ms)).join(', ')} ms`)
  const isGood = errorCount === 0 && maxRssBytes < GOAL_RSS_BYTES && back.every((ms) => ms < GOAL_BACK_MS)
  const figures = `${errorCount} errors in ${answers} answers, ${mib} MiB, back in ${Math.round(Math.max(...back))} ms`
  console.log(`${isGood ? 'PASS' : 'FAIL'}: ${figures}`)
  return isGood ? 0 : 1
}

try {
  process.exitCode = await run()
} finally {
  agents.disconnect()
  rmSync(folder, { recursive: true, force: true })
}
