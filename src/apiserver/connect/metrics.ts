/** Metrics of connections, under upstream's names. */
import type { ServerMeters } from '#model/metrics/families.ts'

export interface ConnectMetrics {
  /** Counts a log request; `isVerified` if the kubelet's certificate is verified. */
  logRequested(isVerified: boolean): void
  /** Counts a failed verification of a kubelet's certificate. */
  logTlsFailed(): void
  /** Counts an exec, attach or port-forward. */
  streaming(subresource: string, isTranslated: boolean): void
  /** Counts a finished translated exec or attach with its code. */
  translated(code: number): void
  /** Counts a tunneled port-forward and its result. */
  tunneled(code: number): void
}

export function createConnectMetrics(meters: ServerMeters): ConnectMetrics {
  const logRequests = meters.family('kube_apiserver_pod_logs_insecure_backend_total')
  const failed = meters.family('kube_apiserver_pod_logs_backend_tls_failure_total').labels()
  const streaming = meters.family('apiserver_websocket_streaming_requests_total')
  const translated = meters.family('apiserver_stream_translator_requests_total')
  const tunneled = meters.family('apiserver_stream_tunnel_requests_total')
  return {
    logRequested: (isVerified) => logRequests.labels(isVerified ? 'enforce_tls' : 'skip_tls_allowed').inc(),
    logTlsFailed: () => failed.inc(),
    streaming: (subresource, isTranslated) =>
      streaming.labels(subresource, isTranslated ? 'translated_at_apiserver' : 'proxied_to_kubelet').inc(),
    translated: (code) => translated.labels(String(code)).inc(),
    tunneled: (code) => tunneled.labels(String(code)).inc(),
  }
}
