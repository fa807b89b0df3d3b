/**
 * The secure port of a component: health, metrics, flags and configuration. The API server authenticates and authorizes
 * its clients through reviews; some paths need no credentials.
 */
import type { Authenticate, Authorize } from '#auth/access.ts'
import { createClientCertAuthenticator } from '#auth/authenticators/client-cert.ts'
import { createAuthenticator } from '#auth/authenticators/index.ts'
import { createRequestHeaderAuthenticator } from '#auth/authenticators/request-header.ts'
import { createWebhookTokenAuthenticator } from '#auth/authenticators/webhook.ts'
import { asAuthorize, type Authorizer, NO_OPINION, NO_RULES } from '#auth/authorizer.ts'
import { privilegedGroup } from '#auth/authorizers/fixed.ts'
import { unionOf } from '#auth/authorizers/index.ts'
import { createWebhookAuthorizer } from '#auth/authorizers/webhook.ts'
import type { SendReview } from '#auth/credentials/review-webhook.ts'
import { createHttpServer } from '#lib/http/server.ts'
import type { ServerTls } from '#lib/http/tls.ts'
import type { Logger } from '#lib/log/log.ts'
import { METRICS_CONTENT_TYPE } from '#lib/metrics/metrics.ts'
import { readProcess } from '#lib/metrics/process.ts'
import type { ProgramContext } from '#lib/program.ts'
import { parseBundle } from '#lib/x509/certificate.ts'
import { createServerMeters, type ServerMeters } from '#model/metrics/families.ts'
import { versionInfo } from '#model/version.ts'
import { createZPages } from '#model/zpages.ts'

import { bindPort } from './bound-port.ts'
import type { DelegationValues } from './flags/delegation-flags.ts'
import type { ServingValues } from './flags/serving-flags.ts'
import { planServing } from './flags/serving-plan.ts'
import { makePair, namesIn, ownFiles, readPair } from './key-pair.ts'
import { createLiveFiles } from './live-files.ts'
import { createDebugPages } from './pages/debug-pages.ts'
import { createHealth, type HealthCheck } from './pages/health.ts'
import type { Answer } from './requests/call.ts'
import { createInflight } from './requests/inflight.ts'
import { notFoundPage } from './requests/not-found-page.ts'
import { createRequestServer } from './requests/request-server.ts'
import type { RequestServerOptions, Route } from './requests/server-options.ts'
import { BUILT_IN_ENCODER } from './requests/value-encoder.ts'

export interface ComponentServerOptions extends Pick<ProgramContext, 'clock' | 'random' | 'cwd' | 'readFile'> {
  readonly log: Logger
  /** Changes the log level; absent: it is fixed. */
  readonly setVerbosity?: (level: number) => void
  /** The reported version, if not the real one. */
  readonly version?: string | undefined
  /** The grace period for running requests when the server stops; default: none. */
  readonly graceMs?: number
  /** `kube-controller-manager`. */
  readonly name: string
  readonly settings: ServingValues & DelegationValues & { readonly profiling: boolean }
  /** Sends token and access reviews to the API server; absent: no tokens are accepted and nothing is allowed. */
  readonly tokenReviews?: SendReview
  readonly accessReviews?: SendReview
  /** PEM of the client and front-proxy authorities, if no flag names a file. */
  readonly clientAuthorities?: string
  readonly proxyAuthorities?: string
  /** Additional resources; absent: none. */
  readonly api?: Pick<RequestServerOptions, 'dispatch' | 'knowsGroup' | 'routes'>
  readonly metrics: ServerMeters
  readonly isEnabled: (gate: string) => boolean
  /** By name, as text. */
  readonly flags: ReadonlyMap<string, string>
  /** The content of `/configz`; absent: there is no such page. */
  readonly configz?: object
  /** Evaluated at every request, because checks come and go. */
  readonly checks: () => readonly HealthCheck[]
  readonly closing: AsyncDisposableStack
}

