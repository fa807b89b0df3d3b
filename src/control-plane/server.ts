/**
 * One API server, whole: the parts are built in the order in which one needs another, then it accepts requests.
 * `kube-apiserver`, `up`, `hyperkube/testing`, the tests and the bench all start this one (see start.ts), and differ in
 * nothing but settings and surroundings.
 */
import { type ApiServer, type ApiServerParts, createServer } from '#apiserver/apiserver.ts'
import { asAuthorize } from '#apiserver/authorizers/authorizer.ts'
import { createCors } from '#apiserver/filters/cors.ts'
import { createImpersonation } from '#apiserver/filters/impersonation.ts'
import { createInflight } from '#apiserver/filters/inflight.ts'
import { meterBackend, type ResourceAt } from '#apiserver/metrics/backend.ts'
import { registerObjects } from '#apiserver/metrics/objects.ts'
import { Registry } from '#apiserver/registry/registry.ts'
import { createOpenIdRoutes } from '#apiserver/routes/openid.ts'
import { every } from '#lib/clock.ts'
import { ProgramError } from '#lib/program.ts'
import { versionInfo } from '#model/version.ts'
import type { Backend } from '#storage/backend.ts'
import { WatchCache } from '#storage/watch-cache/watch-cache.ts'

import { openAuthenticator, openAuthorization } from './access.ts'
import { advertisedAddress, bracketed, type BoundPort } from './addresses.ts'
import { type OpenAdmission, openAdmission } from './admission.ts'
import { openAggregation } from './aggregation.ts'
import { openAudit } from './audit.ts'
import { type LoadedAuthentication, loadAuthentication } from './authentication.ts'
import { bootstrap, createService, sayThatWeAreHere } from './bootstrap.ts'
import { openEncryption } from './encryption.ts'
import { APISERVER_FLAGS, type Settings } from './flags/flags.ts'
import { type Access, addKinds, openConnectors } from './kinds.ts'
import { startCoordinatedElection } from './leader-election/controller.ts'
import type { LiveFiles } from './live-files.ts'
import { createServiceParts } from './service-parts.ts'
import { loadServing } from './serving.ts'
import type { Site } from './site.ts'

export interface RunningServer {
  readonly host: string
  readonly port: number
  readonly server: ApiServer
  readonly files: LiveFiles
  /** Takes the server out of the endpoints of the service `kubernetes`; harmless when repeated. */
  withdraw(): Promise<void>
}

export async function assembleServer(
  site: Site,
  { listeners, host, port }: BoundPort,
  backend: Backend,
): Promise<RunningServer> {
  const identities = await loadAuthentication(site)
  const serving = await loadServing(site, identities)
  const authorization = await openAuthorization(site)
  const admission = await openAdmission(site, authorization)
  const registry = await openRegistry(site, backend, admission)
  const access = { ...authorization, authenticator: openAuthenticator(site, registry, identities) }
  const services = createServiceParts(site, registry)
  await addKinds(site, registry, access, services)
  await registry.services.cache.start()
  authorization.follow(registry)
  admission.follow()
  await bootstrap(site, registry, services, identities)
  const aggregated = await openAggregation(site, registry)
  admission.addAggregated(aggregated)
  const server = createServer({ ...(await openParts(site, registry, access, { identities, port })), aggregated })
  site.closing.defer(() => server.stop(site.graceMs ?? site.settings['request-timeout']))
  await sayThatWeAreHere(site, registry, port)
  const service = createService(site, registry)
  // Before anybody can ask for it.
  await service.prepare(port)
  server.accept(listeners, serving.tls())
  await service.publish(port)
  startCoordinatedElection(site, registry, server)
  site.files.start(() => serving.reload(server))
  return { host, port, server, files: site.files, withdraw: () => service.withdraw() }
}

/** How long answers and frames are kept that nobody asks for again, or up to twice as long. */
const MEMO_AGE_MS = 30_000

