/**
 * Resolves a query from the cluster, a stub domain or the machine's upstream servers, with a cache. Cluster names are
 * answered synchronously.
 */
import type { Clock } from '#lib/clock.ts'
import type { Logger } from '#lib/log/log.ts'
import type { Random } from '#lib/random.ts'

import { AnswerCache } from './answer-cache.ts'
import type { Directory } from './directory.ts'
import type { DnsMeters } from './dns-meters.ts'
import { addressesIn, type CachedAnswer, forwardAnswer, type UpstreamQuery } from './forwarded-answer.ts'
import { Forwarder, keyOf, TooManyQuestions, type Transport, type Upstream } from './forwarder.ts'
import { isWithin, lookUp, type Names, type Outcome } from './lookup.ts'
import { type Answer, type ResourceRecord, sizeFor, type Soa, TCP_BYTES, writeAnswer, writeRefusal } from './message.ts'
import { CLASS_IN, FLAG, type Query, RCODE, rcodeOf, readQuery, TYPE, uint16 } from './wire.ts'

export interface ResolverOptions {
  readonly clock: Clock
  readonly random: Random
  readonly log: Logger
  readonly directory: Directory
  readonly meters: DnsMeters
  /** `cluster.local`. */
  readonly domain: string
  readonly ttl?: number
  /** False: the directory is incomplete, so negative answers are impossible. */
  readonly isSynced: () => boolean
  /** Servers for other names. Empty: none. */
  readonly upstreams: () => readonly Upstream[]
  /** Servers for single domains. */
  readonly stubDomains?: ReadonlyMap<string, readonly Upstream[]>
  /** Runs as a cache without cluster data. */
  readonly isCacheOnly?: boolean
}

/** The usual TTL of a Corefile. */
const TTL_SECONDS = 30
/** The maximum length of a CNAME chain. */
const MAX_CHAIN = 10

export type Reply = Buffer | undefined

export class Resolver {
  readonly #options: ResolverOptions
  readonly #names: Names
  readonly #cache: AnswerCache
  readonly #forwarder: Forwarder
  #rotations = 0
  #serial = { version: -1, value: 0 }

  constructor(options: ResolverOptions) {
    this.#options = options
    const { directory, domain, ttl = TTL_SECONDS, clock, random } = options
    this.#names = { directory, domain, ttl, rotation: (many) => this.#rotations++ % many }
    this.#cache = new AnswerCache(clock)
    this.#forwarder = new Forwarder({ clock, random })
    options.meters.follow({
      cached: () => this.#cache.size,
      underWay: () => this.#forwarder.inFlight,
      failures: () => this.#forwarder.failures,
    })
  }

  close(): void {
    this.#forwarder.close()
  }

  /** The response to a datagram; undefined: none. Synchronous for cluster names. */
  reply(bytes: Uint8Array, via: Transport): Reply | Promise<Reply> {
    const startedMs = this.#options.clock.elapsed()
    const query = readQuery(bytes)
    if ('refusal' in query) return query.refusal === undefined ? undefined : writeRefusal(query)
    const limit = via === 'tcp' ? TCP_BYTES : sizeFor(query)
    const tell = (reply: Buffer): Buffer => {
      const code = rcodeOf(uint16(reply, 2))
      this.#options.meters.answered(query, { code, via, seconds: (this.#options.clock.elapsed() - startedMs) / 1000 })
      return reply
    }
    const reply = this.#answer(query, via, limit)
    return Buffer.isBuffer(reply) ? tell(reply) : reply.then(tell)
  }

  #answer(query: Query, via: Transport, limit: number): Buffer | Promise<Buffer> {
    const say = (answer: Answer): Buffer => writeAnswer(query, answer, limit, this.#options.upstreams().length > 0)
    const fail = (rcode: number): Buffer => say({ rcode, authoritative: false })
    if (query.edns !== undefined && query.edns.version !== 0) return fail(RCODE.badVersion)
    if (query.class !== CLASS_IN) return fail(RCODE.refused)
    const outcome: Outcome = this.#options.isCacheOnly === true ? { is: 'elsewhere' } : lookUp(this.#names, query)
    if (outcome.is === 'elsewhere') return this.#passedOn(query, via, limit, fail)
    if (outcome.is === 'refused') return fail(RCODE.refused)
    if (outcome.is === 'alias') return this.#followed(query, outcome, via).then(say)
    return say(this.#ofCluster(query, outcome))
  }

  #ofCluster(query: Query, outcome: Exclude<Outcome, { is: 'elsewhere' | 'refused' | 'alias' }>): Answer {
    if (outcome.is === 'records') {
      const { answers, additional } = outcome
      return { rcode: RCODE.success, authoritative: true, answers, additional }
    }
    const { zone } = outcome
    const soa = this.#soaOf(zone)
    if (query.name === zone && query.type === TYPE.SOA)
      return { rcode: RCODE.success, authoritative: true, answers: [soa] }
    const isKnown = outcome.is === 'no data' || this.#options.isSynced()
    const missing = isKnown ? RCODE.nameError : RCODE.serverFailure
    const rcode = outcome.is === 'no data' ? RCODE.success : missing
    return { rcode, authoritative: true, authority: [soa] }
  }