/** Listens until `closing`; undefined with port 0, as upstream. Throws ProgramError. */
export async function startComponentServer(
  options: ComponentServerOptions,
): Promise<{ readonly host: string; readonly port: number } | undefined> {
  const { settings, clock, random, log, closing, graceMs = 0 } = options
  const serving = planServing(settings)
  if (serving.port === 0) return undefined
  const { listeners, host, port } = await bindPort({ plan: { serving: { ...serving } }, closing })
  const access = await openAccess(options)
  const serve = createRequestServer({
    clock,
    random,
    authenticate: access.authenticate,
    authorize: access.authorize,
    inflight: createInflight({ maxReading: 0, maxMutating: 0 }),
    dispatch: () => Promise.resolve(notFoundPage()),
    knowsGroup: () => false,
    ...options.api,
    routes: routesOf(options),
    encoder: BUILT_IN_ENCODER,
    onError: (error, info) => log.error(error, 'Failed to serve request', { path: info.path }),
  })
  const http = createHttpServer({ serve, clock, tls: await access.tls((tls) => http.reloadTls(tls)) })
  for (const listener of listeners) http.accept(listener)
  closing.defer(() => http.drain(graceMs))
  return { host, port }
}

interface ComponentAccess {
  readonly authenticate: Authenticate
  readonly authorize: Authorize
  /** `changed` is called after files have changed. */
  tls(changed: (tls: ServerTls) => void): Promise<ServerTls>
}

async function openAccess(options: ComponentServerOptions): Promise<ComponentAccess> {
  const { settings, clock, closing } = options
  const files = createLiveFiles(options)
  closing.defer(() => files.close())
  const read = async (path: string, otherwise: string): Promise<() => string> =>
    path === '' ? () => otherwise : files.open([path], ([pem = '']) => (parseBundle(pem), pem))
  const clients = await read(settings['client-ca-file'], options.clientAuthorities ?? '')
  const proxies = await read(settings['requestheader-client-ca-file'], options.proxyAuthorities ?? '')
  const pair = await openPair(options, files)
  const sni = await Promise.all(
    settings['tls-sni-cert-key'].map(async ({ certFile, keyFile, names }) => {
      const own = await files.open([certFile, keyFile], readPair)
      return () => ({ ...own(), names: names.length === 0 ? namesIn(own()) : names })
    }),
  )
  const { minVersion, ciphers } = planServing(settings)
  const tls = (): ServerTls => ({
    ...pair(),
    sni: sni.map((one) => one()),
    clientAuthorities: [clients(), proxies()].filter((pem) => pem !== ''),
    minVersion,
    ...(ciphers !== undefined && { ciphers }),
  })
  return {
    authenticate: authenticatorOf(options, parsedOnce(clients), parsedOnce(proxies)),
    authorize: asAuthorize(authorizerOf(options, clock)),
    tls(changed) {
      files.start(() => changed(tls()))
      return Promise.resolve(tls())
    },
  }
}

function parsedOnce(pem: () => string): () => ReturnType<typeof parseBundle> {
  let last: { readonly pem: string; readonly certificates: ReturnType<typeof parseBundle> } = {
    pem: '',
    certificates: [],
  }
  return () => {
    const now = pem()
    if (now !== last.pem) last = { pem: now, certificates: parseBundle(now) }
    return last.certificates
  }
}

async function openPair(
  { settings, name, clock, random, cwd, readFile }: ComponentServerOptions,
  files: ReturnType<typeof createLiveFiles>,
): Promise<() => ReturnType<typeof readPair>> {
  const { certFile, keyFile, certDir } = planServing(settings)
  const hosts = ['localhost', '127.0.0.1', '::1']
  if (certFile !== '') return files.open([certFile, keyFile], readPair)
  if (certDir !== '') {
    return files.open(await ownFiles({ clock, random, cwd, readFile }, { certDir, name, hosts }), readPair)
  }
  const pair = makePair({ clock, random }, hosts)
  return () => pair
}

