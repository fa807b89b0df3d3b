/** The two ports of kube-proxy, without TLS as upstream's: one that says how it is, one for metrics. */
import type { Node } from '#apis/core/v1.ts'
import type { Clock } from '#lib/clock.ts'
import { type Exchange, PLAIN_TEXT } from '#lib/http/exchange.ts'
import { createHttpServer } from '#lib/http/server.ts'
import type { Logger } from '#lib/log.ts'
import { METRICS_CONTENT_TYPE, type Registry } from '#lib/metrics.ts'
import { ProgramError } from '#lib/program.ts'
import { healthz, type HealthFacts, livez } from '#proxy/health.ts'
import type { ProxyMeters } from '#proxy/proxy-metrics.ts'

export interface PortsOptions {
  readonly clock: Clock
  readonly log: Logger
  readonly closing: AsyncDisposableStack
  /** Whether a port that cannot be had ends the program. */
  readonly isFatal: boolean
}

type Page = () => { readonly status?: number; readonly type?: string; readonly body: string }

export interface HealthPages {
  readonly meters: ProxyMeters
  readonly facts: () => HealthFacts
  readonly node: () => Node | undefined
}

/** `host:port`; empty: nobody listens. Throws ProgramError. */
export async function serveHealth(address: string, pages: HealthPages, options: PortsOptions): Promise<void> {
  const { facts, node, meters } = pages
  const json = 'application/json'
  await servePages(address, options, {
    '/healthz': () => {
      const { isHealthy, text } = healthz(facts(), node())
      const status = isHealthy ? 200 : 503
      meters.family('kubeproxy_proxy_healthz_total').labels(String(status)).inc()
      return { status, type: json, body: text }
    },
    '/livez': () => {
      const { isHealthy, text } = livez(facts())
      const status = isHealthy ? 200 : 503
      meters.family('kubeproxy_proxy_livez_total').labels(String(status)).inc()
      return { status, type: json, body: text }
    },
  })
}

export interface StatusPages {
  readonly registry: Registry
  readonly mode: string
  readonly configz: object
}

export async function serveStatus(
  address: string,
  { registry, mode, configz }: StatusPages,
  options: PortsOptions,
): Promise<void> {
  await servePages(address, options, {
    '/healthz': () => ({ body: 'ok' }),
    '/proxyMode': () => ({ body: mode }),
    '/metrics': () => ({ type: METRICS_CONTENT_TYPE, body: registry.render() }),
    '/configz': () => ({
      type: 'application/json',
      body: JSON.stringify({ 'kubeproxy.config.k8s.io': configz }),
    }),
  })
}

async function servePages(
  address: string,
  { clock, log, closing, isFatal }: PortsOptions,
  pages: Readonly<Record<string, Page>>,
): Promise<void> {
  if (address === '') return
  const serve = (exchange: Exchange): Promise<void> => {
    const [path = ''] = exchange.path.split('?')
    const page = Object.hasOwn(pages, path) ? pages[path]?.() : undefined
    if (page === undefined) exchange.respond(404, PLAIN_TEXT, '404 page not found\n')
    else {
      const { status = 200, type = 'text/plain; charset=utf-8', body } = page
      exchange.respond(status, ['Content-Type', type, 'X-Content-Type-Options', 'nosniff'], Buffer.from(body))
    }
    return Promise.resolve()
  }
  const server = createHttpServer({ serve, clock, onError: (error) => log.error(error, 'Request failed') })
  const at = address.lastIndexOf(':')
  const host = address.slice(0, at).replaceAll(/[[\]]/g, '')
  try {
    await server.listen({ host, port: Number(address.slice(at + 1)) })
    closing.defer(() => server.drain(0))
  } catch (cause) {
    if (isFatal) throw new ProgramError(`failed to listen on ${address}: ${(cause as Error).message}`, { cause })
    log.error(cause, 'A port could not be had', { address })
  }
}
