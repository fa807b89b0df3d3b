/**
 * One API server: its registry, its filters and its listener. Resources, authorization and admission are passed in;
 * src/control-plane builds them from settings.
 */
import type { Kind, ServedGroup } from '#apis/kinds.ts'
import type { Authenticate } from '#auth/access.ts'
import { NO_REQUEST, type RequestInfo } from '#auth/request-info.ts'
import type { User } from '#auth/user.ts'
import { createDebugPages, type DebugOptions } from '#component/pages/debug-pages.ts'
import { createHealth, type HealthCheck } from '#component/pages/health.ts'
import type { Answer, Call } from '#component/requests/call.ts'
import { createInflight, type Load } from '#component/requests/inflight.ts'
import type { MeterRequest } from '#component/requests/request-meter.ts'
import { createRequestServer } from '#component/requests/request-server.ts'
import type { RequestServerOptions, Route } from '#component/requests/server-options.ts'
import type { HttpClient } from '#lib/http/client.ts'
import type { Exchange } from '#lib/http/exchange.ts'
import type { Listener } from '#lib/http/listen.ts'
import { createLoopbackClient, LoopbackExchange } from '#lib/http/loopback.ts'
import type { HttpLimits } from '#lib/http/server-context.ts'
import { createHttpServer, type HttpServer } from '#lib/http/server.ts'
import type { ServerTls } from '#lib/http/tls.ts'
import { readProcess } from '#lib/metrics/process.ts'
import { createServerMeters, type ServerMeters } from '#model/metrics/families.ts'
import { createZPages } from '#model/zpages.ts'

import type { Aggregated, AnnouncedGroup } from './aggregated.ts'
import { healthChecks } from './diagnostics/health-checks.ts'
import { createMetricsPages } from './diagnostics/metrics-pages.ts'
import { createPathIndex, listPaths } from './diagnostics/path-index.ts'
import { type Connectors, createDispatch } from './dispatch.ts'
import { createDumps } from './fairness/dumps.ts'
import { createFairness, type Fairness } from './fairness/fairness.ts'
import { createRequestMetrics } from './metrics/requests.ts'
import type { OpenApiOptions } from './openapi/document.ts'
import { createOpenApiV2 } from './openapi/v2.ts'
import { createOpenApiV3 } from './openapi/v3.ts'
import type { Registry } from './registry/registry.ts'
import { Representation } from './registry/representation.ts'
import { BUILT_IN } from './registry/shapes.ts'
import { createDiscovery } from './routes/discovery.ts'

/** The dependencies of a server. */
export interface ApiServerParts extends Omit<RequestServerOptions, OwnPart> {
  /**
   * The registry with all served resources and all objects that must exist before the first request. Its cache is
   * loaded.
   */
  readonly registry: Registry
  readonly connectors: Connectors
  /** Aggregated servers; absent if there are none. */
  readonly aggregated?: Aggregated
  /** The content of /version. */
  readonly versionInfo: { readonly gitVersion: string; readonly goVersion?: string }
  /** The content of /flagz: flags as text, by name. */
  readonly flags?: ReadonlyMap<string, string>
  readonly debug?: DebugOptions
  /** The metrics of /metrics. */
  readonly metrics: ServerMeters
  readonly httpLimits?: Partial<HttpLimits>
  /** The number of seats of all priority levels together. If absent, `inflight` limits requests. */
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
  /** Handles an exchange from any transport. */
  readonly serve: (exchange: Exchange) => Promise<void>
  /** A client for this process. Its requests belong to this user and pass all filters. */
  clientAs(user: User): Pick<HttpClient, 'request'>
  /** Starts serving connections on all ports. Call it once. */
  accept(listeners: readonly Listener[], tls: ServerTls | undefined): void
  /** Sets the certificates of new connections. Throws and changes nothing if they are unusable. */
  reloadTls(tls: ServerTls): void
  /** Reports the server as not ready while it keeps serving, so that load balancers use another server. */
  announceStop(): void
  /** Stops accepting, ends watches and waits up to `graceMs` for running requests. */
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

/** Answers the reading requests that have passed the filters of another server. Undefined: there is no such path. */
export function createReader(
  parts: Pick<ApiServerParts, 'registry' | 'serverAddress' | 'versionInfo'>,
): (call: Call) => Promise<Answer> | Answer | undefined {
  const { registry } = parts
  const described = createDescriptions({ ...parts, encoder: statusEncoder(registry) })
  const dispatch = createDispatch(registry, {})
  return (call) => (call.info.isResource ? dispatch(call) : described(call))
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
  const { clock, random } = registry.services
  const encoder = statusEncoder(registry)
  const { inflight = createInflight({ maxReading: 0, maxMutating: 0 }) } = parts
  return createRequestServer({
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

function statusEncoder({ services: { memos } }: Registry): Representation {
  const status = { group: '', version: 'v1', kind: 'Status' }
  return new Representation({ kind: status as Kind, stored: status, shapes: BUILT_IN, memos })
}

/** Clients in this process need no authentication. */
function knowingOurselves(authenticate: Authenticate): Authenticate {
  return (exchange) => (exchange instanceof LoopbackExchange ? (exchange.identity as User) : authenticate(exchange))
}

/** The diagnostic pages. */
type Shown = Pick<ServeParts, 'checks' | 'fairness'>

/** All paths that are not resources. */
function createRoutes(parts: ApiServerParts, encoder: Representation, shown: Shown): Route {
  const { registry, aggregated, metrics } = parts
  const aggregations = metrics.family('aggregator_discovery_aggregation_count_total').labels()
  const served = (): readonly ServedGroup[] => registry.groups()
  const diagnostics = createDiagnostics(parts, served, shown)
  const onAggregated = (): void => aggregations.inc()
  const described = createDescriptions({ ...parts, encoder, aggregated, onAggregated })
  return (call) => diagnostics(call) ?? described(call) ?? parts.routes(call)
}

interface DescriptionParts extends Pick<ApiServerParts, 'registry' | 'serverAddress' | 'versionInfo'> {
  readonly encoder: Representation
  readonly aggregated?: Aggregated | undefined
  readonly onAggregated?: () => void
}

/** Discovery, OpenAPI and the version. */
function createDescriptions(parts: DescriptionParts): Route {
  const { registry, serverAddress, aggregated, encoder, onAggregated = () => undefined } = parts
  const { clock } = registry.services
  const served = (): readonly ServedGroup[] => registry.groups()
  const discovery = createDiscovery({
    groups: served,
    schemaFor: BUILT_IN.schemaFor,
    encoder,
    hasStorageVersionHashes: registry.services.isEnabled('StorageVersionHash'),
    serverAddress,
    aggregated,
    onAggregated,
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
  return (call) => discovery(call) ?? openApi(call) ?? openApiV2(call) ?? versionRoute(parts, call)
}

/** Pages for operators: health, metrics, version and the index of paths. */
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

function versionRoute({ versionInfo }: Pick<ApiServerParts, 'versionInfo'>, call: Call): Answer | undefined {
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
