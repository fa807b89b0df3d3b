/**
 * 1,000 watches through `hyperkube server` and its agent: `node test/upstream/management-watches.ts`. Every watch must see
 * each of 20 changes once and in order, while a reader that never reads holds one more connection. Exits with 1 otherwise.
 */
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import { realClock, sleep } from '#lib/clock.ts'
import { createHttpClient, type HttpClient } from '#lib/http/client.ts'

import { startUp } from '../bench/up-under-test.ts'
import { startManagementServer } from './management-server.ts'

const WATCHES = 1000
const CHANGES = 20
const LIMIT_MS = 60_000
const PATH = '/api/v1/namespaces/default/configmaps'

const say = (line: string): void => void process.stdout.write(`${line}\n`)

interface Watch {
  /** The values of the field `count` in the order of their events. */
  readonly counts: number[]
  readonly delaysMs: number[]
}

class Caller {
  readonly #http: HttpClient
  readonly #url: URL
  readonly #token: string

  constructor(kubeconfig: string) {
    const field = (name: string): string => new RegExp(`${name}: "?([^\\s"]+)`).exec(kubeconfig)?.[1] ?? ''
    const ca = Buffer.from(field('certificate-authority-data'), 'base64').toString()
    this.#url = new URL(field('server'))
    this.#token = field('token')
    this.#http = createHttpClient({ clock: realClock, tls: { ca } })
  }

  request(method: string, path: string, body?: object): ReturnType<HttpClient['request']> {
    const headers = { authorization: `Bearer ${this.#token}`, 'content-type': 'application/json' }
    const url = this.#url.origin
    const sent = body === undefined ? {} : { body: JSON.stringify(body) }
    return this.#http.request({ method, url, path: this.#url.pathname + path, headers, ...sent })
  }

  close(): void {
    this.#http.close()
  }
}

async function watch(caller: Caller, resourceVersion: string, seen: Watch): Promise<void> {
  const query = `watch=1&resourceVersion=${resourceVersion}&fieldSelector=metadata.name%3Dwatched`
  const answer = await caller.request('GET', `${PATH}?${query}`)
  if (answer.status !== 200) throw new Error(`watch: ${answer.status} ${await answer.text(1 << 20)}`)
  void (async () => {
    let rest = ''
    for await (const chunk of answer.body) {
      const lines = (rest + chunk.toString()).split('\n')
      rest = lines.pop() ?? ''
      for (const line of lines) {
        const { count = '', sent = '' } =
          (JSON.parse(line) as { object: { data?: Record<string, string> } }).object.data ?? {}
        seen.counts.push(Number(count))
        seen.delaysMs.push(realClock.now() - Number(sent))
      }
    }
  })().catch(() => undefined)
}

async function run(folder: string): Promise<string | undefined> {
  await using closing = new AsyncDisposableStack()
  const cluster = await startUp(folder, 0)
  closing.defer(() => cluster.stop())
  await cluster.nodesReady()
  const server = closing.use(await startManagementServer(join(folder, 'server')))
  const kubeconfig = await readFile(await server.importCluster('watches', join(folder, 'kubeconfig')), 'utf8')
  const caller = new Caller(kubeconfig)
  closing.defer(() => caller.close())
  const made = await caller.request('POST', PATH, { metadata: { name: 'watched' } })
  const { metadata } = JSON.parse(await made.text(1 << 20)) as { metadata: { resourceVersion: string } }
  const watches = Array.from({ length: WATCHES }, (): Watch => ({ counts: [], delaysMs: [] }))
  // Ends with the connection; its events pile up in the server, which must bound them.
  const idle = new Caller(kubeconfig)
  closing.defer(() => idle.close())
  await idle.request('GET', `${PATH}?watch=1&resourceVersion=${metadata.resourceVersion}`)
  const began = realClock.elapsed()
  await Promise.all(watches.map((seen) => watch(caller, metadata.resourceVersion, seen)))
  say(`${WATCHES} watches open after ${Math.round(realClock.elapsed() - began)} ms`)
  for (let count = 0; count < CHANGES; count++) {
    const data = { count: String(count), sent: String(realClock.now()) }
    const changed = await caller.request('PUT', `${PATH}/watched`, { metadata: { name: 'watched' }, data })
    if (changed.status !== 200) return `change ${count} was answered with ${changed.status}`
    await changed.text(1 << 20)
    await sleep(realClock, 100)
  }
  const end = realClock.elapsed() + LIMIT_MS
  const isComplete = (): boolean => watches.every(({ counts }) => counts.length >= CHANGES)
  while (!isComplete() && realClock.elapsed() < end) await sleep(realClock, 50)
  const wanted = Array.from({ length: CHANGES }, (_, count) => count).join()
  const wrong = watches.filter(({ counts }) => counts.join() !== wanted).length
  const delays = watches.flatMap(({ delaysMs }) => delaysMs).toSorted((one, other) => one - other)
  const at = (share: number): number => delays[Math.floor(share * (delays.length - 1))] ?? Number.NaN
  say(`${delays.length} events, p50 ${at(0.5)} ms, p99 ${at(0.99)} ms after the change was sent`)
  return wrong === 0 ? undefined : `${wrong} of ${WATCHES} watches missed, repeated or reordered events`
}

const folder = await mkdtemp(join(tmpdir(), 'hyperkube-management-watches-'))
try {
  const problem = await run(folder)
  say(problem ?? `${WATCHES} watches saw all ${CHANGES} changes in order`)
  process.exitCode = problem === undefined ? 0 : 1
} finally {
  await rm(folder, { recursive: true, force: true })
}
