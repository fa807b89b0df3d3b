/** One kube-apiserver while it runs: everything the flags name is opened, the server is started, and all is closed again. */
import { hostname } from 'node:os'
import { resolve } from 'node:path'
import { createSecureContext } from 'node:tls'

import type { ApiServer } from '#apiserver/apiserver.ts'
import { identityOf, startIdentityCleanup, startIdentityLease } from '#apiserver/bootstrap/identity-lease.ts'
import { createKubernetesService, type KubernetesService } from '#apiserver/bootstrap/kubernetes-service.ts'
import { publishStorageVersions } from '#apiserver/bootstrap/storage-versions.ts'
import type { KubeletSettings, KubeletTls } from '#apiserver/connect/backends.ts'
import { createCors } from '#apiserver/cors.ts'
import { createInflight } from '#apiserver/inflight.ts'
import { createOpenIdRoutes } from '#apiserver/openid.ts'
import type { FilterOptions, Route } from '#apiserver/server.ts'
import type { ServerTls } from '#lib/http/tls.ts'
import { algorithmOf } from '#lib/jwt/key.ts'
import type { Logger } from '#lib/log.ts'
import { type ProgramContext, ProgramError } from '#lib/program.ts'
import { parsePrivateKey } from '#lib/x509/key.ts'
import { parseYaml } from '#lib/yaml.ts'
import { versionInfo } from '#model/version.ts'
import type { Backend } from '#storage/backend.ts'
import { type AtRest, createAtRest } from '#storage/encryption/at-rest.ts'
import { type EncryptionConfig, NO_ENCRYPTION, parseEncryptionConfig } from '#storage/encryption/config.ts'
import { openBackend } from '#storage/index.ts'

import { advertisedAddress, bracketed, isLoopback, listen, ownNames } from './addresses.ts'
import { openAudit } from './audit.ts'
import { type LoadedAuthentication, loadAuthentication } from './authentication.ts'
import { loadAuthorization } from './authorization.ts'
import { loadAdmissionConfig } from './config/admission-config.ts'
import type { ApiServerFlags } from './flags/flags.ts'
import { createGates } from './flags/gates.ts'
import type { ServerPlan } from './flags/plan.ts'
import { createServedRule } from './flags/runtime-config.ts'
import { createLiveFiles, type LiveFiles } from './live-files.ts'
import { createServerMetrics, loadMetricSettings, type ServerMetrics } from './metrics.ts'
import { type ServerSettings, startControlPlane } from './parts.ts'
import { loadServing } from './serving.ts'

export interface RunningServer {
  readonly host: string
  readonly port: number
  readonly server: ApiServer
  readonly files: LiveFiles
  /** Takes the server out of the endpoints of the service `kubernetes`; harmless when repeated. */
  withdraw(): Promise<void>
}

export interface ServerContext extends Pick<ProgramContext, 'clock' | 'random' | 'cwd' | 'stdout' | 'readFile'> {
  readonly log: Logger
}

interface Opened extends ServerContext {
  readonly flags: ApiServerFlags
  readonly plan: ServerPlan
  readonly files: LiveFiles
  /** The port, once it is known. */
  readonly where: { port: number }
  /** Closed in reverse when the server ends, or does not come up. */
  readonly closing: AsyncDisposableStack
}

