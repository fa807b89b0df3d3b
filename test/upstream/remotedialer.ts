/**
 * Tests Rancher's remotedialer as the agent of a cluster: `node test/upstream/remotedialer.ts`. Its source must be in
 * the folder `remotedialer-source` of hyperkube's user cache, because the module proxy does not have it. `git
 * archive` of github.com/rancher/remotedialer creates it. Requests, watches, copies of 400 MB and a slow reader use
 * its tunnel.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { createServer, type Server } from 'node:https'
import type { AddressInfo } from 'node:net'
import { homedir } from 'node:os'
import { join } from 'node:path'

import { every, realClock, sleep } from '#lib/clock.ts'
import { createHttpClient, type HttpClient } from '#lib/http/client.ts'
import { secureRandom, uuid } from '#lib/random.ts'
import { createAuthority } from '#lib/x509/authority.ts'

import { type ManagementBed, startManagementBed } from '../integration/management/bed.ts'
import { connected, probeAnswer } from '../integration/management/downstream.ts'
import { ownGoProgram } from './go-program.ts'

const SOURCE = join(process.env.XDG_CACHE_HOME ?? join(homedir(), '.cache'), 'hyperkube', 'remotedialer-source')
const TOKEN = 'token-of-the-service-account'
const COPY_BYTES = 400 << 20
const PIECE = Buffer.alloc(1 << 20, 'x')
const REQUESTS = 1000
const WATCH_MS = 70_000
const GOAL_P50_MS = 50
const GOAL_GROWTH_BYTES = 200 << 20

const uid = uuid(secureRandom)
const authority = createAuthority({ commonName: 'kubernetes' }, { clock: realClock, random: secureRandom })
const problems: string[] = []

function check(isRight: boolean, what: string): void {
  process.stdout.write(`${isRight ? 'ok  ' : 'FAIL'} ${what}\n`)
  if (!isRight) problems.push(what)
}

/** Answers downloads of any size, uploads, and watches with an event each second. */
function startApiServer(): Server {
  const pair = authority.issue({ commonName: 'kube-apiserver', names: { ips: ['127.0.0.1'] }, purpose: 'server' })
  return createServer({ cert: pair.certificatePem, key: pair.keyPem }, (request, response) => {
    const url = request.url ?? ''
    if (request.headers.authorization !== `Bearer ${TOKEN}`) return void response.writeHead(401).end('{}')
    const probe = probeAnswer(url, uid)
    if (probe !== undefined) return void response.writeHead(200, { 'content-type': 'application/json' }).end(probe)
    if (url.includes('watch=1')) {
      response.writeHead(200)
      const timer = every(realClock, 1000, () => response.write('event\n'))
      return void response.on('close', () => timer.cancel())
    }
    let bytes = 0
    request.on('data', (piece: Buffer) => (bytes += piece.length))
    request.on('end', () => {
      const [, size] = /^\/download\/(\d+)/.exec(url) ?? []
      if (size === undefined)
        return void response.writeHead(200).end(JSON.stringify({ bytes, items: [], metadata: {} }))
      response.writeHead(200)
      let left = Number(size)
      const pump = (): void => {
        for (let hasRoom = true; hasRoom && left > 0; left -= PIECE.length) hasRoom = response.write(PIECE)
        if (left > 0) response.once('drain', pump)
        else response.end()
      }
      pump()
    })
  }).listen(0, '127.0.0.1')
}

class Run {
  readonly #bed: ManagementBed
  readonly #cluster: string
  readonly #http: HttpClient

  constructor(bed: ManagementBed, cluster: string) {
    this.#bed = bed
    this.#cluster = cluster
    this.#http = createHttpClient({ clock: realClock, tls: { ca: bed.ca } })
  }

