/**
 * Starts one complete API server: builds the parts in the order of their dependencies, then accepts requests.
 * `kube-apiserver`, `up`, `hyperkube/testing`, the tests and the bench all start it (see start.ts), with different
 * settings and options.
 */
import { type ApiServer, type ApiServerParts, createServer } from '#apiserver/apiserver.ts'
import { createImpersonation } from '#apiserver/filters/impersonation.ts'
import type { Registry } from '#apiserver/registry/registry.ts'
import { createOpenIdRoutes } from '#apiserver/routes/openid.ts'
import { bracketed, type BoundPort } from '#component/bound-port.ts'
import type { LiveFiles } from '#component/live-files.ts'
import { createCors } from '#component/requests/cors.ts'
import { createInflight } from '#component/requests/inflight.ts'
import type { LongHistory } from '#history/long-history.ts'
import { ProgramError } from '#lib/program.ts'
import { versionInfo } from '#model/version.ts'
import type { Backend } from '#storage/backend.ts'

import { openAuthenticator, openAuthorization } from './access.ts'
import { advertisedAddress } from './addresses.ts'
import { openAdmission } from './admission.ts'
import { openAggregation } from './aggregation.ts'
import { openAudit } from './audit.ts'
import { type LoadedAuthentication, loadAuthentication } from './authentication.ts'
import { bootstrap, createService, publishIdentity } from './bootstrap.ts'
import { openEncryption } from './encryption.ts'
import type { Environment } from './environment.ts'
import { APISERVER_FLAGS, type Settings } from './flags/flags.ts'
import { openHistory } from './history.ts'
import { type Access, addKinds, openConnectors } from './kinds.ts'
import { startCoordinatedElection } from './leader-election/controller.ts'
import { createPast } from './past/past-server.ts'
import { createRegistry } from './registry.ts'
import { createServiceParts } from './service-parts.ts'
import { loadServing } from './serving.ts'

export interface RunningServer {
  readonly host: string
  readonly port: number
  readonly server: ApiServer
  readonly files: LiveFiles
  readonly history: LongHistory
  /** Removes the server from the endpoints of the service `kubernetes`. Idempotent. */
  withdraw(): Promise<void>
}

export async function assembleServer(
  environment: Environment,
  { listeners, host, port }: BoundPort,
  backend: Backend,
): Promise<RunningServer> {
  const identities = await loadAuthentication(environment)
  const serving = await loadServing(environment, identities)
  const authorization = await openAuthorization(environment)
  const admission = await openAdmission(environment, authorization)
  const resting = await openEncryption(environment, backend)
  const registry = createRegistry(environment, { ...resting, admission: admission.for })
  const access = { ...authorization, authenticator: openAuthenticator(environment, registry, identities) }
  const services = createServiceParts(environment, registry)
  await addKinds(environment, registry, access, services)
  await registry.services.cache.start()
  authorization.follow(registry)
  admission.follow()
  await bootstrap(environment, registry, services, identities)
  const aggregated = await openAggregation(environment, registry)
  admission.addAggregated(aggregated)
  const parts = await openParts(environment, registry, access, { identities, port })
  const { authorizer } = authorization
  const { serverAddress } = parts
  const history = await openHistory(environment, { backend, registry, atRest: resting.atRest })
  const past = createPast(environment, { history, registry, atRest: resting.atRest, authorizer, serverAddress })
  const server = createServer({ ...parts, ...past, aggregated })
  environment.closing.defer(() => server.stop(environment.graceMs ?? environment.settings['request-timeout']))
  await publishIdentity(environment, registry, port)
  const service = createService(environment, registry)
  // Before the first request.
  await service.prepare(port)
  server.accept(listeners, serving.tls())
  await service.publish(port)
  startCoordinatedElection(environment, registry, server)
  environment.files.start(() => serving.reload(server))
  return { host, port, server, files: environment.files, history, withdraw: () => service.withdraw() }
}

async function openParts(
  environment: Environment,
  registry: Registry,
  { authorizer, authenticator }: Access,
  { identities, port }: { readonly identities: LoadedAuthentication; readonly port: number },
): Promise<Omit<ApiServerParts, 'authorize'>> {
  const { settings, plan, log, metrics, isEnabled, setVerbosity } = environment
  const { maxStreams } = plan.serving
  const audit = await openAudit(environment)
  const isTraced = settings['tracing-config-file'] !== ''
  const traceRequest = isTraced ? await (await import('./tracing.ts')).openTracing(environment) : undefined
  const address = advertisedAddress(settings)
  return {
    registry,
    connectors: await openConnectors(environment),
    authenticate: authenticator.authenticate,
    impersonate: createImpersonation({ authorizer, isConstrained: isEnabled('ConstrainedImpersonation') }),
    ...createFilters(environment),
    ...anonymousFilters(environment, identities),
    ...(audit !== undefined && { audit }),
    ...(traceRequest !== undefined && { traceRequest }),
    ...(environment.interfere !== undefined && { interfere: environment.interfere }),
    metrics,
    versionInfo: versionInfo(environment.version),
    flags: printedFlags(settings),
    debug: { isProfiled: settings.profiling, ...(setVerbosity !== undefined && { setVerbosity }) },
    routes: openIdRoutes(environment, identities, `${bracketed(settings['external-hostname'] || address)}:${port}`),
    serverAddress: `${bracketed(address)}:${port}`,
    ...(maxStreams !== undefined && { httpLimits: { maxConcurrentStreams: maxStreams } }),
    onError: (error, info) => log.error(error, 'Failed to serve request', { verb: info.verb, path: info.path }),
  }
}

/** Every flag with its value, as text. */
function printedFlags(settings: Settings): ReadonlyMap<string, string> {
  const values = settings as unknown as Readonly<Record<string, unknown>>
  const all = Object.values(APISERVER_FLAGS).flatMap((group) => Object.entries(group))
  return new Map(all.map(([name, { kind, initial }]) => [name, kind.print(values[name] ?? initial)] as const))
}

function createFilters({ settings, plan }: Environment): Partial<ApiServerParts> {
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

function anonymousFilters({ plan }: Environment, { anonymous }: LoadedAuthentication): Partial<ApiServerParts> {
  if (anonymous === undefined) return {}
  if (plan.hasAnonymousFlag) {
    const why =
      '--anonymous-auth flag cannot be set when anonymous field is configured in authentication configuration file'
    throw new ProgramError(`anonymous: Forbidden: ${why}`)
  }
  const { enabled, paths } = anonymous
  return { allowsAnonymous: enabled, ...(paths.length > 0 && { anonymousPaths: paths }) }
}

function openIdRoutes(
  { settings }: Environment,
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