/** Starts it. Everything that is opened is put on `closing`. Throws ProgramError for what the user can act on. */
export async function startServer(
  flags: ApiServerFlags,
  plan: ServerPlan,
  context: ServerContext,
  closing: AsyncDisposableStack,
): Promise<RunningServer> {
  const files = createLiveFiles(context)
  closing.defer(() => files.close())
  const opened: Opened = { ...context, flags, plan, files, closing, where: { port: plan.serving.port } }
  let reload = (): void => undefined
  // A new value is in place only after those who are told of it have agreed.
  const changed = (): void => queueMicrotask(() => reload())
  const authentication = await loadAuthentication(flags, { ...context, files, changed })
  const address = advertisedAddress(flags)
  const serving = await loadServing(
    { ...plan.serving, certDir: resolve(context.cwd, plan.serving.certDir) },
    ownNames(flags, plan, address),
    { ...context, files, changed },
  )
  const routes = createLateRoute()
  const server = await startParts(opened, authentication, routes.route)
  closing.defer(() => server.stop(flags['request-timeout']))
  await sayThatWeAreHere(server, opened)
  const tls = (): ServerTls => serving.tls(authentication.clientAuthorities())
  const service = createService(server, opened)
  closing.defer(() => service.withdraw())
  // Where the port is known before, the service is there before anybody can ask for it.
  await service.prepare(plan.serving.port === 0 ? undefined : plan.serving.port)
  const bound = await listen(server, plan, tls())
  opened.where.port = bound.port
  await service.publish(bound.port)
  routes.set(openIdRoutes(opened, authentication, `${bracketed(flags['external-hostname'] || address)}:${bound.port}`))
  reload = () => reloadTls(server, tls, context.log)
  files.start()
  return { ...bound, server, files, withdraw: () => service.withdraw() }
}

async function sayThatWeAreHere({ registry }: ApiServer, { flags, closing, log }: Opened): Promise<void> {
  const isEnabled = createGates(flags['feature-gates'])
  if (!isEnabled('APIServerIdentity')) return
  const lease = await startIdentityLease(registry, {
    hostname: hostname(),
    onError: (error) => log.error(error, 'The lease of this server was not renewed'),
  })
  closing.defer(() => lease.stop())
  const cleanup = startIdentityCleanup(registry, (error) =>
    log.error(error, 'The leases of servers that have gone were not removed'),
  )
  closing.defer(() => cleanup.stop())
  if (isEnabled('StorageVersionAPI')) await publishStorageVersions(registry, identityOf(hostname()))
}

/** Pods cannot reach a loopback address: without another there are no endpoints. */
function createService({ registry }: ApiServer, { flags, plan, log }: Opened): KubernetesService {
  const address = advertisedAddress(flags)
  return createKubernetesService(registry, {
    serviceCidr: plan.serviceCidr,
    advertiseAddress: isLoopback(address) ? undefined : address,
    reconciler: plan.endpoints,
    onError: (error) => log.error(error, 'The service "kubernetes" is not up to date'),
  })
}

function reloadTls(server: ApiServer, tls: () => ServerTls, log: Logger): void {
  try {
    server.reloadTls(tls())
  } catch (error) {
    log.error(error, 'The new certificates cannot be used; the old ones stay in force')
  }
}

async function startParts(opened: Opened, loaded: LoadedAuthentication, routes: Route): Promise<ApiServer> {
  const { flags, plan, clock, random, log, closing } = opened
  const isEnabled = createGates(flags['feature-gates'])
  const backend = await openStore(opened)
  closing.defer(() => backend.close())
  const settings = await loadMetricSettings(flags, opened.readFile)
  const metrics = closing.use(createServerMetrics({ clock, version: versionInfo(), isEnabled, settings }))
  return startControlPlane({
    backend,
    atRest: await openAtRest(opened),
    clock,
    random,
    log,
    isEnabled,
    clientAuthorities: loaded.clientAuthorities()[0] ?? '',
    serviceAccountKey: await readSigningKey(opened),
    issuer: flags['service-account-issuer'][0] ?? '',
    serviceCidr: plan.serviceCidr,
    authorizationModes: plan.authorizationModes,
    allowPrivileged: flags['allow-privileged'],
    versionInfo: versionInfo(),
    ...(await planServerSettings(opened, loaded, metrics)),
    routes,
    isServed: createServedRule(plan.runtimeConfig, isEnabled),
  })
}

