/**
 * A well-behaved client during attacks: it reads, lists, creates, renews a lease and reconnects at a steady rate. It
 * records the duration and result of each request.
 */
import { performance } from 'node:perf_hooks'

import { pause } from '../../pause.ts'
import { credentials, type Target } from '../program.ts'
import { openConnection, RawClient, type RawRequest } from '../raw-http.ts'

export const OPERATIONS = ['get', 'list', 'create', 'renew', 'connect'] as const
export type Operation = (typeof OPERATIONS)[number]

export interface Latency {
  readonly count: number
  readonly p50Ms: number
  readonly p99Ms: number
  readonly maxMs: number
}

const MAPS = '/api/v1/namespaces/witness/configmaps'
const LEASES = '/apis/coordination.k8s.io/v1/namespaces/witness/leases'
const LIST_SIZE = 100
/** Between two of a kind. */
const EVERY_MS = 25

export class Witness {
  readonly #target: Target
  readonly #stop = new AbortController()
  #tookMs = new Map<Operation, number[]>()
  #running: Promise<unknown> = Promise.resolve()
  #created = 0
  /** Unexpected responses. */
  readonly failures: string[] = []

  constructor(target: Target) {
    this.#target = target
  }

  async start(): Promise<void> {
    const client = this.#client()
    await this.#must(client, { method: 'POST', path: '/api/v1/namespaces', body: '{"metadata":{"name":"witness"}}' })
    for (let n = 0; n < LIST_SIZE; n++) {
      const body = JSON.stringify({ metadata: { name: `m-${n}` }, data: { text: 'x'.repeat(300) } })
      await this.#must(client, { method: 'POST', path: MAPS, body })
    }
    await this.#must(client, { method: 'POST', path: LEASES, body: '{"metadata":{"name":"holder"},"spec":{}}' })
    client.close()
    this.#running = Promise.all([
      this.#repeat('get', () => ({ path: `${MAPS}/m-7` })),
      this.#repeat('list', () => ({ path: `${MAPS}?limit=${LIST_SIZE}` })),
      this.#repeat('create', () => {
        const name = `c-${this.#created++}`
        return { method: 'POST', path: MAPS, body: JSON.stringify({ metadata: { name }, data: { a: 'b' } }) }
      }),
      this.#repeat('renew', () => {
        const body = JSON.stringify({
          spec: { holderIdentity: 'w', renewTime: new Date().toISOString().replace('Z', '000Z') },
        })
        return {
          method: 'PATCH',
          path: `${LEASES}/holder`,
          body,
          headers: { 'content-type': 'application/merge-patch+json' },
        }
      }),
      this.#connectAgain(),
    ])
  }

  /** Returns the durations since the previous call. */
  take(): Readonly<Record<Operation, Latency>> {
    const taken = this.#tookMs
    this.#tookMs = new Map()
    const entries = OPERATIONS.map((operation) => [operation, latencyOf(taken.get(operation) ?? [])] as const)
    return Object.fromEntries(entries) as Record<Operation, Latency>
  }

  async stop(): Promise<void> {
    this.#stop.abort()
    await this.#running
  }

  #client(): RawClient {
    return new RawClient(this.#target, credentials('root'))
  }

  async #must(client: RawClient, request: RawRequest): Promise<void> {
    const { status, body } = await client.send(request)
    if (status !== 201) throw new Error(`${request.path}: ${status} ${body.toString().slice(0, 300)}`)
  }

  async #repeat(operation: Operation, next: () => RawRequest): Promise<void> {
    const client = this.#client()
    while (!this.#stop.signal.aborted) {
      await Promise.all([this.#measure(operation, () => client.send(next())), pause(EVERY_MS)])
    }
    client.close()
  }

  async #connectAgain(): Promise<void> {
    while (!this.#stop.signal.aborted) {
      const once = async (): Promise<{ readonly status: number }> => {
        const connection = await openConnection(this.#target)
        const answer = await connection.send({ path: '/version' })
        connection.close()
        return answer
      }
      await Promise.all([this.#measure('connect', once), pause(4 * EVERY_MS)])
    }
  }

  async #measure(operation: Operation, work: () => Promise<{ readonly status: number }>): Promise<void> {
    const begun = performance.now()
    try {
      const { status } = await work()
      if (status >= 300) this.failures.push(`${operation}: ${status}`)
    } catch (error) {
      if (!this.#stop.signal.aborted) this.failures.push(`${operation}: ${String(error)}`)
    }
    const took = this.#tookMs.get(operation) ?? []
    took.push(performance.now() - begun)
    this.#tookMs.set(operation, took)
  }
}

function latencyOf(tookMs: number[]): Latency {
  const sorted = tookMs.toSorted((a, b) => a - b)
  const at = (share: number): number => sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))] ?? 0
  return { count: sorted.length, p50Ms: at(0.5), p99Ms: at(0.99), maxMs: sorted.at(-1) ?? 0 }
}