  #soaOf(zone: string): ResourceRecord {
    const { clock, directory } = this.#options
    // The SOA serial increases with changes, for secondaries.
    if (this.#serial.version !== directory.version)
      this.#serial = { version: directory.version, value: Math.floor(clock.now() / 1000) }
    const { ttl } = this.#names
    const soa: Soa = {
      primary: `ns.dns.${zone}`,
      mailbox: `hostmaster.${zone}`,
      serial: this.#serial.value,
      refresh: 7200,
      retry: 1800,
      expire: 86_400,
      minimum: ttl,
    }
    return { name: zone, type: TYPE.SOA, ttl, data: { soa } }
  }

  /** The CNAME and the records of its target, in the cluster or not. */
  async #followed(query: Query, first: Extract<Outcome, { is: 'alias' }>, via: Transport): Promise<Answer> {
    const answers: ResourceRecord[] = [first.record]
    const seen = new Set([query.name])
    for (let target = first.target; answers.length <= MAX_CHAIN && !seen.has(target);) {
      seen.add(target)
      const next = lookUp(this.#names, { name: target, type: query.type })
      if (next.is === 'alias') {
        answers.push(next.record)
        target = next.target
        continue
      }
      if (next.is === 'records') answers.push(...next.answers)
      if (next.is === 'no data' || next.is === 'no name')
        return { rcode: RCODE.success, authoritative: true, answers, authority: [this.#soaOf(next.zone)] }
      const kept = next.is === 'elsewhere' ? await this.#ask(upstreamQueryOf(query, target), via) : undefined
      if (kept !== undefined && kept !== 'busy') {
        const truncated = (kept.message.flags & FLAG.truncated) !== 0
        answers.push(...addressesIn(kept.message))
        return { rcode: RCODE.success, authoritative: true, answers, truncated }
      }
      break
    }
    return { rcode: RCODE.success, authoritative: true, answers }
  }

  #passedOn(query: Query, via: Transport, limit: number, fail: (rcode: number) => Buffer): Buffer | Promise<Buffer> {
    if (query.type === TYPE.AXFR || query.type === TYPE.IXFR) return fail(RCODE.refused)
    const upstreamQuery = upstreamQueryOf(query, query.name)
    const cached = this.#cached(upstreamQuery)
    if (cached !== undefined) return forwardAnswer(cached.kept, query, cached.age, limit)
    return this.#ask(upstreamQuery, via).then((kept) => {
      if (kept === 'busy') return fail(RCODE.refused)
      return kept === undefined ? fail(RCODE.serverFailure) : forwardAnswer(kept, query, 0, limit)
    })
  }

  #cached(upstreamQuery: UpstreamQuery): { readonly kept: CachedAnswer; readonly age: number } | undefined {
    const found = this.#cache.find(keyOf(upstreamQuery))
    this.#options.meters.looked(found !== undefined)
    return found
  }

  async #ask(upstreamQuery: UpstreamQuery, via: Transport): Promise<CachedAnswer | 'busy' | undefined> {
    const key = keyOf(upstreamQuery)
    const found = this.#cache.find(key)
    if (found !== undefined) return found.kept
    const servers = this.#serversFor(upstreamQuery.name)
    if (servers.length === 0) return undefined
    try {
      const kept = await this.#forwarder.ask(upstreamQuery, servers, via)
      if (kept !== undefined) this.#cache.put(key, kept)
      return kept
    } catch (error) {
      if (error instanceof TooManyQuestions) return 'busy'
      this.#options.log.error(error, 'Failed to forward DNS query', { name: upstreamQuery.name })
      return undefined
    }
  }

  /** The servers of the longest matching stub domain, or the default ones. */
  #serversFor(name: string): readonly Upstream[] {
    let best: string | undefined
    for (const domain of this.#options.stubDomains?.keys() ?? [])
      if (isWithin(name, domain) && domain.length > (best?.length ?? -1)) best = domain
    return (best !== undefined && this.#options.stubDomains?.get(best)) || this.#options.upstreams()
  }
}

function upstreamQueryOf({ type, class: of, flags, edns }: Query, name: string): UpstreamQuery {
  const checkingDisabled = (flags & FLAG.checkingDisabled) !== 0
  return { name, type, class: of, dnssecOk: edns?.dnssecOk ?? false, checkingDisabled }
}