async function planServerSettings(
  opened: Opened,
  { authentication, published, anonymous }: LoadedAuthentication,
  metrics: ServerMetrics,
): Promise<ServerSettings> {
  const { flags, plan } = opened
  const { maxStreams } = plan.serving
  return {
    authentication,
    published,
    apiAudiences: plan.apiAudiences,
    tokens: {
      maxExpirationSeconds: Math.floor(flags['service-account-max-token-expiration'] / 1000),
      extendExpiration: flags['service-account-extend-token-expiration'],
    },
    admissionFlags: await loadAdmission(opened),
    tolerationSeconds: {
      notReadySeconds: flags['default-not-ready-toleration-seconds'],
      unreachableSeconds: flags['default-unreachable-toleration-seconds'],
    },
    eventTtlMs: flags['event-ttl'],
    nodePorts: plan.nodePorts,
    ...(flags['min-request-timeout'] > 0 && { minWatchMs: flags['min-request-timeout'] * 1000 }),
    filters: {
      ...createFilters(opened),
      ...anonymousFilters(opened, anonymous),
      ...(await loadAudit(opened, metrics)),
    },
    metrics: metrics.meters,
    ...(maxStreams !== undefined && { httpLimits: { maxConcurrentStreams: maxStreams } }),
    serverAddress: () => `${bracketed(advertisedAddress(flags))}:${opened.where.port}`,
    kubelet: await loadKubelet(opened),
    ...(await loadProxyClient(opened)),
    ...(await loadAuthorization(flags, opened)),
    // That is for the controller manager, which may be another program than ours.
    publishes: false,
  }
}

function createFilters({ flags, plan }: Opened): FilterOptions {
  const origins = flags['cors-allowed-origins']
  return {
    inflight: createInflight({
      maxReading: flags['max-requests-inflight'],
      maxMutating: flags['max-mutating-requests-inflight'],
    }),
    requestTimeoutMs: flags['request-timeout'],
    allowsAnonymous: plan.allowsAnonymous,
    ...(origins.length > 0 && { cors: createCors(origins) }),
    ...(plan.hsts !== '' && { fixedHeaders: ['Strict-Transport-Security', plan.hsts] }),
  }
}

function anonymousFilters(
  { plan }: Opened,
  anonymous: LoadedAuthentication['anonymous'],
): Pick<FilterOptions, 'allowsAnonymous' | 'anonymousPaths'> {
  if (anonymous === undefined) return {}
  if (plan.saysAnonymous) {
    const why =
      '--anonymous-auth flag cannot be set when anonymous field is configured in authentication configuration file'
    throw new ProgramError(`anonymous: Forbidden: ${why}`)
  }
  const { enabled, paths } = anonymous
  return { allowsAnonymous: enabled, ...(paths.length > 0 && { anonymousPaths: paths }) }
}

async function loadAdmission({ flags, readFile }: Opened): Promise<NonNullable<ServerSettings['admissionFlags']>> {
  const chosen = { enable: flags['enable-admission-plugins'], disable: flags['disable-admission-plugins'] }
  const file = flags['admission-control-config-file']
  return { ...chosen, ...(await loadAdmissionConfig(file, { ...chosen, readFile })) }
}

/** Closed after the server, whose last requests are recorded too. */
async function loadAudit(opened: Opened, { meters }: ServerMetrics): Promise<Pick<FilterOptions, 'audit'>> {
  const { flags, cwd, closing } = opened
  const audit = await openAudit(flags, { ...opened, metrics: meters, resolve: (path) => resolve(cwd, path) })
  if (audit === undefined) return {}
  closing.defer(() => audit.close())
  return { audit }
}

async function openStore({ plan, clock, random, log, cwd, readFile }: Opened): Promise<Backend> {
  const { location, historyMs, caFile, certFile, keyFile } = plan.datastore
  const read = (file: string): Promise<string | undefined> =>
    file === '' ? Promise.resolve(undefined) : readText(readFile, file)
  const [ca, certificate, key] = await Promise.all([caFile, certFile, keyFile].map(read))
  const tls = {
    ...(ca !== undefined && { ca }),
    ...(certificate !== undefined && { certificate }),
    ...(key !== undefined && { key }),
  }
  const where = location.startsWith('sqlite:') ? `sqlite:${resolve(cwd, location.slice('sqlite:'.length))}` : location
  try {
    return await openBackend(where, { clock, random, historyMs, log: (message) => log.info(message), etcd: { tls } })
  } catch (cause) {
    throw new ProgramError(`Cannot open the datastore "${where}": ${(cause as Error).message}`, { cause })
  }
}

