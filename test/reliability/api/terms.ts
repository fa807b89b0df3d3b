/**
 * Sends SIGTERM to the server under load, repeatedly. Checks that clients that respect `Connection: close` and GOAWAY
 * lose no request, that watches end cleanly, and that the program exits within ten seconds. `node
 * test/reliability/main.ts terms --times 20 --seed 1`
 */
import { performance } from 'node:perf_hooks'

import { realClock } from '#lib/clock.ts'
import { createHttpClient, type HttpClient } from '#lib/http/client.ts'
import { createSeededRandom, type Random } from '#lib/random.ts'

import { pause } from '../pause.ts'
import { ApiProgram, credentials, type Target } from './program.ts'
import { openConnection, type RawConnection, type RawRequest } from './raw-http.ts'
import { MAPS } from './writers.ts'

export interface TermsOptions {
  readonly datastore: string
  readonly times: number
  /** Of each protocol. */
  readonly clients: number
  readonly seed: number
  readonly progress?: (done: number) => void
}

export interface TermsReport {
  readonly times: number
  readonly answered: number
  readonly watches: number
  readonly exitMs: readonly number[]
  readonly problems: readonly string[]
}

/** The time in which the program must exit. */
const EXIT_LIMIT_MS = 10_000

interface Count {
  answered: number
  watches: number
  readonly problems: string[]
  /** Set when SIGTERM was sent: from then on a connection may be refused. */
  isStopping: boolean
  readonly random: Random
}

export async function runTerms(options: TermsOptions): Promise<TermsReport> {
  const program = await ApiProgram.create({ datastore: options.datastore })
  const count: Count = {
    answered: 0,
    watches: 0,
    problems: [],
    isStopping: false,
    random: createSeededRandom(options.seed),
  }
  const exitMs: number[] = []
  try {
    for (let time = 1; time <= options.times; time++) {
      exitMs.push(await once(program, options, count))
      options.progress?.(time)
    }
  } finally {
    await program.close()
  }
  const { answered, watches, problems } = count
  return { times: exitMs.length, answered, watches, exitMs: exitMs.toSorted((a, b) => a - b), problems }
}

async function once(program: ApiProgram, { clients }: TermsOptions, count: Count): Promise<number> {
  await program.start()
  count.isStopping = false
  const seats = Array.from({ length: clients }, (_, n) => n)
  const running = Promise.all([
    ...seats.map((n) => requestOn(program.target, n, count)),
    ...seats.map((n) => requestOver(program.target, n, count)),
    ...seats.map(() => watchOn(program.target, count)),
  ])
  await pause(200 + count.random.int(300))
  count.isStopping = true
  const { code, tookMs } = await program.terminate(EXIT_LIMIT_MS)
  if (code !== 0)
    count.problems.push(`it ended with ${code} after ${tookMs.toFixed(0)} ms: ${program.output.slice(-500)}`)
  await running
  return tookMs
}

let created = 0

function nextRequest(random: Random): RawRequest {
  const headers = credentials('root')
  switch (random.int(3)) {
    case 0:
      return { path: `${MAPS}?limit=100`, headers }
    case 1:
      return { path: '/api/v1/namespaces/default', headers }
    default: {
      const body = JSON.stringify({ metadata: { name: `t-${performance.timeOrigin.toFixed(0)}-${created++}` } })
      return { method: 'POST', path: MAPS, headers: { ...headers, 'content-type': 'application/json' }, body }
    }
  }
}

/** HTTP/1.1: one request after another until a new connection is refused. */
async function requestOn(target: Target, client: number, count: Count): Promise<void> {
  const { random } = count
  let connection: RawConnection | undefined
  for (;;) {
    if (connection?.isOpen !== true) connection = await openConnection(target).catch(() => undefined)
    if (connection === undefined) {
      if (!count.isStopping) count.problems.push(`client ${client} could not connect`)
      return
    }
    const request = nextRequest(random)
    try {
      judge(count, (await connection.send(request)).status, request)
    } catch (error) {
      count.problems.push(`HTTP/1.1 ${request.method ?? 'GET'}: ${(error as Error).message}`)
    }
    await pause(random.int(20))
  }
}

/** HTTP/2, by our own client. */
async function requestOver(target: Target, client: number, count: Count): Promise<void> {
  const { random } = count
  const http: HttpClient = createHttpClient({ clock: realClock, tls: { ca: target.ca } })
  for (;;) {
    const request = nextRequest(random)
    const { method = 'GET', path, headers = {}, body } = request
    try {
      const url = `https://127.0.0.1:${target.port}${path}`
      const answer = await http.request({
        method,
        url,
        headers,
        ...(body !== undefined && { body }),
        timeoutMs: 20_000,
      })
      await answer.bytes(1 << 26)
      judge(count, answer.status, request)
    } catch (error) {
      const { code, message } = error as { code?: string; message: string }
      if (count.isStopping && code === 'connect') break
      count.problems.push(`HTTP/2 client ${client}, ${method}: ${code} ${message}`)
      if (count.isStopping) break
    }
    await pause(random.int(20))
  }
  http.close()
}

function judge(count: Count, status: number, { method = 'GET', path }: RawRequest): void {
  count.answered++
  if (status >= 300) count.problems.push(`${method} ${path}: ${status}`)
}

/** Ends properly, not by a broken connection. */
async function watchOn(target: Target, count: Count): Promise<void> {
  const connection = await openConnection(target).catch(() => undefined)
  if (connection === undefined) return
  try {
    const path = `${MAPS}?watch=1`
    await connection.follow({ path, headers: credentials('root'), timeoutMs: 60_000 }, () => undefined)
    count.watches++
  } catch (error) {
    count.problems.push(`a watch broke off: ${(error as Error).message}`)
  }
}
