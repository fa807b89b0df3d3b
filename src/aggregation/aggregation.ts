/**
 * The aggregation layer: APIServices delegate group versions to other API servers. It routes requests by group version,
 * checks the availability of the servers and proxies to them. Their discovery and OpenAPI are fetched in the background
 * and merged into this server's.
 */
import { Services } from '#apis/core/v1.ts'
import { EndpointSlices } from '#apis/discovery/v1.ts'
import type { Kind } from '#apis/kinds.ts'
import type { Aggregated } from '#apiserver/aggregated.ts'
import type { Network } from '#apiserver/connect/address-rule.ts'
import type { ServiceDirectory } from '#apiserver/connect/service-directory.ts'
import { SERVICE_NAME } from '#apiserver/connect/service-endpoint.ts'
import { documentAnswer } from '#apiserver/openapi/v3.ts'
import type { Entry } from '#apiserver/registry/entry.ts'
import { follow, type Following } from '#apiserver/registry/follow.ts'
import type { Registry } from '#apiserver/registry/registry.ts'
import type { Call } from '#component/requests/call.ts'

import { startAvailability } from './availability.ts'
import { startRemoteDiscovery } from './discovery.ts'
import { createFrontProxy, type FrontProxyCertificate } from './front-proxy.ts'
import { startRemoteOpenApi } from './openapi.ts'
import { passOn } from './proxy.ts'
import { followRoster, type Remote, type Roster } from './roster.ts'

export interface AggregationOptions {
  readonly directory: ServiceDirectory
  readonly network: Network
  /** The current client certificate for other servers. */
  readonly certificate: () => FrontProxyCertificate | undefined
  readonly requestTimeoutMs: number
  /** Receives internal errors. */
  readonly onError: (error: unknown) => void
  /** Receives errors of an APIService's server, by name; the request is retried. */
  readonly onSilence: (error: unknown, name: string) => void
}

export interface Aggregation extends Aggregated {
  /** Closes all connections to other servers; resolves when nothing is written any more. */
  close(): Promise<void>
}

/** Starts at once: the cache is loaded. */
export function startAggregation(registry: Registry, options: AggregationOptions): Aggregation {
  const { clock, isEnabled } = registry.services
  const { directory } = options
  const lookers: ((name: string) => void)[] = []
  const roster = followRoster(registry, (name) => lookers.forEach((look) => look(name)))
  const frontProxy = createFrontProxy({ ...options, clock })
  const background = { registry, clock, roster, directory, frontProxy }
  const availability = startAvailability({ ...background, onError: options.onError })
  const discovery = startRemoteDiscovery({ ...background, onError: options.onSilence })
  const openApi = startRemoteOpenApi({ ...background, onError: options.onSilence })
  lookers.push(availability.look, discovery.look, openApi.look)
  for (const { metadata } of roster.all()) lookers.forEach((look) => look(metadata.name ?? ''))
  const followings = followServices(registry, roster, availability.look)
  const passing = {
    clock,
    frontProxy,
    requestTimeoutMs: options.requestTimeoutMs,
    tellsUid: isEnabled('RemoteRequestHeaderUID'),
  }
  return {
    hooks: options.certificate() === undefined ? [] : ['aggregator-reload-proxy-client-cert'],
    answer(call) {
      const remote = remoteFor(call, roster)
      return remote && passOn(call, remote, passing)
    },
    announced: () => roster.announced(),
    versions: () => discovery.versions(),
    swaggers: () => openApi.swaggers(),
    openApiIndex: () => new Map([...openApi.index()].map(([name, { url }]) => [name, url])),
    openApi(call, name) {
      const { document, apiService = '' } = openApi.index().get(name) ?? {}
      if (document !== undefined) return Promise.resolve(documentAnswer(call, document, clock.now()))
      const remote = roster.remote(apiService)
      return remote && passOn(call, remote, passing)
    },
    async close() {
      followings.forEach((following) => following.close())
      roster.close()
      frontProxy.close()
      await Promise.all([availability.close(), discovery.close(), openApi.close()])
    },
  }
}

const LEGACY_NAME = 'v1.'

/** Requests without a group belong to the core group, which is delegated as a whole. */
function remoteFor({ info }: Call, roster: Roster): Remote | undefined {
  // Every request passes here, and most clusters have no aggregated server.
  if (!roster.hasRemotes) return undefined
  const { apiPrefix, group, version, path } = info
  if (apiPrefix === 'apis') return roster.remote(`${version}.${group}`)
  return /^\/api(?:\/|$)/.test(path) ? roster.remote(LEGACY_NAME) : undefined
}

/** The availability of a server depends on its Service and endpoints. */
function followServices(registry: Registry, roster: Roster, look: (name: string) => void): Following[] {
  const part = (kind: Kind, serviceOf: (entry: Entry) => string): Following[] => {
    const collection = registry.storeOf(kind)?.collection
    if (collection === undefined) return []
    const changed = (entry: Entry): void => {
      for (const { service, name } of roster.remotes()) {
        if (service.namespace === entry.namespace && service.name === serviceOf(entry)) look(name)
      }
    }
    return [follow<Entry>(collection, { set: changed, remove: changed })]
  }
  return [...part(Services, ({ name }) => name), ...part(EndpointSlices, ({ labels }) => labels[SERVICE_NAME] ?? '')]
}