async function readSigningKey({ flags, readFile }: Opened): Promise<string> {
  const pem = await readNamed(readFile, 'service-account-signing-key-file', flags)
  try {
    algorithmOf(parsePrivateKey(pem))
    return pem
  } catch (cause) {
    throw new ProgramError(`--service-account-signing-key-file: ${(cause as Error).message}`, { cause })
  }
}

async function openAtRest(context: Opened): Promise<AtRest> {
  const { flags, files, random } = context
  const file = flags['encryption-provider-config']
  if (file === '') return createAtRest(NO_ENCRYPTION, random)
  const isFollowed = flags['encryption-provider-config-automatic-reload']
  const parse = ([text = '']: readonly string[]): EncryptionConfig => parseEncryptionConfig(parseYaml(text))
  // A configuration that is not followed is read once, through files that are never looked at again.
  const source = isFollowed ? files : createLiveFiles(context)
  const config = await source.open([file], parse, (next) => atRest.reload(next))
  const atRest = createAtRest(config(), random)
  return atRest
}

const KUBELET_FILES = {
  ca: 'kubelet-certificate-authority',
  certificate: 'kubelet-client-certificate',
  key: 'kubelet-client-key',
} as const

async function loadKubelet({ flags, files }: Opened): Promise<KubeletSettings> {
  const named = Object.entries(KUBELET_FILES).filter(([, name]) => flags[name] !== '')
  const paths = named.map(([, name]) => flags[name])
  const parse = (texts: readonly string[]): KubeletTls => {
    const tls: KubeletTls = Object.fromEntries(named.map(([part], at) => [part, texts[at]]))
    // Throws for what cannot be used, as a new certificate whose key is not there yet.
    createSecureContext({ ca: tls.ca, cert: tls.certificate, key: tls.key })
    return tls
  }
  return {
    tls: await files.open(paths, parse),
    port: flags['kubelet-port'],
    addressTypes: flags['kubelet-preferred-address-types'],
    timeoutMs: flags['kubelet-timeout'],
  }
}

async function loadProxyClient({ flags, readFile }: Opened): Promise<Pick<ServerSettings, 'proxyClient'>> {
  if (flags['proxy-client-cert-file'] === '') return {}
  const certificate = await readNamed(readFile, 'proxy-client-cert-file', flags)
  return { proxyClient: { certificate, key: await readNamed(readFile, 'proxy-client-key-file', flags) } }
}

type FileFlag = 'service-account-signing-key-file' | 'proxy-client-cert-file' | 'proxy-client-key-file'

function readNamed(readFile: ProgramContext['readFile'], name: FileFlag, flags: ApiServerFlags): Promise<string> {
  return readText(readFile, flags[name], `--${name}: `)
}

async function readText(readFile: ProgramContext['readFile'], file: string, place = ''): Promise<string> {
  try {
    return await readFile(file)
  } catch (cause) {
    throw new ProgramError(`${place}Cannot read "${file}": ${(cause as Error).message}`, { cause })
  }
}

/** Discovery for ServiceAccount tokens needs the port, which is known when the server listens. */
function createLateRoute(): { readonly route: Route; readonly set: (route: Route) => void } {
  let known: Route | undefined
  return {
    route: (call) => known?.(call),
    set(route) {
      known = route
    },
  }
}

function openIdRoutes({ flags }: Opened, { tokenKeys }: LoadedAuthentication, externalAddress: string): Route {
  const keySetUrl = flags['service-account-jwks-uri']
  return createOpenIdRoutes({
    issuer: flags['service-account-issuer'][0] ?? '',
    externalAddress,
    keys: tokenKeys,
    ...(keySetUrl !== '' && { keySetUrl }),
  })
}
