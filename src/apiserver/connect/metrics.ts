/** How often connections were made and in which way, under upstream's names. */
import type { ServerMeters } from '#model/metrics/families.ts'

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

export function createConnectMetrics(meters: ServerMeters): ConnectMetrics {
  const asked = meters.family('kube_apiserver_pod_logs_insecure_backend_total')
  const failed = meters.family('kube_apiserver_pod_logs_backend_tls_failure_total').labels()
  const streaming = meters.family('apiserver_websocket_streaming_requests_total')
  const translated = meters.family('apiserver_stream_translator_requests_total')
  const tunneled = meters.family('apiserver_stream_tunnel_requests_total')
  return {
    logAsked: (isVerified) => asked.labels(isVerified ? 'enforce_tls' : 'skip_tls_allowed').inc(),
    logTlsFailed: () => failed.inc(),
    streaming: (subresource, isTranslated) =>
      streaming.labels(subresource, isTranslated ? 'translated_at_apiserver' : 'proxied_to_kubelet').inc(),
    translated: (code) => translated.labels(String(code)).inc(),
    tunneled: (code) => tunneled.labels(String(code)).inc(),
  }
}