function authenticatorOf(
  { settings, clock, tokenReviews, log }: ComponentServerOptions,
  clients: () => ReturnType<typeof parseBundle>,
  proxies: () => ReturnType<typeof parseBundle>,
): Authenticate {
  const headers = {
    clock,
    authorities: proxies,
    allowedNames: settings['requestheader-allowed-names'],
    usernameHeaders: settings['requestheader-username-headers'],
    uidHeaders: settings['requestheader-uid-headers'],
    groupHeaders: settings['requestheader-group-headers'],
    extraHeaderPrefixes: settings['requestheader-extra-headers-prefix'],
  }
  const ttlMs = settings['authentication-token-webhook-cache-ttl']
  return createAuthenticator({
    requests: [
      createRequestHeaderAuthenticator(headers),
      createClientCertAuthenticator({ clock, authorities: clients }),
    ],
    tokens:
      tokenReviews === undefined
        ? []
        : [createWebhookTokenAuthenticator({ clock, send: tokenReviews, apiAudiences: [], ttlMs })],
    apiAudiences: [],
    onRefusal: (why) => log.v(2)?.info('Unable to authenticate the request', { err: why }),
  }).authenticate
}

function authorizerOf(
  { settings, accessReviews }: ComponentServerOptions,
  clock: ComponentServerOptions['clock'],
): Authorizer {
  const allowed = settings['authorization-always-allow-paths']
  const open: Authorizer = {
    authorize: (_, { isResource, path }) =>
      !isResource && allowed.some((one) => matches(one, path))
        ? { allowed: true, denied: false, reason: '' }
        : NO_OPINION,
    rulesFor: () => NO_RULES,
  }
  const ttls = {
    authorizedTtlMs: settings['authorization-webhook-cache-authorized-ttl'],
    unauthorizedTtlMs: settings['authorization-webhook-cache-unauthorized-ttl'],
  }
  const delegated = accessReviews && createWebhookAuthorizer({ clock, send: accessReviews, ...ttls })
  return unionOf([privilegedGroup, open, ...(delegated === undefined ? [] : [delegated])])
}

/** `/healthz`, or `/debug/*` for all paths below. */
function matches(pattern: string, path: string): boolean {
  const normal = pattern.startsWith('/') ? pattern : `/${pattern}`
  return normal.endsWith('*') ? path.startsWith(normal.slice(0, -1)) : path === normal
}

function routesOf(options: ComponentServerOptions): Route {
  const pages = createRoutes(options)
  const { routes } = options.api ?? {}
  return routes === undefined ? pages : (call) => pages(call) ?? routes(call)
}

function createRoutes(options: ComponentServerOptions): Route {
  const { name, clock, random, isEnabled, flags, metrics, setVerbosity, checks } = options
  const slis = createServerMeters()
  const { gitVersion, goVersion } = versionInfo(options.version)
  const version = { gitVersion, goVersion, emulated: gitVersion.replace(/^v(\d+\.\d+).*$/, '$1') }
  const startedAtMs = readProcess(clock).startTimeSeconds() * 1000
  const zpages = createZPages({
    component: name,
    clock,
    random,
    isEnabled,
    startedAtMs,
    version,
    paths: () => PATHS,
    flags,
  })
  const debugging = createDebugPages({
    isProfiled: options.settings.profiling,
    ...(setVerbosity !== undefined && { setVerbosity }),
  })
  const shown = ({ registry }: ServerMeters): Answer => ({
    status: 200,
    contentType: METRICS_CONTENT_TYPE,
    body: Buffer.from(registry.render()),
  })
  const config: Answer | undefined = options.configz && {
    status: 200,
    contentType: 'application/json',
    body: Buffer.from(JSON.stringify(options.configz)),
  }
  return (call) => {
    const { path } = call.info
    if (path === '/configz') return config
    if (path === '/metrics') return shown(metrics)
    if (path === '/metrics/slis') return shown(slis)
    return createHealth(checks(), slis)(call) ?? zpages(call.info.path, call.header('accept')) ?? debugging(call)
  }
}

const PATHS = ['/configz', '/flagz', '/healthz', '/livez', '/metrics', '/metrics/slis', '/readyz', '/statusz']
