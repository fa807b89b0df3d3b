/** Creates client spans of HTTP and gRPC requests, with the names and attributes of OpenTelemetry's Go libraries. */
import type { InstrumentationScope, Span } from './span.ts'

const CONTRIB = 'go.opentelemetry.io/contrib/instrumentation'
const HTTP: InstrumentationScope = { name: `${CONTRIB}/net/http/otelhttp`, version: '0.65.0' }
const RPC: InstrumentationScope = { name: `${CONTRIB}/google.golang.org/grpc/otelgrpc`, version: '0.65.0' }

const DEFAULT_PORTS: Readonly<Record<string, number>> = { 'http:': 80, 'https:': 443 }

/** Sends a request with the headers of a new span, which ends with the head of the response. */
export async function withHttpSpan<R extends { readonly status: number; readonly version: string }>(
  within: Span,
  { method, url }: { readonly method: string; readonly url: URL },
  send: (headers: Record<string, string>) => Promise<R>,
): Promise<R> {
  const { hostname, port, protocol } = url
  const span = within.child(`HTTP ${method}`, {
    kind: 'client',
    scope: HTTP,
    attributes: {
      'http.request.method': method,
      'url.full': url.href,
      'server.address': hostname,
      'server.port': Number(port) || (DEFAULT_PORTS[protocol] ?? 0),
    },
  })
  try {
    const response = await send(span.headers())
    const { status, version } = response
    span.set({ 'network.protocol.version': version === '2' ? '2.0' : version, 'http.response.status_code': status })
    if (status >= 400) span.fail('')
    return response
  } catch (error) {
    span.fail((error as Error).message)
    throw error
  } finally {
    span.end()
  }
}

/** The same for a call by gRPC; `path` is `/service/method`. */
export async function withRpcSpan<R extends Uint8Array>(
  within: Span,
  { path, request }: { readonly path: string; readonly request: Uint8Array },
  send: (metadata: Record<string, string>) => Promise<R>,
): Promise<R> {
  const method = path.slice(1)
  const span = within.child(method, {
    kind: 'client',
    scope: RPC,
    attributes: { 'rpc.method': method, 'rpc.system.name': 'grpc' },
  })
  const message = (type: 'SENT' | 'RECEIVED', { length }: Uint8Array): void =>
    span.event('message', {
      'rpc.message.type': type,
      'rpc.message.id': 1,
      'rpc.message.compressed_size': length,
      'rpc.message.uncompressed_size': length,
    })
  try {
    message('SENT', request)
    const answer = await send(span.headers())
    message('RECEIVED', answer)
    span.set({ 'rpc.response.status_code': 'OK' })
    return answer
  } catch (error) {
    span.fail((error as Error).message)
    throw error
  } finally {
    span.end()
  }
}
