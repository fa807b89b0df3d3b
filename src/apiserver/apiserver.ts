/**
 * One API server: its registry, the filters before it and the listener. What it serves, who may, and what is let in are
 * handed in; src/control-plane makes them from settings.
 */
import type { Kind, ServedGroup } from '#apis/kinds.ts'
import type { HttpClient } from '#lib/http/client.ts'
import type { Exchange } from '#lib/http/exchange.ts'
import type { Listener } from '#lib/http/listen.ts'
import { createLoopbackClient, LoopbackExchange } from '#lib/http/loopback.ts'
import type { HttpLimits } from '#lib/http/server-context.ts'
import { createHttpServer, type HttpServer } from '#lib/http/server.ts'
import type { ServerTls } from '#lib/http/tls.ts'
import { readProcess } from '#lib/metrics-process.ts'
import { createServerMeters, type ServerMeters } from '#model/metrics/families.ts'
import { createZPages } from '#model/zpages.ts'

import type { Aggregated, AnnouncedGroup } from './aggregated.ts'
import { Representation } from './answers/representation.ts'
import type { Answer, Call } from './call.ts'
import { createDebugPages, type DebugOptions } from './diagnostics/debug-pages.ts'
import { healthChecks } from './diagnostics/health-checks.ts'
import { createHealth, type HealthCheck } from './diagnostics/health.ts'
import { createMetricsPages } from './diagnostics/metrics-pages.ts'
import { createPathIndex, listPaths } from './diagnostics/path-index.ts'
import { type Connectors, createDispatch } from './dispatch.ts'
import { createDumps } from './fairness/dumps.ts'
import { createFairness, type Fairness } from './fairness/fairness.ts'
import type { Authenticate } from './filters/access.ts'
import { createInflight, type Load } from './filters/inflight.ts'
import { createRequestMetrics, type MeterRequest } from './metrics/requests.ts'
import type { OpenApiOptions } from './openapi/document.ts'
import { createOpenApiV2 } from './openapi/v2.ts'
import { createOpenApiV3 } from './openapi/v3.ts'
import type { Registry } from './registry/registry.ts'
import type { User } from './registry/resource.ts'
import { BUILT_IN } from './registry/shapes.ts'
import { NO_REQUEST, type RequestInfo } from './request-info.ts'
import { createDiscovery } from './routes/discovery.ts'
import { type ApiServerOptions, createApiServer, type Route } from './server.ts'

/** What a server is made of besides what it makes of its registry. */
export interface ApiServerParts extends Omit<ApiServerOptions, OwnPart> {
  /** With everything in it that is served and that must be there before the first request; its cache is loaded. */
  readonly registry: Registry
  readonly connectors: Connectors
  /** Servers behind this one; absent: none. */
  readonly aggregated?: Aggregated
  /** What /version shows. */
  readonly versionInfo: { readonly gitVersion: string; readonly goVersion?: string }
  /** What /flagz shows: flags as text, by name. */
  readonly flags?: ReadonlyMap<string, string>
  readonly debug?: DebugOptions
  /** What /metrics shows; everything that is done is counted in it. */
  readonly metrics: ServerMeters
  readonly httpLimits?: Partial<HttpLimits>
  /** How many seats the requests of all priority levels have; absent: `inflight` limits them. */
  readonly seats?: number
  /** Host and port under which the cluster reaches this server, for discovery. */
  readonly serverAddress: string
}

type OwnPart =
  | 'clock'
  | 'random'
  | 'dispatch'
  | 'knowsGroup'
  | 'encoder'
  | 'delegate'
  | 'fairness'
  | 'meterRequest'
  | 'draining'

export interface ApiServer {
  readonly registry: Registry
  /** Answers an exchange, whichever way it came. */
  readonly serve: (exchange: Exchange) => Promise<void>
  /** For those in this process: a client whose requests are this user's, and pass what all requests pass. */
  clientAs(user: User): Pick<HttpClient, 'request'>
  /** Answers who connects to any of the ports. Once. */
  accept(listeners: readonly Listener[], tls: ServerTls | undefined): void
  /** New connections get these certificates. Throws, changing nothing, if they are unusable. */
  reloadTls(tls: ServerTls): void
  /** From now on the server says that it is not ready, and goes on serving: those who send requests go elsewhere. */
  announceStop(): void
  /** Stops accepting, ends watches, lets running requests finish for `graceMs`. */
  stop(graceMs: number): Promise<void>
}

export function createServer(parts: ApiServerParts): ApiServer {
  const { registry, httpLimits } = parts
  const { clock } = registry.services
  const handshakeErrors = parts.metrics.family('apiserver_tls_handshake_errors_total').labels()
  let http: HttpServer | undefined
  const readiness = { stopping: false }
  const draining = new AbortController()
  const { isEnabled } = registry.services
  const { metrics: meters, seats } = parts
  const fairness = seats === undefined ? undefined : createFairness({ registry, clock, meters, isEnabled, seats })
  const serve = createServe(parts, {
    checks: healthChecks(registry, readiness, parts.aggregated?.hooks),
    draining: draining.signal,
    fairness,
  })
  return {
    registry,
    serve,
    clientAs: (identity) => createLoopbackClient({ serve, clock, identity }),
    accept(listeners, tls) {
      http = createHttpServer({
        serve,
        clock,
        upgrades: ['websocket', 'spdy/3.1'],
        onError: (error) => parts.onError?.(error, NO_REQUEST),
        onHandshakeError: () => handshakeErrors.inc(),
        ...(tls === undefined ? {} : { tls }),
        ...(httpLimits === undefined ? {} : { limits: httpLimits }),
      })
      for (const listener of listeners) http.accept(listener)
    },
    reloadTls: (tls) => http?.reloadTls(tls),
    announceStop() {
      readiness.stopping = true
    },
    async stop(graceMs) {
      readiness.stopping = true
      draining.abort()
      await http?.drain(graceMs)
      fairness?.close()
    },
  }
}

