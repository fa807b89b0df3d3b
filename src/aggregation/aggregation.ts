/**
 * The aggregation layer: APIServices name group versions that other servers answer for. Here their parts are put together:
 * the roster says who answers for what, availability who can, the proxy passes requests on, and what the others serve is
 * fetched in the background, so that discovery and OpenAPI show it as if it were served here.
 */
import { Services } from '#apis/core/v1.ts'
import { EndpointSlices } from '#apis/discovery/v1.ts'
import type { Kind } from '#apis/kinds.ts'
import type { Aggregated } from '#apiserver/aggregated.ts'
import { follow, type Following } from '#apiserver/authorizers/follow.ts'
import type { Call } from '#apiserver/call.ts'
import type { Network } from '#apiserver/connect/address-rule.ts'
import type { ServiceDirectory } from '#apiserver/connect/service-directory.ts'
import { SERVICE_NAME } from '#apiserver/connect/service-endpoint.ts'
import { documentAnswer } from '#apiserver/openapi/v3.ts'
import type { Entry } from '#apiserver/registry/entry.ts'
import type { Registry } from '#apiserver/registry/registry.ts'

import { startAvailability } from './availability.ts'
import { startRemoteDiscovery } from './discovery.ts'
import { createFrontProxy, type FrontProxyCertificate } from './front-proxy.ts'
import { startRemoteOpenApi } from './openapi.ts'
import { passOn } from './proxy.ts'
import { followRoster, type Remote, type Roster } from './roster.ts'

export interface AggregationOptions {
  readonly directory: ServiceDirectory
  readonly network: Network
  /** What other servers are shown, as it is now. */
  readonly certificate: () => FrontProxyCertificate | undefined
  readonly requestTimeoutMs: number
  /** What we could not do. */
  readonly onError: (error: unknown) => void
  /** What the server of an APIService, by name, did not answer as it should; it is asked again. */
  readonly onSilence: (error: unknown, name: string) => void
}

export interface Aggregation extends Aggregated {
  /** Ends all connections to other servers; resolves when nothing is written any more. */
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

/** Of requests without a group only those of the core group are anybody's, all of them together. */
function remoteFor({ info }: Call, roster: Roster): Remote | undefined {
  // Every request passes here, and most clusters have no other server.
  if (!roster.hasRemotes) return undefined
  const { apiPrefix, group, version, path } = info
  if (apiPrefix === 'apis') return roster.remote(`${version}.${group}`)
  return /^\/api(?:\/|$)/.test(path) ? roster.remote(LEGACY_NAME) : undefined
}

/** Whether a server can be used depends on its Service and the endpoints of that. */
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