  request(
    method: string,
    path: string,
    more: Partial<Parameters<HttpClient['request']>[0]> = {},
  ): ReturnType<HttpClient['request']> {
    const headers = { authorization: `Bearer ${this.#bed.administrator}` }
    return this.#http.request({
      method,
      url: this.#bed.url,
      path: `/k8s/clusters/${this.#cluster}${path}`,
      headers,
      ...more,
    })
  }

  /** The time of a small request. */
  async small(): Promise<number> {
    const startedMs = realClock.elapsed()
    const response = await this.request('GET', '/api/v1/pods')
    await response.text(1 << 20)
    if (response.status !== 200) throw new Error(`status ${response.status}`)
    return realClock.elapsed() - startedMs
  }

  async requests(): Promise<void> {
    const times: number[] = []
    const worker = async (): Promise<void> => {
      while (times.length < REQUESTS) times.push(await this.small())
    }
    await Promise.all(Array.from({ length: 20 }, worker))
    check(times.length >= REQUESTS, `${REQUESTS} requests, 20 at a time, p50 ${median(times).toFixed(1)} ms`)
  }

  async copies(): Promise<void> {
    const rate = (startedMs: number): string =>
      `${(COPY_BYTES / 1e6 / ((realClock.elapsed() - startedMs) / 1000)).toFixed(0)} MB/s`
    let startedMs = realClock.elapsed()
    let bytes = 0
    for await (const piece of (await this.request('GET', `/download/${COPY_BYTES}`)).body) bytes += piece.length
    check(bytes === COPY_BYTES, `400 MB down, ${rate(startedMs)}`)
    startedMs = realClock.elapsed()
    const response = await this.request('POST', '/upload', { body: pieces() })
    const text = await response.text(1 << 20)
    check(text.includes(`"bytes":${COPY_BYTES}`), `400 MB up, ${rate(startedMs)}`)
  }

  /** A slow reader delays no other request, and the server buffers few of its bytes. */
  async slowReader(): Promise<void> {
    const before = process.memoryUsage().rss
    const response = await this.request('GET', `/download/${COPY_BYTES}`)
    const iterator = response.body[Symbol.asyncIterator]()
    const times: number[] = []
    for (let turn = 0; turn < 50; turn++) {
      await iterator.next()
      times.push(await this.small())
      await sleep(realClock, 50)
    }
    const growth = process.memoryUsage().rss - before
    response.discard()
    check(median(times) < GOAL_P50_MS, `requests beside a slow reader, p50 ${median(times).toFixed(1)} ms`)
    check(growth < GOAL_GROWTH_BYTES, `memory beside a slow reader grows by ${(growth / 1e6).toFixed(0)} MB`)
  }

  /** Longer than the minute after which remotedialer lists its connections, so that others are freed. */
  async watch(): Promise<void> {
    const controller = new AbortController()
    const response = await this.request('GET', '/api/v1/pods?watch=1', { signal: controller.signal })
    let events = 0
    const reading = (async () => {
      for await (const piece of response.body) events += piece.toString().split('\n').length - 1
    })().catch(() => undefined)
    await sleep(realClock, WATCH_MS)
    check(events >= WATCH_MS / 1000 - 5, `a watch of ${WATCH_MS / 1000} s, ${events} events`)
    controller.abort()
    await reading
    check((await this.small()) >= 0, 'a request after the watch')
  }

  close(): void {
    this.#http.close()
  }
}

async function* pieces(): AsyncGenerator<Buffer> {
  for (let sent = 0; sent < COPY_BYTES; sent += PIECE.length) {
    yield PIECE
    await sleep(realClock, 0)
  }
}

function median(times: readonly number[]): number {
  return times.toSorted((a, b) => a - b)[times.length >> 1] ?? Infinity
}

/** The environment is that of the agent. */
async function createCluster(
  bed: ManagementBed,
  port: number,
): Promise<{ readonly cluster: string; readonly env: NodeJS.ProcessEnv }> {
  const body = { displayName: 'rancher', agent: 'remotedialer' }
  const made = await bed.request('POST', '/v3/clusters', { token: bed.administrator, body })
  const caCert = Buffer.from(authority.certificatePem).toString('base64')
  const params = { cluster: { address: `127.0.0.1:${port}`, token: TOKEN, caCert } }
  const env = {
    ...process.env,
    AUTHORITY: bed.ca,
    TOKEN: made.body['token'] as string,
    PARAMS: Buffer.from(JSON.stringify(params)).toString('base64'),
  }
  return { cluster: made.body['cluster'].metadata.name as string, env }
}

async function main(): Promise<void> {
  if (!existsSync(join(SOURCE, 'go.mod')))
    throw new Error(`The source of github.com/rancher/remotedialer is not in ${SOURCE}; put it there (git archive)`)
  const main = join(import.meta.dirname, 'remotedialer', 'main.go')
  const library = 'github.com/rancher/remotedialer'
  const program = ownGoProgram('remotedialer-agent', main, { [library]: 'v0.0.0' }, { [library]: SOURCE })
  const apiServer = startApiServer()
  await once(apiServer, 'listening')
  const bed = await startManagementBed()
  const { cluster, env } = await createCluster(bed, (apiServer.address() as AddressInfo).port)
  const start = (): ChildProcess =>
    spawn(program, [`${bed.url.replace('https', 'wss')}/v3/connect`], { env, stdio: 'ignore' })
  let agent = start()
  const run = new Run(bed, cluster)
  try {
    await connected(bed, cluster)
    check(true, 'remotedialer connects')
    await run.requests()
    await run.copies()
    await run.slowReader()
    await run.watch()
    agent.kill('SIGKILL')
    await once(agent, 'exit')
    const away = await run.request('GET', '/api/v1/pods')
    away.discard()
    check(away.status === 503, `status ${away.status} while the agent is away`)
    agent = start()
    await connected(bed, cluster)
    check((await run.small()) >= 0, 'a request after the agent is back')
  } finally {
    agent.kill('SIGKILL')
    run.close()
    await bed[Symbol.asyncDispose]()
    apiServer.closeAllConnections()
    apiServer.close()
  }
}

await main()
const result =
  problems.length === 0
    ? "Rancher's remotedialer connects and is used"
    : `${problems.length} checks failed: ${problems.join('; ')}`
process.stdout.write(`${result}\n`)
process.exitCode = problems.length === 0 ? 0 : 1