interface ServeParts {
  readonly checks: readonly HealthCheck[]
  readonly draining: AbortSignal
  readonly fairness: Fairness | undefined
}

function createServe(
  parts: ApiServerParts,
  { checks, draining, fairness }: ServeParts,
): (exchange: Exchange) => Promise<void> {
  const { registry, connectors } = parts
  const { clock, random, memos } = registry.services
  const status = { group: '', version: 'v1', kind: 'Status' }
  const encoder = new Representation({ kind: status as Kind, stored: status, shapes: BUILT_IN, memos })
  const { inflight = createInflight({ maxReading: 0, maxMutating: 0 }) } = parts
  return createApiServer({
    ...parts,
    authenticate: knowingOurselves(parts.authenticate),
    clock,
    random,
    inflight,
    draining,
    ...(fairness !== undefined && { fairness }),
    meterRequest: metering(parts, fairness ?? inflight),
    ...(parts.aggregated !== undefined && { delegate: parts.aggregated.answer }),
    dispatch: createDispatch(registry, connectors),
    knowsGroup: (group) => registry.hasGroup(group),
    routes: createRoutes(parts, encoder, { checks, fairness }),
    encoder,
  })
}

/** Who is in this process need not prove who they are. */
function knowingOurselves(authenticate: Authenticate): Authenticate {
  return (exchange) => (exchange instanceof LoopbackExchange ? (exchange.identity as User) : authenticate(exchange))
}

/** What of the inside of the server is shown. */
type Shown = Pick<ServeParts, 'checks' | 'fairness'>

/** Everything that is no resource. */
function createRoutes(parts: ApiServerParts, encoder: Representation, shown: Shown): Route {
  const { registry, serverAddress, aggregated, metrics } = parts
  const { clock } = registry.services
  const aggregations = metrics.family('aggregator_discovery_aggregation_count_total').labels()
  const served = (): readonly ServedGroup[] => registry.groups()
  const discovery = createDiscovery({
    groups: served,
    schemaFor: BUILT_IN.schemaFor,
    encoder,
    hasStorageVersionHashes: registry.services.isEnabled('StorageVersionHash'),
    serverAddress,
    aggregated,
    onAggregated: () => aggregations.inc(),
  })
  const described: OpenApiOptions = {
    groups: served,
    aggregated,
    schemaFor: (gvk) => registry.schemaFor(gvk),
    version: minorOf(parts.versionInfo.gitVersion),
    customOf: ({ group, version, plural }) => registry.find({ group, version, resource: plural })?.resource.custom,
    deleteAnswersObject: ({ group, version, plural }) =>
      registry.find({ group, version, resource: plural })?.resource.deleteAnswersObject === true,
  }
  const openApi = createOpenApiV3(described, () => clock.now())
  const openApiV2 = createOpenApiV2(described)
  const diagnostics = createDiagnostics(parts, served, shown)
  return (call) =>
    diagnostics(call) ??
    discovery(call) ??
    openApi(call) ??
    openApiV2(call) ??
    versionRoute(parts, call) ??
    parts.routes(call)
}

/** For those who look after the server: health, metrics, what it is and what there is. */
function createDiagnostics(
  { registry, aggregated, versionInfo, flags = new Map(), metrics: meters, debug }: ApiServerParts,
  served: () => readonly ServedGroup[],
  { checks, fairness }: Shown,
): Route {
  const { clock, random, isEnabled, backend } = registry.services
  const slis = createServerMeters()
  const groups = (): readonly AnnouncedGroup[] => [...served(), ...(aggregated?.announced() ?? [])]
  const paths = (): readonly string[] => listPaths(groups(), checks, isEnabled)
  const { gitVersion, goVersion = '' } = versionInfo
  const version = { gitVersion, goVersion, emulated: minorOf(gitVersion) }
  const startedAtMs = readProcess(clock).startTimeSeconds() * 1000
  const health = createHealth(checks, slis)
  const index = createPathIndex(paths)
  const metrics = createMetricsPages({ meters, slis, backend })
  const zpages = createZPages({ clock, random, isEnabled, startedAtMs, version, paths, flags })
  const debugging = createDebugPages(debug ?? { isProfiled: true })
  const dumps = fairness && createDumps({ clock, levels: () => fairness.levels() })
  const versioned = (call: Call): Answer | undefined => zpages(call.info.path, call.header('accept'))
  return (call) => health(call) ?? index(call) ?? metrics(call) ?? versioned(call) ?? debugging(call) ?? dumps?.(call)
}

/** `v1.36.4` as `1.36`. */
function minorOf(gitVersion: string): string {
  return gitVersion.replace(/^v(\d+\.\d+).*$/, '$1')
}

function versionRoute({ versionInfo }: ApiServerParts, call: Call): Answer | undefined {
  if (call.info.path !== '/version' && call.info.path !== '/version/') return undefined
  return { status: 200, contentType: 'application/json', body: JSON.stringify(versionInfo, undefined, 2) }
}

function metering({ metrics: meters, registry }: ApiServerParts, load: Load): MeterRequest {
  const { clock } = registry.services
  const isServed = ({ group, version, resource, subresource }: RequestInfo): boolean => {
    const found = registry.find({ group, version, resource })
    if (found === undefined) {
      const named = { group, version, resource }
      return registry.findReview(named) !== undefined || registry.findVirtual(named) !== undefined
    }
    const { subresources } = found.representation.kind
    return subresource === '' || subresources.some(({ name }) => name === subresource)
  }
  return createRequestMetrics({ meters, clock, load, isServed })
}
