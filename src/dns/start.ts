/** Assembles the cluster's DNS server: directory, forwarder and ports. */
import type { ApiClient } from '#client/api-client.ts'
import type { Clock } from '#lib/clock.ts'
import type { Logger } from '#lib/log/log.ts'
import { createRegistry, type Registry } from '#lib/metrics/metrics.ts'
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
  /** Needs to list and watch Namespaces, Services and EndpointSlices. */
  readonly client: ApiClient
  readonly random: Random
  readonly log: Logger
  readonly domain: string
  readonly ttl?: number
  /** Servers for other names. Default: those of resolv.conf. */
  readonly upstreams?: readonly Upstream[]
  readonly resolvConf: string
  readonly readFile: (path: string) => Promise<string>
  /** Addresses of this server, which are never used as upstreams. */
  readonly own: readonly string[]
  readonly stubDomains?: ReadonlyMap<string, readonly Upstream[]>
}

export interface DnsServer {
  /** After this, unknown cluster names get NXDOMAIN. */
  readonly synced: Promise<void>
  /** Rejects with the system's error. */
  listen(address: string, port: number): Promise<Listening>
  serveMetrics(address: string, port: number): Promise<MetricsPort>
}

/** Stops with `closing`. */
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
  return { synced: feed.synced, ...portsOf(parts, closing) }
}

export interface NameCacheOptions extends Pick<
  DnsOptions,
  'random' | 'log' | 'upstreams' | 'resolvConf' | 'readFile' | 'own'
> {
  readonly clock: Clock
  /** The servers for cluster names, among others. */
  readonly stubDomains: ReadonlyMap<string, readonly Upstream[]>
}

/** Starts a caching server without cluster data, one on each node, to relieve the cluster's servers. */
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
    isCacheOnly: true,
  })
  closing.defer(() => resolver.close())
  return portsOf({ resolver, registry, clock, log, own, isReady: () => true }, closing)
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
  /** Includes the addresses that it listens on. */
  readonly own: Set<string>
  readonly isReady: () => boolean
}

function portsOf(
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