/** With nothing in it yet. */
async function openRegistry(site: Site, store: Backend, admission: OpenAdmission): Promise<Registry> {
  const { settings, clock, random, isEnabled, closing, metrics } = site
  const { backend: resting, atRest } = await openEncryption(site, store)
  const resourceAt = (prefix: string): ReturnType<ResourceAt> => registry.resourceAt(prefix)
  const backend = meterBackend(resting, metrics, { clock, resourceAt })
  const cache = new WatchCache({
    backend,
    clock,
    prefix: '/registry/',
    onRepair: ({ reason, prefix, revision }) => site.log.info('Watch cache', { reason, prefix, revision }),
  })
  const registry = new Registry({
    backend,
    cache,
    clock,
    random,
    isEnabled,
    allowPrivileged: settings['allow-privileged'],
    metrics,
    atRest,
    storesProtobuf: site.plan.storesProtobuf,
    admission: admission.for,
    leaseReuseMs: settings['lease-reuse-duration-seconds'] * 1000,
    deleteWorkers: Math.max(1, settings['delete-collection-workers']),
    ...(settings['min-request-timeout'] > 0 && { minWatchMs: settings['min-request-timeout'] * 1000 }),
  })
  closing.defer(() => cache.close())
  closing.defer(() => registry.services.yaml.close())
  const aging = every(clock, MEMO_AGE_MS, () => registry.services.memos.age())
  closing.defer(() => aging.cancel())
  registerObjects(metrics, registry)
  return registry
}

async function openParts(
  site: Site,
  registry: Registry,
  { authorizer, authenticator }: Access,
  { identities, port }: { readonly identities: LoadedAuthentication; readonly port: number },
): Promise<ApiServerParts> {
  const { settings, plan, log, metrics, isEnabled, setVerbosity } = site
  const { maxStreams } = plan.serving
  const audit = await openAudit(site)
  const isTraced = settings['tracing-config-file'] !== ''
  const traceRequest = isTraced ? await (await import('./tracing.ts')).openTracing(site) : undefined
  const address = advertisedAddress(settings)
  return {
    registry,
    connectors: await openConnectors(site),
    authenticate: authenticator.authenticate,
    authorize: asAuthorize(authorizer),
    impersonate: createImpersonation({ authorizer, isConstrained: isEnabled('ConstrainedImpersonation') }),
    ...createFilters(site),
    ...anonymousFilters(site, identities),
    ...(audit !== undefined && { audit }),
    ...(traceRequest !== undefined && { traceRequest }),
    ...(site.interfere !== undefined && { interfere: site.interfere }),
    metrics,
    versionInfo: versionInfo(site.version),
    flags: printedFlags(settings),
    debug: { isProfiled: settings.profiling, ...(setVerbosity !== undefined && { setVerbosity }) },
    routes: openIdRoutes(site, identities, `${bracketed(settings['external-hostname'] || address)}:${port}`),
    serverAddress: `${bracketed(address)}:${port}`,
    ...(maxStreams !== undefined && { httpLimits: { maxConcurrentStreams: maxStreams } }),
    onError: (error, info) => log.error(error, 'Request failed', { verb: info.verb, path: info.path }),
  }
}

/** Every flag with its value, as text. */
function printedFlags(settings: Settings): ReadonlyMap<string, string> {
  const values = settings as unknown as Readonly<Record<string, unknown>>
  const all = Object.values(APISERVER_FLAGS).flatMap((group) => Object.entries(group))
  return new Map(all.map(([name, { kind, initial }]) => [name, kind.print(values[name] ?? initial)] as const))
}

function createFilters({ settings, plan }: Site): Partial<ApiServerParts> {
  const origins = settings['cors-allowed-origins']
  const [maxReading, maxMutating] = [settings['max-requests-inflight'], settings['max-mutating-requests-inflight']]
  return {
    ...(settings['enable-priority-and-fairness']
      ? { seats: maxReading + maxMutating }
      : { inflight: createInflight({ maxReading, maxMutating }) }),
    requestTimeoutMs: settings['request-timeout'],
    allowsAnonymous: plan.allowsAnonymous,
    ...(origins.length > 0 && { cors: createCors(origins) }),
    ...(plan.hsts !== '' && { fixedHeaders: ['Strict-Transport-Security', plan.hsts] }),
  }
}

function anonymousFilters({ plan }: Site, { anonymous }: LoadedAuthentication): Partial<ApiServerParts> {
  if (anonymous === undefined) return {}
  if (plan.saysAnonymous) {
    const why =
      '--anonymous-auth flag cannot be set when anonymous field is configured in authentication configuration file'
    throw new ProgramError(`anonymous: Forbidden: ${why}`)
  }
  const { enabled, paths } = anonymous
  return { allowsAnonymous: enabled, ...(paths.length > 0 && { anonymousPaths: paths }) }
}

function openIdRoutes(
  { settings }: Site,
  { tokenKeys }: LoadedAuthentication,
  externalAddress: string,
): ApiServerParts['routes'] {
  const keySetUrl = settings['service-account-jwks-uri']
  return createOpenIdRoutes({
    issuer: settings['service-account-issuer'][0] ?? '',
    externalAddress,
    keys: tokenKeys,
    ...(keySetUrl !== '' && { keySetUrl }),
  })
}
