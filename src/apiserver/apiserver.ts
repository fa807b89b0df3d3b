/**
 * One API server put together: backend, cache, registry, filters and listener, started in order and stopped in reverse.
 * What it serves, who may, and what is let in are handed in, so that tests, the program and a whole cluster in one
 * process build the same server from the same parts.
 */
import { Bindings, Pods } from '#apis/core/v1.ts'
import type { Kind, ServedGroup } from '#apis/kinds.ts'
import { groups } from '#apis/kinds.ts'
import { schemaFor } from '#apis/schemas.ts'
import type { Clock } from '#lib/clock.ts'
import type { Exchange } from '#lib/http/exchange.ts'
import type { BoundAddress, ListenAddress } from '#lib/http/listen.ts'
import type { HttpLimits } from '#lib/http/server-context.ts'
import { createHttpServer, type HttpServer } from '#lib/http/server.ts'
import type { ServerTls } from '#lib/http/tls.ts'
import { METRICS_CONTENT_TYPE } from '#lib/metrics.ts'
import type { Random } from '#lib/random.ts'
import { type GroupVersionKind, isStable } from '#meta/kind.ts'
import type { KubeObject } from '#meta/object.ts'
import { createServerMeters, type ServerMeters } from '#model/metrics/families.ts'
import type { Backend } from '#storage/backend.ts'
import type { AtRest } from '#storage/encryption/at-rest.ts'
import { WatchCache } from '#storage/watch-cache/watch-cache.ts'

import type { Answer, Call } from './call.ts'
import { createDiscovery } from './discovery.ts'
import { type Connectors, createDispatch } from './dispatch.ts'
import type { Authenticate, Authorize } from './filters.ts'
import { type FlowClasses, followFlowClasses } from './flow-classes.ts'
import { createHealth, type HealthCheck } from './health.ts'
import type { Impersonate } from './impersonation.ts'
import { createInflight, type Inflight } from './inflight.ts'
import { createFlowMetrics } from './metrics/flows.ts'
import { registerObjects } from './metrics/objects.ts'
import { createRequestMetrics } from './metrics/requests.ts'
import type { OpenApiOptions } from './openapi/document.ts'
import { createOpenApiV2 } from './openapi/v2.ts'
import { createOpenApiV3 } from './openapi/v3.ts'
import { createPathIndex } from './path-index.ts'
import type { Admission } from './registry/admission.ts'
import { Registry } from './registry/registry.ts'
import type { Resource, Review } from './registry/resource.ts'
import type { VirtualResource } from './registry/virtual.ts'
import { Representation } from './representation.ts'
import { NO_REQUEST, type RequestInfo } from './request-info.ts'
import { type ApiServerOptions, createApiServer, type FilterOptions, type Route } from './server.ts'

export interface ApiServerParts {
  /** Owned by the caller: closed by whoever opened it. */
  readonly backend: Backend
  readonly clock: Clock
  readonly random: Random
  readonly resources: readonly Resource[]
  readonly reviews: readonly Review[]
  readonly virtuals?: readonly VirtualResource[]
  readonly connectors: Connectors
  readonly admission: Admission
  readonly atRest: AtRest
  readonly convert: (object: KubeObject, to: GroupVersionKind) => KubeObject
  /** Made when the registry is there, because most of them read objects. */
  readonly authenticate: (registry: Registry) => Authenticate
  readonly authorize: (registry: Registry) => Authorize
  readonly impersonate?: Impersonate
  /** `--runtime-config` and feature gates: whether a kind of a served version is on. */
  readonly isServed: (kind: Kind) => boolean
  readonly isEnabled: (gate: string) => boolean
  readonly allowPrivileged: boolean
  /**
   * What must be there before the server is ready: namespaces, roles, its own service. What it starts that goes on is put
   * on `closing`, and ends with the server, before its cache does.
   */
  readonly bootstrap: (registry: Registry, closing: AsyncDisposableStack) => Promise<void>
  /** What /version shows. */
  readonly versionInfo: { readonly gitVersion: string }
  /** Further paths that are no resources. */
  readonly routes?: Route
  readonly onError?: (error: unknown, info: RequestInfo) => void
  readonly filters?: FilterOptions
  /** What /metrics shows; everything that is done is counted in it. Default: a registry of its own. */
  readonly metrics?: ServerMeters
  readonly httpLimits?: Partial<HttpLimits>
  /** Host and port under which the cluster reaches this server, for discovery. */
  readonly serverAddress?: () => string
  /** `--min-request-timeout`: how long a watch lasts that does not say, and up to twice as long. */
  readonly minWatchMs?: number
}

export interface ApiServer {
  readonly registry: Registry
  readonly cache: WatchCache
  /** Answers an exchange; what the listener calls, and what an in-process transport may call. */
  readonly serve: (exchange: Exchange) => Promise<void>
  listen(address: ListenAddress, tls: ServerTls | undefined): Promise<BoundAddress>
  /** New connections get these certificates. Throws, changing nothing, if they are unusable. */
  reloadTls(tls: ServerTls): void
  /** From now on the server says that it is not ready, and goes on serving: those who send requests go elsewhere. */
  announceStop(): void
  /** Stops accepting, ends watches, lets running requests finish for `graceMs`, closes the cache. */
  stop(graceMs: number): Promise<void>
}

