/** The name server of a cluster: what it knows, whom it asks, and the ports on which it is asked. */
import type { ApiClient } from '#client/api-client.ts'
import type { Clock } from '#lib/clock.ts'
import type { Logger } from '#lib/log.ts'
import { createRegistry, type Registry } from '#lib/metrics.ts'
import type { Random } from '#lib/random.ts'

import { Directory } from './directory.ts'
import { createDnsMeters } from './dns-meters.ts'
import { startFeed } from './feed.ts'
import type { Upstream } from './forwarder.ts'
import { type MetricsPort, serveMetrics } from './metrics-port.ts'
import { Resolver } from './resolver.ts'
import { listen, type Listening } from './server.ts'
import { watchUpstreams } from './upstreams.ts'

export interface DnsOptions {
  /** Lists and watches Namespaces, Services and EndpointSlices. */
  readonly client: ApiClient
  readonly random: Random
  readonly log: Logger
  readonly domain: string
  readonly ttl?: number
  /** Servers for everything else; none: those that the file names. */
  readonly upstreams?: readonly Upstream[]
  readonly resolvConf: string
  readonly readFile: (path: string) => Promise<string>
  /** Addresses at which this server is reached, by whatever way. */
  readonly own: readonly string[]
  readonly stubDomains?: ReadonlyMap<string, readonly Upstream[]>
}

export interface DnsServer {
  /** From then on it says of names that they are not there. */
  readonly synced: Promise<void>
  /** Rejects as `listen` of the system does. */
  listen(address: string, port: number): Promise<Listening>
  serveMetrics(address: string, port: number): Promise<MetricsPort>
}

/** All of it ends with `closing`. */
export async function startDns(options: DnsOptions, closing: AsyncDisposableStack): Promise<DnsServer> {
  const { client, random, log, domain, ttl } = options
  const { clock } = client
  const stop = new AbortController()
  closing.defer(() => stop.abort())
  const directory = new Directory()
  const own = new Set(options.own)
  const upstreams = await upstreamsOf(options, clock, own)
  const feed = startFeed({ client, random, log, directory, signal: stop.signal })
  const registry = createRegistry()
  const resolver = new Resolver({
    clock,
    random,
    log,
    directory,
    meters: createDnsMeters(registry),
    domain,
    ...(ttl !== undefined && { ttl }),
    isSynced: feed.isSynced,
    upstreams,
    ...(options.stubDomains && { stubDomains: options.stubDomains }),
  })
  const parts = { resolver, registry, clock, log, own, isReady: feed.isSynced }
  return { synced: feed.synced, ...doorsOf(parts, closing) }
}

export interface NameCacheOptions extends Pick<
  DnsOptions,
  'random' | 'log' | 'upstreams' | 'resolvConf' | 'readFile' | 'own'
> {
  readonly clock: Clock
  /** Who answers for the cluster's own names among others. */
  readonly stubDomains: ReadonlyMap<string, readonly Upstream[]>
}

/** A server that knows nothing itself and remembers what others said: one on every node spares the cluster's servers. */
export async function startNameCache(
  options: NameCacheOptions,
  closing: AsyncDisposableStack,
): Promise<Omit<DnsServer, 'synced'>> {
  const { clock, random, log, stubDomains } = options
  const own = new Set(options.own)
  const registry = createRegistry()
  const resolver = new Resolver({
    clock,
    random,
    log,
    stubDomains,
    directory: new Directory(),
    meters: createDnsMeters(registry),
    domain: '',
    isSynced: () => true,
    upstreams: await upstreamsOf(options, clock, own),
    asksOthersOnly: true,
  })
  closing.defer(() => resolver.close())
  return doorsOf({ resolver, registry, clock, log, own, isReady: () => true }, closing)
}

async function upstreamsOf(
  { upstreams = [], resolvConf: path, readFile }: Pick<DnsOptions, 'upstreams' | 'resolvConf' | 'readFile'>,
  clock: Clock,
  own: ReadonlySet<string>,
): Promise<() => readonly Upstream[]> {
  return upstreams.length > 0 ? () => upstreams : watchUpstreams({ clock, path, readFile, own })
}

interface Parts {
  readonly resolver: Resolver
  readonly registry: Registry
  readonly clock: Clock
  readonly log: Logger
  /** Those at which it listens are its own, too. */
  readonly own: Set<string>
  readonly isReady: () => boolean
}

function doorsOf(
  { resolver, registry, clock, log, own, isReady }: Parts,
  closing: AsyncDisposableStack,
): Omit<DnsServer, 'synced'> {
  return {
    async listen(address, port) {
      own.add(address)
      const listening = await listen({ address, port, resolver, clock, log })
      closing.defer(() => listening.close())
      return listening
    },
    async serveMetrics(address, port) {
      const served = await serveMetrics({ address, port, registry, isReady })
      closing.defer(() => served.close())
      return served
    },
  }
}
