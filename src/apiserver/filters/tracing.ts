/**
 * Spans of requests, by the names and attributes that upstream's have: one for the request from the moment it is known who
 * asks, within it one for each filter, and within the last the work of the verb. Made only where a tracer is given.
 */
import type { Clock } from '#lib/clock.ts'
import type { Exchange } from '#lib/http/exchange.ts'
import { type Scope, withScope } from '#lib/tracing/active.ts'
import type { Attributes, InstrumentationScope, Span } from '#lib/tracing/span.ts'
import { readTraceContext } from '#lib/tracing/trace-context.ts'
import type { Tracer } from '#lib/tracing/tracer.ts'

import { scopeOf } from '../metrics/labels.ts'
import type { Filter, RequestMeter } from '../metrics/requests.ts'
import type { User } from '../registry/resource.ts'
import type { RequestInfo } from '../request-info.ts'

export interface TracedRequest {
  readonly exchange: Exchange
  readonly info: RequestInfo
  readonly auditId: string
}

export interface RequestTrace {
  /** The meter, which tells the trace as well how far the request has come. */
  metered(meter: RequestMeter): RequestMeter
  /** Runs what answers the request; what it does from `identified` on is part of the trace. */
  run<T>(work: () => Promise<T>): Promise<T>
  identified(user: User): void
  /** Its verb does its work from here on. */
  handling(): void
  /** There is an answer, which is sent now. */
  answering(): void
}

export type TraceRequest = (request: TracedRequest) => RequestTrace

const HTTP: InstrumentationScope = {
  name: 'go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp',
  version: '0.65.0',
}
/** Misspelt by upstream. */
const FILTERS: InstrumentationScope = { name: 'k8s.op/apiserver/pkg/endpoints/filterlatency', version: '' }

/** Whose traces are continued: others could have everything of theirs traced. */
const TRUSTED: ReadonlySet<string> = new Set(['system:masters', 'system:monitoring'])

export function createRequestTracing(tracer: Tracer, clock: Clock): TraceRequest {
  return (request) => new Trace(request, tracer, clock)
}

class Trace implements RequestTrace {
  readonly #request: TracedRequest
  readonly #tracer: Tracer
  readonly #startMs: number
  /** What is going on now, for all that happens meanwhile. */
  readonly #scope: Scope = { span: undefined }
  #whole: Span | undefined
  /** The last that was left. */
  #filter: Span | undefined
  #handling: Span | undefined
  /** Whether it was said that the answer is sent. */
  #isToldOf = false

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
      judged: (result) => {
        meter.judged(result)
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
    // Upstream has this one too where nothing is put on record.
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
    // Upstream says nothing of this where it lists.
    this.#isToldOf = this.#request.info.verb !== 'list'
    if (this.#isToldOf) this.#handling?.event('About to write a response')
  }

  /** Each filter is within the one before, though that has ended. */
  #passed(filter: Filter): void {
    const name = filter === 'impersonation' ? 'constrainedimpersonation' : filter
    const span = (this.#filter ?? this.#whole)?.child(name, { scope: FILTERS, startMs: this.#filter?.endMs })
    if (span === undefined) return
    span.end()
    this.#filter = span
    this.#scope.span = span
  }

  #end(code: number, bytes: number | undefined): void {
    if (this.#isToldOf) this.#handling?.event('Writing http response done')
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