export async function startApiServer(given: ApiServerParts): Promise<ApiServer> {
  const parts = { ...given, metrics: given.metrics ?? createServerMeters() }
  const { backend, clock } = parts
  const cache = new WatchCache({ backend, clock, prefix: '/registry/' })
  const registry = new Registry({ ...parts, cache, schemaFor })
  await register(parts, registry)
  registerObjects(parts.metrics, registry)
  await cache.start()
  let listener: HttpServer | undefined
  const readiness = { bootstrapped: false, stopping: false }
  const draining = new AbortController()
  const flows = followFlowClasses(registry)
  const serve = createServe(parts, registry, {
    checks: healthChecks(parts, registry, readiness),
    draining: draining.signal,
    flows,
  })
  const closing = new AsyncDisposableStack()
  closing.defer(() => cache.close())
  closing.defer(() => registry.services.yaml.close())
  closing.defer(() => flows.close())
  await bootstrap(parts, registry, closing)
  readiness.bootstrapped = true
  return {
    registry,
    cache,
    serve,
    async listen(address, tls) {
      listener = createListener(parts, serve, tls)
      return listener.listen(address)
    },
    reloadTls: (tls) => listener?.reloadTls(tls),
    announceStop() {
      readiness.stopping = true
    },
    async stop(graceMs) {
      readiness.stopping = true
      draining.abort()
      await listener?.drain(graceMs)
      await closing.disposeAsync()
    },
  }
}

function createListener(
  { clock, httpLimits, onError }: ApiServerParts,
  serve: (exchange: Exchange) => Promise<void>,
  tls: ServerTls | undefined,
): HttpServer {
  return createHttpServer({
    serve,
    clock,
    upgrades: ['websocket', 'spdy/3.1'],
    onError: (error) => onError?.(error, NO_REQUEST),
    ...(tls === undefined ? {} : { tls }),
    ...(httpLimits === undefined ? {} : { limits: httpLimits }),
  })
}

/** Leaves nothing running when it fails. */
async function bootstrap(parts: ApiServerParts, registry: Registry, closing: AsyncDisposableStack): Promise<void> {
  try {
    await parts.bootstrap(registry, closing)
  } catch (error) {
    await closing.disposeAsync()
    throw error
  }
}

type MeteredParts = ApiServerParts & { readonly metrics: ServerMeters }

interface ServeParts {
  readonly checks: () => readonly HealthCheck[]
  readonly draining: AbortSignal
  readonly flows: FlowClasses
}

function createServe(
  parts: MeteredParts,
  registry: Registry,
  { checks, draining, flows }: ServeParts,
): (exchange: Exchange) => Promise<void> {
  const status = { group: '', version: 'v1', kind: 'Status' }
  const { convert, clock, random, onError } = parts
  const encoder = new Representation({
    kind: status as Kind,
    stored: status,
    schemaFor,
    convert,
    memos: registry.services.memos,
  })
  const inflight = parts.filters?.inflight ?? createInflight({ maxReading: 0, maxMutating: 0 })
  return createApiServer({
    ...parts.filters,
    inflight,
    draining,
    classify: flows.classify,
    ...metering(parts, registry, inflight),
    clock,
    random,
    authenticate: parts.authenticate(registry),
    authorize: parts.authorize(registry),
    ...(parts.impersonate === undefined ? {} : { impersonate: parts.impersonate }),
    dispatch: createDispatch(registry, parts.connectors),
    knowsGroup: (group) => registry.hasGroup(group),
    routes: createRoutes(parts, registry, encoder, checks),
    encoder,
    ...(onError === undefined ? {} : { onError }),
  })
}

/** Everything that is no resource. */
function createRoutes(
  parts: MeteredParts,
  registry: Registry,
  encoder: Representation,
  checks: () => readonly HealthCheck[],
): Route {
  const { clock } = parts
  const served = (): readonly ServedGroup[] => servedGroups(registry)
  const discovery = createDiscovery({
    groups: served,
    schemaFor,
    encoder,
    // Asked for at each use: the port may be known only when the server listens.
    get serverAddress() {
      return parts.serverAddress?.() ?? '127.0.0.1:6443'
    },
  })
  const described: OpenApiOptions = {
    groups: served,
    schemaFor,
    version: parts.versionInfo.gitVersion.replace(/^v(\d+\.\d+).*$/, '$1'),
    deleteAnswersObject: ({ group, version, plural }) =>
      registry.find({ group, version, resource: plural })?.resource.deleteAnswersObject === true,
  }
  const openApi = createOpenApiV3(described, () => clock.now())
  const openApiV2 = createOpenApiV2(described)
  const health = createHealth(checks)
  const index = createPathIndex(served, checks)
  return (call) =>
    health(call) ??
    index(call) ??
    discovery(call) ??
    openApi(call) ??
    openApiV2(call) ??
    versionRoute(parts, call) ??
    metricsRoute(parts, call) ??
    parts.routes?.(call)
}

