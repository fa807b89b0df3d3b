/** Sends requests of many users at a fixed rate, keeps a watch open for each, and counts the responses. */
import { setTimeout as sleep } from 'node:timers/promises'

import { realClock } from '#lib/clock.ts'
import { createHttpClient, type HttpClient } from '#lib/http/client.ts'

export interface LoadUser {
  readonly token: string
  /** The clusters of the user, by number. */
  readonly clusters: readonly number[]
}

export interface TrafficPlan {
  readonly url: string
  readonly ca: string
  readonly users: readonly LoadUser[]
  /** The ids by number. */
  readonly clusters: readonly string[]
  readonly perSecond: number
  /** Whether the cluster may be away now. */
  readonly isAway: (cluster: number) => boolean
  /** Whether the server may be away now. */
  readonly isServerAway: () => boolean
}

const CONNECTIONS = 10
const MAX_OPEN = 400
const MAX_BYTES = 1 << 20
const TICK_MS = 10
const PATHS = ['/version', '/version', '/api/v1/namespaces/kube-system', '/api/v1/nodes', '/api/v1/nodes?limit=500']

export class Traffic {
  readonly #plan: TrafficPlan
  readonly #clients: readonly HttpClient[]
  readonly #stop = new AbortController()
  readonly #latencies: number[] = []
  readonly errors: Map<string, number> = new Map<string, number>()
  answers = 0
  unavailable = 0
  skipped = 0
  watchEvents = 0
  #open = 0

  constructor(plan: TrafficPlan) {
    this.#plan = plan
    this.#clients = Array.from({ length: CONNECTIONS }, () =>
      createHttpClient({ clock: realClock, tls: { ca: plan.ca } }),
    )
  }

  async run(seconds: number): Promise<void> {
    const watches = this.#plan.users.map((user, at) => this.#watch(user, at))
    const start = performance.now()
    let sent = 0
    for (let now = 0; now < seconds * 1000; now = performance.now() - start) {
      for (const due = Math.floor((now / 1000) * this.#plan.perSecond); sent < due; sent++) {
        if (this.#open < MAX_OPEN) void this.#send(sent)
        else this.skipped++
      }
      await sleep(TICK_MS)
    }
    this.#stop.abort()
    await Promise.all(watches)
    for (let waited = 0; this.#open > 0 && waited < 500; waited++) await sleep(TICK_MS)
    for (const client of this.#clients) client.close()
  }

  percentile(share: number): number {
    return this.#latencies.toSorted((a, b) => a - b)[Math.floor(this.#latencies.length * share)] ?? 0
  }

  async #send(index: number): Promise<void> {
    const { users, clusters } = this.#plan
    const at = index % users.length
    const user = users[at] as LoadUser
    const turn = Math.floor(index / users.length)
    const cluster = user.clusters[turn % user.clusters.length] ?? 0
    const own = turn % 10 === 0 ? ['/v3/me', '/v3/clusters'][at % 2] : undefined
    const path = own ?? `/k8s/clusters/${clusters[cluster]}${PATHS[turn % PATHS.length]}`
    this.#open++
    const began = performance.now()
    // An error may arrive just after the end of an outage.
    const wasAway = this.#isAway(own === undefined ? cluster : undefined)
    try {
      const status = await this.#ask(at, path)
      this.answers++
      this.#latencies.push(performance.now() - began)
      if (status === 503 && (wasAway || this.#isAway(cluster))) this.unavailable++
      else if (status >= 300) this.#fail(`${status} ${own ?? 'cluster'}`)
    } catch (error) {
      if (!this.#plan.isServerAway()) this.#fail(`${own ?? 'cluster'}: ${(error as Error).message}`.slice(0, 120))
    } finally {
      this.#open--
    }
  }

  #isAway(cluster: number | undefined): boolean {
    return this.#plan.isServerAway() || (cluster !== undefined && this.#plan.isAway(cluster))
  }

  async #ask(at: number, path: string): Promise<number> {
    const authorization = `Bearer ${this.#plan.users[at]?.token}`
    const answer = await this.#client(at).request({ url: this.#plan.url, path, headers: { authorization } })
    await answer.text(MAX_BYTES)
    return answer.status
  }

  #client(at: number): HttpClient {
    return this.#clients[at % CONNECTIONS] as HttpClient
  }

  #fail(what: string): void {
    this.errors.set(what, (this.errors.get(what) ?? 0) + 1)
  }

  async #follow(body: AsyncIterable<Buffer>): Promise<void> {
    for await (const _piece of body) this.watchEvents++
  }

  /** Opens the watch again when it ends. */
  async #watch(user: LoadUser, at: number): Promise<void> {
    const { signal } = this.#stop
    const path = `/k8s/clusters/${this.#plan.clusters[user.clusters[0] ?? 0]}/api/v1/nodes?watch=true`
    const headers = { authorization: `Bearer ${user.token}` }
    while (!signal.aborted) {
      try {
        const { status, body } = await this.#client(at).request({ url: this.#plan.url, path, headers, signal })
        if (status === 200) await this.#follow(body)
      } catch {
        // The cluster or the server is away.
      }
      await sleep(500)
    }
  }
}
