/**
 * Creates the spans of a request, with upstream's names and attributes: one for the request, one for each filter and
 * one for the verb.
 */
import type { RequestInfo } from '#auth/request-info.ts'
import type { User } from '#auth/user.ts'
import type { RequestTrace, TracedRequest, TraceRequest } from '#component/requests/request-filters.ts'
import type { FilterName, RequestMeter } from '#component/requests/request-meter.ts'
import type { Clock } from '#lib/clock.ts'
import { type Scope, withScope } from '#lib/tracing/active.ts'
import type { Attributes, InstrumentationScope, Span } from '#lib/tracing/span.ts'
import { readTraceContext } from '#lib/tracing/trace-context.ts'
import type { Tracer } from '#lib/tracing/tracer.ts'

import { scopeOf } from '../metrics/labels.ts'

const HTTP: InstrumentationScope = {
  name: 'go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp',
  version: '0.65.0',
}
/** Misspelt by upstream. */
const FILTERS: InstrumentationScope = { name: 'k8s.op/apiserver/pkg/endpoints/filterlatency', version: '' }

/** The users whose traces are continued: others could force tracing. */
const TRUSTED: ReadonlySet<string> = new Set(['system:masters', 'system:monitoring'])

export function createRequestTracing(tracer: Tracer, clock: Clock): TraceRequest {
  return (request) => new Trace(request, tracer, clock)
}

class Trace implements RequestTrace {
  readonly #request: TracedRequest
  readonly #tracer: Tracer
  readonly #startMs: number
  /** The current span, the parent of nested ones. */
  readonly #scope: Scope = { span: undefined }
  #whole: Span | undefined
  /** The last finished filter. */
  #filter: Span | undefined
  #handling: Span | undefined
  /** True if the event for the sent response was recorded. */
  #isRecorded = false

  constructor(request: TracedRequest, tracer: Tracer, clock: Clock) {
    this.#request = request
    this.#tracer = tracer
    this.#startMs = clock.elapsed()
  }

  metered(meter: RequestMeter): RequestMeter {
    return {
      identified: (result, userName) => meter.identified(result, userName),
      passed: (filter) => {
        meter.passed(filter)
        if (filter !== 'audit') this.#passed(filter)
      },
      decided: (result) => {
        meter.decided(result)
        this.#passed('authorization')
      },
      routed: () => meter.routed(),
      bodyRead: (bytes) => {
        meter.bodyRead(bytes)
        if (bytes > 0) this.#whole?.set({ 'http.request.body.size': bytes })
        this.#handling?.event('limitedReadBody succeeded', { len: bytes })
      },
      terminated: (code) => meter.terminated(code),
      aborted: () => meter.aborted(),
      finishedLate: (status) => meter.finishedLate(status),
      end: (code, bytes) => {
        meter.end(code, bytes)
        this.#end(code, bytes)
      },
    }
  }

  run<T>(work: () => Promise<T>): Promise<T> {
    return withScope(this.#scope, work)
  }

  identified({ groups }: User): void {
    const { exchange, info } = this.#request
    const origin = {
      remote: readTraceContext(exchange.headers),
      isStranger: !groups.some((group) => TRUSTED.has(group)),
      startMs: this.#startMs,
    }
    const plan = { kind: 'server', scope: HTTP, attributes: serverAttributes(this.#request) } as const
    this.#whole = this.#tracer.begin(spanName(exchange.method, info), plan, origin)
    this.#scope.span = this.#whole
    // Upstream has this span also without auditing.
    this.#passed('audit')
  }

  handling(): void {
    const { info } = this.#request
    const name = info.isResource ? HANDLERS[info.verb] : undefined
    if (name === undefined || this.#scope.span === undefined) return
    this.#handling = this.#scope.span.child(name, { attributes: handlerAttributes(this.#request) })
    this.#scope.span = this.#handling
    if (name === 'Get') this.#handling.event('About to Get from storage')
  }

  answering(): void {
    // Upstream omits this event for lists.
    this.#isRecorded = this.#request.info.verb !== 'list'
    if (this.#isRecorded) this.#handling?.event('About to write a response')
  }

  /** Each filter's span is a child of the previous one, although that has ended. */
  #passed(filter: FilterName): void {
    const name = filter === 'impersonation' ? 'constrainedimpersonation' : filter
    const span = (this.#filter ?? this.#whole)?.child(name, { scope: FILTERS, startMs: this.#filter?.endMs })
    if (span === undefined) return
    span.end()
    this.#filter = span
    this.#scope.span = span
  }

  #end(code: number, bytes: number | undefined): void {
    if (this.#isRecorded) this.#handling?.event('Writing http response done')
    this.#handling?.end()
    this.#whole?.set({
      ...(bytes !== undefined && { 'http.response.body.size': bytes }),
      'http.response.status_code': code,
    })
    if (code >= 500) this.#whole?.fail('')
    this.#whole?.end()
    this.#scope.span = undefined
  }
}

/** The spans of verbs; a watch has none. */
const HANDLERS: Readonly<Record<string, string>> = {
  get: 'Get',
  list: 'List',
  create: 'Create',
  update: 'Update',
  patch: 'Patch',
  delete: 'Delete',
  deletecollection: 'Delete',
}

function spanName(method: string, info: RequestInfo): string {
  if (!info.isResource) return method
  const parts = [
    info.apiPrefix,
    info.group,
    info.version,
    info.namespace === '' ? '' : 'namespaces/{:namespace}',
    info.resource,
    info.name === '' ? '' : '{:name}',
    info.subresource,
  ]
  return `${method} /${parts.filter((part) => part !== '').join('/')}`
}

function serverAttributes({ exchange, info, auditId }: TracedRequest): Attributes {
  const { authority, method, peer, version, path, headers } = exchange
  const { host, port } = splitAuthority(authority)
  const agent = headers['user-agent'] ?? ''
  return {
    'server.address': host,
    'http.request.method': method,
    'url.scheme': peer.isEncrypted ? 'https' : 'http',
    ...(port > 0 && { 'server.port': port }),
    ...(peer.address !== '' && { 'network.peer.address': peer.address, 'network.peer.port': peer.port }),
    ...(agent !== '' && { 'user_agent.original': agent }),
    ...(peer.address !== '' && { 'client.address': peer.address }),
    'url.path': info.path,
    'network.protocol.version': version === '2' ? '2.0' : version,
    'http.target': path,
    'audit-id': auditId,
  }
}

function splitAuthority(authority: string): { readonly host: string; readonly port: number } {
  const [, host = authority, port = '0'] = /^(.*?)(?::(\d+))?$/.exec(authority) ?? []
  return { host: host.replace(/^\[(.*)\]$/, '$1'), port: Number(port) }
}

function handlerAttributes({ exchange, info, auditId }: TracedRequest): Attributes {
  const { headers, method, version, peer } = exchange
  return {
    accept: headers.accept ?? '',
    'audit-id': auditId,
    client: peer.address,
    'api-group': info.group,
    'api-version': info.version,
    name: info.name,
    subresource: info.subresource,
    namespace: info.namespace,
    protocol: version === '2' ? 'HTTP/2.0' : `HTTP/${version}`,
    resource: info.resource,
    scope: scopeOf(info),
    url: info.path,
    'user-agent': headers['user-agent'] ?? '',
    verb: info.verb === 'list' ? 'LIST' : method,
  }
}
