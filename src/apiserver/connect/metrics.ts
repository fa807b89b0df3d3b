/** How often connections were made and in which way, under upstream's names. */
import type { Registry } from '#lib/metrics.ts'

export interface ConnectMetrics {
  /** A log was asked for; `isVerified`: of a kubelet whose certificate is checked. */
  logAsked(isVerified: boolean): void
  /** The kubelet's certificate was not what it should be. */
  logTlsFailed(): void
  /** An exec, attach or port forwarding goes its way. */
  streaming(subresource: string, isTranslated: boolean): void
  /** A translated exec or attach is over; `code` of how. */
  translated(code: number): void
  /** An unwrapped port forwarding has begun, or not. */
  tunneled(code: number): void
}

export function createConnectMetrics(registry: Registry | undefined): ConnectMetrics {
  return registry === undefined ? UNCOUNTED : counted(registry)
}

const UNCOUNTED: ConnectMetrics = {
  logAsked: nothing,
  logTlsFailed: nothing,
  streaming: nothing,
  translated: nothing,
  tunneled: nothing,
}

function nothing(): void {}

function counted(registry: Registry): ConnectMetrics {
  const stability = 'ALPHA'
  const asked = registry.counter({
    name: 'kube_apiserver_pod_logs_insecure_backend_total',
    help: 'Logs asked for, by whether the certificate of the kubelet is checked: enforce_tls, skip_tls_allowed.',
    stability,
    labels: ['usage'],
  })
  const failed = registry.counter({
    name: 'kube_apiserver_pod_logs_backend_tls_failure_total',
    help: 'Logs that could not be had because the certificate of the kubelet is not trusted.',
    stability,
    labels: [],
  })
  const streaming = registry.counter({
    name: 'apiserver_websocket_streaming_requests_total',
    help: 'Exec, attach and port forwarding, by subresource and by who translates: proxied_to_kubelet, translated_at_apiserver.',
    stability,
    labels: ['subresource', 'proxy_type'],
  })
  const translated = registry.counter({
    name: 'apiserver_stream_translator_requests_total',
    help: 'Exec and attach by WebSocket that were translated to SPDY, by code.',
    stability,
    labels: ['code'],
  })
  const tunneled = registry.counter({
    name: 'apiserver_stream_tunnel_requests_total',
    help: 'Port forwarding by WebSocket that was unwrapped to SPDY, by code.',
    stability,
    labels: ['code'],
  })
  return {
    logAsked: (isVerified) => asked.labels(isVerified ? 'enforce_tls' : 'skip_tls_allowed').inc(),
    logTlsFailed: () => failed.labels().inc(),
    streaming: (subresource, isTranslated) =>
      streaming.labels(subresource, isTranslated ? 'translated_at_apiserver' : 'proxied_to_kubelet').inc(),
    translated: (code) => translated.labels(String(code)).inc(),
    tunneled: (code) => tunneled.labels(String(code)).inc(),
  }
}