/** The groups, versions and kinds that the registry really has, in discovery's order. */
function servedGroups(registry: Registry): ServedGroup[] {
  const isThere = ({ group, version, plural }: Kind): boolean => {
    // Another door to `pods/binding`: see dispatch.
    const isBinding = group === Bindings.group && plural === Bindings.plural
    const resource = { group, version, resource: isBinding ? Pods.plural : plural }
    return [registry.find(resource), registry.findReview(resource), registry.findVirtual(resource)].some(Boolean)
  }
  return groups.map(({ name, versions }) => ({
    name,
    versions: versions
      .map((version) => ({ ...version, kinds: version.kinds.filter(isThere) }))
      .filter(({ kinds }) => kinds.length > 0),
  }))
}

function versionRoute({ versionInfo }: ApiServerParts, call: Call): Answer | undefined {
  if (call.info.path !== '/version' && call.info.path !== '/version/') return undefined
  return { status: 200, contentType: 'application/json', body: JSON.stringify(versionInfo, undefined, 2) }
}

/** DELETE counts anew. */
function metricsRoute(parts: MeteredParts, { info, method }: Call): Promise<Answer> | Answer | undefined {
  if (info.path !== '/metrics') return undefined
  if (method !== 'DELETE') return showMetrics(parts)
  parts.metrics.registry.reset()
  return { status: 200, contentType: 'text/plain; charset=utf-8', body: 'metrics reset\n' }
}

async function showMetrics({ metrics, backend }: MeteredParts): Promise<Answer> {
  const size = metrics.family('apiserver_storage_size_bytes').labels('etcd-0')
  // A store that does not answer has the size it last had.
  await backend.health().then(
    ({ sizeBytes }) => size.set(sizeBytes),
    () => undefined,
  )
  return { status: 200, contentType: METRICS_CONTENT_TYPE, body: Buffer.from(metrics.registry.render()) }
}

function metering(
  { metrics: meters, clock }: MeteredParts,
  registry: Registry,
  inflight: Inflight,
): Pick<ApiServerOptions, 'meterRequest' | 'meterFlow'> {
  const isServed = ({ group, version, resource, subresource }: RequestInfo): boolean => {
    const found = registry.find({ group, version, resource })
    if (found === undefined) {
      const named = { group, version, resource }
      return registry.findReview(named) !== undefined || registry.findVirtual(named) !== undefined
    }
    const { subresources } = found.representation.kind
    return subresource === '' || subresources.some(({ name }) => name === subresource)
  }
  return {
    meterRequest: createRequestMetrics({ meters, clock, inflight, isServed }),
    meterFlow: createFlowMetrics(meters, clock),
  }
}

async function register(parts: ApiServerParts, registry: Registry): Promise<void> {
  const { reviews, virtuals = [], isServed } = parts
  for (const resource of storedResources(parts)) await registry.add(resource, isServed)
  for (const review of reviews.filter(({ kind }) => isServed(kind))) registry.addReview(review)
  for (const virtual of virtuals.filter(({ kind }) => isServed(kind))) registry.addVirtual(virtual)
}

/** Alpha and beta kinds that are off are not even watched; others are, because the server itself may depend on them. */
function storedResources({ resources, isServed }: ApiServerParts): readonly Resource[] {
  const isWanted = (kind: Kind): boolean => isStable(kind.version) || isServed(kind)
  return resources.filter(({ kind, otherVersions = [] }) =>
    [kind, ...otherVersions.map((one) => one.kind)].some(isWanted),
  )
}

function healthChecks(
  { backend }: ApiServerParts,
  registry: Registry,
  readiness: { readonly bootstrapped: boolean; readonly stopping: boolean },
): () => readonly HealthCheck[] {
  const all = ['healthz', 'livez', 'readyz'] as const
  const storage = async (): Promise<void> => {
    const { ok, message } = await backend.health()
    if (!ok) throw new Error(message)
  }
  const loaded = (): void => {
    for (const { store } of registry.served()) {
      if (!store.collection.isLoaded) throw new Error(`${store.collection.prefix} is being read anew`)
    }
  }
  const bootstrapped = (): void => {
    if (!readiness.bootstrapped) throw new Error('not finished')
  }
  const notDraining = (): void => {
    if (readiness.stopping) throw new Error('process is shutting down')
  }
  const checks: readonly HealthCheck[] = [
    { name: 'ping', on: all, check: () => undefined },
    { name: 'etcd', on: all, check: storage },
    { name: 'etcd-readiness', on: ['readyz'], check: storage },
    { name: 'informer-sync', on: ['readyz'], check: loaded },
    { name: 'poststarthook/rbac/bootstrap-roles', on: all, check: bootstrapped },
    { name: 'poststarthook/bootstrap-controller', on: all, check: bootstrapped },
    { name: 'shutdown', on: ['readyz'], check: notDraining },
  ]
  return () => checks
}
