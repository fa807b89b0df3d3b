/** One kube-apiserver while it runs: everything the flags name is opened, the server is started, and all is closed again. */
import { hostname } from 'node:os'
import { resolve } from 'node:path'

import type { ApiServer } from '#apiserver/apiserver.ts'
import { startIdentityLease } from '#apiserver/bootstrap/identity-lease.ts'
import { ensureKubernetesService } from '#apiserver/bootstrap/kubernetes-service.ts'
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
import type { Backend } from '#storage/backend.ts'
import { type AtRest, createAtRest } from '#storage/encryption/at-rest.ts'
import { type EncryptionConfig, NO_ENCRYPTION, parseEncryptionConfig } from '#storage/encryption/config.ts'
import { openBackend } from '#storage/index.ts'

import { type KubeletSettings, type ServerSettings, startControlPlane } from '../control-plane.ts'
import { versionInfo } from '../version.ts'
import { advertisedAddress, bracketed, isLoopback, listen, ownNames } from './addresses.ts'
import { type LoadedAuthentication, loadAuthentication } from './authentication.ts'
import type { ApiServerFlags } from './flags.ts'
import { createGates } from './gates.ts'
import { createLiveFiles, type LiveFiles } from './live-files.ts'
import { createServerMetrics, type ServerMetrics } from './metrics.ts'
import type { ServerPlan } from './plan.ts'
import { createReviewClient } from './review-client.ts'
import { createServedRule } from './runtime-config.ts'
import { loadServing } from './serving.ts'

export interface RunningServer {
  readonly host: string
  readonly port: number
  readonly server: ApiServer
  readonly files: LiveFiles
}

export interface ServerContext extends Pick<ProgramContext, 'clock' | 'random' | 'cwd' | 'readFile'> {
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
  // Where the port is known before, the service is there before anybody can ask for it.
  if (plan.serving.port !== 0) await publishService(server, opened, plan.serving.port)
  const bound = await listen(server, plan, tls())
  opened.where.port = bound.port
  if (plan.serving.port === 0) await publishService(server, opened, bound.port)
  routes.set(openIdRoutes(opened, authentication, `${bracketed(flags['external-hostname'] || address)}:${bound.port}`))
  reload = () => reloadTls(server, tls, context.log)
  files.start()
  return { ...bound, server, files }
}

async function sayThatWeAreHere({ registry }: ApiServer, { flags, closing, log }: Opened): Promise<void> {
  if (!createGates(flags['feature-gates'])('APIServerIdentity')) return
  const lease = await startIdentityLease(registry, {
    hostname: hostname(),
    onError: (error) => log.error(error, 'The lease of this server was not renewed'),
  })
  closing.defer(() => lease.cancel())
}

/** Pods cannot reach a loopback address: without another there are no endpoints. */
async function publishService({ registry }: ApiServer, { flags, plan }: Opened, port: number): Promise<void> {
  const address = advertisedAddress(flags)
  const advertiseAddress = isLoopback(address) ? undefined : address
  await ensureKubernetesService(registry, { serviceCidr: plan.serviceCidr, advertiseAddress, port })
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
  let server: ApiServer | undefined
  const metrics = closing.use(
    createServerMetrics({ clock, version: versionInfo(), isEnabled, objects: () => server?.registry }),
  )
  server = await startControlPlane({
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
  return server
}

async function planServerSettings(
  opened: Opened,
  { authentication, published }: LoadedAuthentication,
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
    admissionFlags: { enable: flags['enable-admission-plugins'], disable: flags['disable-admission-plugins'] },
    tolerationSeconds: {
      notReadySeconds: flags['default-not-ready-toleration-seconds'],
      unreachableSeconds: flags['default-unreachable-toleration-seconds'],
    },
    eventTtlMs: flags['event-ttl'],
    nodePorts: plan.nodePorts,
    ...(flags['min-request-timeout'] > 0 && { minWatchMs: flags['min-request-timeout'] * 1000 }),
    filters: createFilters(opened),
    metrics: metrics.registry,
    ...(maxStreams !== undefined && { httpLimits: { maxConcurrentStreams: maxStreams } }),
    serverAddress: () => `${bracketed(advertisedAddress(flags))}:${opened.where.port}`,
    kubelet: await loadKubelet(opened),
    ...(await loadProxyClient(opened)),
    ...(await loadAuthorizationWebhook(opened)),
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

async function loadKubelet({ flags, readFile }: Opened): Promise<KubeletSettings> {
  const optional = async (name: FileFlag): Promise<string | undefined> =>
    flags[name] === '' ? undefined : readNamed(readFile, name, flags)
  const ca = await optional('kubelet-certificate-authority')
  const certificate = await optional('kubelet-client-certificate')
  const key = await optional('kubelet-client-key')
  return {
    tls: {
      ...(ca !== undefined && { ca }),
      ...(certificate !== undefined && { certificate }),
      ...(key !== undefined && { key }),
    },
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

async function loadAuthorizationWebhook(opened: Opened): Promise<Pick<ServerSettings, 'authorizationWebhook'>> {
  const { flags, clock } = opened
  const file = flags['authorization-webhook-config-file']
  if (file === '') return {}
  return {
    authorizationWebhook: {
      clock,
      send: await createReviewClient(file, opened),
      version: flags['authorization-webhook-version'],
      authorizedTtlMs: flags['authorization-webhook-cache-authorized-ttl'],
      unauthorizedTtlMs: flags['authorization-webhook-cache-unauthorized-ttl'],
    },
  }
}

type FileFlag =
  | 'service-account-signing-key-file'
  | 'kubelet-certificate-authority'
  | 'kubelet-client-certificate'
  | 'kubelet-client-key'
  | 'proxy-client-cert-file'
  | 'proxy-client-key-file'

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
