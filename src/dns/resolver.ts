/**
 * Who answers a question: the cluster itself, the servers of a stub domain, or those of the machine, with what they said before.
 * Names of the cluster are answered without waiting.
 */
import type { Clock } from '#lib/clock.ts'
import type { Logger } from '#lib/log.ts'
import type { Random } from '#lib/random.ts'

import { AnswerCache } from './answer-cache.ts'
import type { Directory } from './directory.ts'
import type { DnsMeters } from './dns-meters.ts'
import { Forwarder, keyOf, TooManyQuestions, type Transport, type Upstream } from './forwarder.ts'
import { isWithin, lookUp, type Names, type Outcome } from './lookup.ts'
import { type Answer, type ResourceRecord, sizeFor, type Soa, TCP_BYTES, writeAnswer, writeRefusal } from './message.ts'
import { addressesIn, type Asking, type Kept, passOn } from './passed-on.ts'
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
  /** False: what the cluster has is not known yet, and so not what it lacks. */
  readonly isSynced: () => boolean
  /** Those for whatever is not of the cluster. None: there is nobody to ask. */
  readonly upstreams: () => readonly Upstream[]
  /** Others for the names of some domains. */
  readonly stubDomains?: ReadonlyMap<string, readonly Upstream[]>
  /** Whether it knows no names of its own, and remembers what others said. */
  readonly asksOthersOnly?: boolean
}

/** As clusters have it in their Corefile. */
const TTL_SECONDS = 30
/** Aliases of aliases. */
const MAX_CHAIN = 10

export type Reply = Buffer | undefined

export class Resolver {
  readonly #options: ResolverOptions
  readonly #names: Names
  readonly #cache: AnswerCache
  readonly #forwarder: Forwarder
  #turns = 0
  #serial = { version: -1, value: 0 }

  constructor(options: ResolverOptions) {
    this.#options = options
    const { directory, domain, ttl = TTL_SECONDS, clock, random } = options
    this.#names = { directory, domain, ttl, turn: (many) => this.#turns++ % many }
    this.#cache = new AnswerCache(clock)
    this.#forwarder = new Forwarder({ clock, random })
    options.meters.follow({
      cached: () => this.#cache.size,
      underWay: () => this.#forwarder.underWay,
      failures: () => this.#forwarder.failures,
    })
  }

  close(): void {
    this.#forwarder.close()
  }

  /** What to send to whoever sent `bytes`; undefined: nothing. Names of the cluster have no promise to wait for. */
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
    const outcome: Outcome = this.#options.asksOthersOnly === true ? { is: 'elsewhere' } : lookUp(this.#names, query)
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
    // Grows when something has changed, as secondaries want it.
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

  /** The alias, and what is to be had behind it, of the cluster or not. */
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
      const kept = next.is === 'elsewhere' ? await this.#ask(askingOf(query, target), via) : undefined
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
    const asking = askingOf(query, query.name)
    const cached = this.#cached(asking)
    if (cached !== undefined) return passOn(cached.kept, query, cached.age, limit)
    return this.#ask(asking, via).then((kept) => {
      if (kept === 'busy') return fail(RCODE.refused)
      return kept === undefined ? fail(RCODE.serverFailure) : passOn(kept, query, 0, limit)
    })
  }

  #cached(asking: Asking): { readonly kept: Kept; readonly age: number } | undefined {
    const found = this.#cache.find(keyOf(asking))
    this.#options.meters.looked(found !== undefined)
    return found
  }

  async #ask(asking: Asking, via: Transport): Promise<Kept | 'busy' | undefined> {
    const key = keyOf(asking)
    const found = this.#cache.find(key)
    if (found !== undefined) return found.kept
    const servers = this.#serversFor(asking.name)
    if (servers.length === 0) return undefined
    try {
      const kept = await this.#forwarder.ask(asking, servers, via)
      if (kept !== undefined) this.#cache.put(key, kept)
      return kept
    } catch (error) {
      if (error instanceof TooManyQuestions) return 'busy'
      this.#options.log.error(error, 'A question could not be passed on', { name: asking.name })
      return undefined
    }
  }

  /** Those of the longest stub domain that the name is in, or those for all. */
  #serversFor(name: string): readonly Upstream[] {
    let best: string | undefined
    for (const domain of this.#options.stubDomains?.keys() ?? [])
      if (isWithin(name, domain) && domain.length > (best?.length ?? -1)) best = domain
    return (best !== undefined && this.#options.stubDomains?.get(best)) || this.#options.upstreams()
  }
}

function askingOf({ type, class: of, flags, edns }: Query, name: string): Asking {
  const checkingDisabled = (flags & FLAG.checkingDisabled) !== 0
  return { name, type, class: of, dnssecOk: edns?.dnssecOk ?? false, checkingDisabled }
}
