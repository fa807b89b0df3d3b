/** Starts the ingress controller: builds its parts and opens the HTTP and HTTPS ports. */
import { EventRecorder } from '#client/events/event-recorder.ts'
import type { Clock } from '#lib/clock.ts'
import { createHttpServer } from '#lib/http/server.ts'
import type { CertificateAndKey, ServerTls } from '#lib/http/tls.ts'
import { createRegistry, type Registry } from '#lib/metrics/metrics.ts'
import { createAuthority } from '#lib/x509/authority.ts'

import { resolveAllowed } from './forbidden-addresses.ts'
import { createProxy, type ProxyOptions } from './proxy.ts'
import { WatchedRoutingState, type WatchOptions } from './routing-state.ts'

export interface IngressControllerOptions extends Omit<WatchOptions, 'certificatesChanged' | 'refused' | 'signal'> {
  readonly clock: Clock
  readonly address: string
  readonly httpPort: number
  readonly httpsPort: number
  /** Resolves backend addresses. Default: the system's resolver without forbidden addresses. */
  readonly resolve?: ProxyOptions['resolve']
}

export interface IngressController {
  readonly watched: WatchedRoutingState
  /** The given ports, or the free ones for 0. */
  readonly httpPort: number
  readonly httpsPort: number
  readonly metrics: Registry
}

/** The grace period of running requests at shutdown. */
const GRACE_MS = 10_000

/** Listens once all caches are synced, so that early requests get no false 404. Stops with `closing`. */
export async function startIngressController(
  options: IngressControllerOptions,
  closing: AsyncDisposableStack,
): Promise<IngressController> {
  const { clock, random, log, httpPort, httpsPort } = options
  const stop = new AbortController()
  closing.defer(() => stop.abort())
  const own = ownPair(options)
  const metrics = createRegistry()
  const requests = metrics.counter({
    name: 'nginx_ingress_controller_requests',
    help: 'Requests of clients.',
    labels: ['status'],
  })
  let tls: ServerTls = own
  let reload: (tls: ServerTls) => void = () => undefined
  const watched = new WatchedRoutingState({
    ...options,
    signal: stop.signal,
    certificatesChanged(sni, byDefault) {
      tls = { ...(byDefault ?? own), sni }
      reload(tls)
    },
    refused: refuser(options, stop.signal),
  })
  await watched.synced
  const answered = (status: number): void => requests.labels(String(status)).inc()
  const { resolve = (host: string) => resolveAllowed(host) } = options
  const refused = onceEach((text) => log.info('Refused to connect to a forbidden backend address', { reason: text }))
  const shared = { clock, random, routingState: () => watched.routingState, resolve, refused, answered, httpsPort }
  const plain = await openPort({ ...shared, port: httpPort }, options, undefined, closing)
  const secure = await openPort({ ...shared, port: httpsPort }, options, tls, closing)
  reload = secure.reload
  // They may have changed before the port was open.
  reload(tls)
  return { watched, httpPort: plain.port, httpsPort: secure.port, metrics }
}

function refuser({ client, log }: IngressControllerOptions, signal: AbortSignal): WatchOptions['refused'] {
  const recorder = new EventRecorder({ client, source: { component: 'nginx-ingress-controller' }, signal })
  return (ingress, reason) => {
    const { namespace, name } = ingress.metadata
    log.info('Ingress has invalid or unsupported settings', { ingress: `${namespace}/${name}`, reason })
    const kind = { kind: 'Ingress', apiVersion: 'networking.k8s.io/v1' }
    recorder.record({ ...kind, ...ingress }, { type: 'Warning', reason: 'Rejected', message: reason })
  }
}

/** Logs each text once, so that repeated requests do not fill the log. */
function onceEach(task: (text: string) => void): (error: Error) => void {
  const done = new Set<string>()
  return ({ message }) => {
    if (done.has(message)) return
    if (done.size >= MAX_REMEMBERED) done.clear()
    done.add(message)
    task(message)
  }
}

const MAX_REMEMBERED = 1000

async function openPort(
  options: ProxyOptions,
  { address, log, clock }: IngressControllerOptions,
  tls: ServerTls | undefined,
  closing: AsyncDisposableStack,
): Promise<{ readonly port: number; readonly reload: (tls: ServerTls) => void }> {
  const proxy = createProxy(options)
  const onError = (error: unknown): void => log.error(error, 'Failed to proxy request')
  const { serve } = proxy
  const http = createHttpServer({ serve, clock, upgrades: ['websocket'], onError, ...(tls !== undefined && { tls }) })
  const bound = await http.listen({ host: address, port: options.port })
  closing.defer(async () => {
    await http.drain(GRACE_MS)
    proxy.close()
  })
  return { port: 'port' in bound ? bound.port : options.port, reload: (changed) => http.reloadTls(changed) }
}

/** For names without a certificate; named like nginx's fake certificate, which users know. */
function ownPair(tools: Pick<IngressControllerOptions, 'clock' | 'random'>): CertificateAndKey {
  const commonName = 'Kubernetes Ingress Controller Fake Certificate'
  const authority = createAuthority({ commonName }, tools)
  const names = { dns: ['ingress.local'] }
  const { certificatePem, keyPem } = authority.issue({ commonName, names, purpose: 'server' })
  return { certificate: certificatePem, key: keyPem }
}
