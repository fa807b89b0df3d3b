/** Opens the health and metrics ports of kube-proxy, without TLS as in upstream. */
import type { Node } from '#apis/core/v1.ts'
import { type PagesOptions, servePages } from '#lib/http/pages.ts'
import { METRICS_CONTENT_TYPE, type Registry } from '#lib/metrics/metrics.ts'

import { healthz, type HealthFacts, livez } from './health.ts'
import type { ProxyMeters } from './proxy-metrics.ts'

export interface HealthPages {
  readonly meters: ProxyMeters
  readonly facts: () => HealthFacts
  readonly node: () => Node | undefined
}

/** `host:port`; empty: disabled. Throws ProgramError. */
export async function serveHealth(address: string, pages: HealthPages, options: PagesOptions): Promise<void> {
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
  options: PagesOptions,
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
