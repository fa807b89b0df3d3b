/**
 * `pods/proxy`, `services/proxy` and `nodes/proxy`: streams a request to a port and the response back. Redirects are
 * rewritten and never followed. Follows upstream's apimachinery/pkg/util/proxy, v1.36.
 */
import { pipeline } from 'node:stream'

import { bodyOf } from '#component/forwarding/body.ts'
import { isWithheldFromBackends, requestHeaders, responseHeaders } from '#component/forwarding/headers.ts'
import type { Answer, Call } from '#component/requests/call.ts'
import type { Clock } from '#lib/clock.ts'
import type { HttpResponse } from '#lib/http/response.ts'
import { serviceUnavailableError } from '#meta/status-errors.ts'
import { needsCreate } from '#model/kubelet-paths.ts'

import type { Handler } from '../dispatch.ts'
import { admitConnect, type ConnectContext } from './context.ts'
import { dialText } from './dial-text.ts'
import { cleanPath, proxyPath } from './proxy-path.ts'
import { nodeTarget, podTarget, type ProxyRequest, type ProxyTarget, serviceTarget } from './proxy-target.ts'
import { relayed } from './relay.ts'
import { rewriteHtml } from './rewrite-html.ts'
import { type PageLocation, rewriteUrl } from './rewrite-url.ts'
import { passUpgrade } from './stream-upgrade.ts'

export interface ProxyKind {
  /** The kind of its options. */
  readonly options: string
  readonly target: (request: ProxyRequest) => Promise<ProxyTarget>
  /**
   * True if a request with this decoded and cleaned path needs the verb `create` in addition to the verb of its method.
   */
  readonly needsCreate: (path: string, isUpgrade: boolean) => boolean
}

const never = (): boolean => false

export const POD_PROXY: ProxyKind = { options: 'PodProxyOptions', target: podTarget, needsCreate: never }
export const SERVICE_PROXY: ProxyKind = { options: 'ServiceProxyOptions', target: serviceTarget, needsCreate: never }
/** The kubelet authenticates the API server, not the user, so only the API server can distinguish readers. */
export const NODE_PROXY: ProxyKind = {
  options: 'NodeProxyOptions',
  target: nodeTarget,
  needsCreate: (path, isUpgrade) => isUpgrade || needsCreate(path.split('/')[1] ?? ''),
}

/** A request to forward: target, path and query. */
interface Passage {
  readonly target: ProxyTarget
  readonly path: string
  readonly query: string
  readonly page: PageLocation
}

export function createProxyHandler(context: ConnectContext, kind: ProxyKind): Handler {
  return async (call, view) => {
    const { exchange, info } = call
    const { namespace, name: id, rest } = info
    const [requestPath, query] = splitQuery(exchange.path)
    const path = proxyPath(requestPath, rest.length)
    await admitConnect(call, view, kind.options, path === '' ? {} : { path })
    const isUpgrade = exchange.upgradeProtocol !== undefined
    if (kind.needsCreate(path, isUpgrade)) await call.demand('create')
    const target = await kind.target({ id, namespace, objects: view.services.objects, context })
    const isRoot = path === '' && (exchange.method === 'GET' || exchange.method === 'HEAD')
    if (isRoot && !isUpgrade) return toFolder(requestPath, query)
    const prefix = prefixOf(requestPath, rest.length)
    const page = { prefix, backendHost: target.host, requestHost: exchange.authority }
    const passage: Passage = { target, path: path === '' ? '/' : path, query, page }
    return isUpgrade ? upgrade(call, passage, context.clock) : pass(call, passage)
  }
}

/** Path and query, including the question mark. */
function splitQuery(target: string): [path: string, query: string] {
  const mark = target.indexOf('?')
  return mark < 0 ? [target, ''] : [target.slice(0, mark), target.slice(mark)]
}

/** Relative links of a first page work only if its path ends with a slash. */
function toFolder(requestPath: string, query: string): Answer {
  // Built from the cleaned path: two leading slashes would turn the next segment into a host.
  return { status: 301, contentType: '', body: '', headers: { Location: `${prefixOf(requestPath, 0)}/${query}` } }
}

function prefixOf(requestPath: string, rest: number): string {
  const segments = requestPath.split('/').filter((segment) => segment !== '')
  return `/${segments.slice(0, segments.length - rest).join('/')}`
}

function upgrade(call: Call, { target, path, query }: Passage, clock: Clock): Promise<Answer> {
  const url = `${target.scheme}://${target.host}`
  return passUpgrade(call, { client: target.client, url, path: `${path}${query}` }, clock)
}

async function pass(call: Call, { target, path, query, page }: Passage): Promise<Answer> {
  const { exchange } = call
  const url = `${target.scheme}://${target.host}`
  const forwarded = cleanPath(`${page.prefix}${path}`) + (path.endsWith('/') ? '/' : '')
  const headers = { ...requestHeaders(exchange, isWithheldFromBackends), 'x-forwarded-uri': forwarded }
  try {
    const request = {
      method: exchange.method,
      url,
      path: `${path}${query}`,
      headers,
      ...bodyOf(exchange),
      signal: call.signal,
    }
    return answerOf(await target.client.request(request), exchange.method, page)
  } catch (cause) {
    throw serviceUnavailableError(`error trying to reach service: ${dialText(cause, target.host)}`)
  }
}

function answerOf(response: HttpResponse, method: string, page: PageLocation): Answer {
  const { status, headers } = response
  const location = headers.location
  if (location !== undefined) headers.location = rewriteUrl(location, page)
  const rewritten = location === undefined && method !== 'HEAD' ? rewrittenBody(response, page) : undefined
  return {
    status,
    contentType: '',
    passedOn: responseHeaders(headers, rewritten === undefined ? [] : ['content-length']),
    ...relayed(response, rewritten),
  }
}

/** The HTML body; undefined for other types and for unknown encodings. */
function rewrittenBody({ headers, body }: HttpResponse, page: PageLocation): AsyncIterable<Buffer> | undefined {
  const [type = ''] = (headers['content-type'] ?? '').split(';')
  if (type.trim() !== 'text/html') return undefined
  const rewrite = (link: string): string => rewriteUrl(link, page)
  const encoding = headers['content-encoding'] ?? ''
  if (encoding === '') return rewriteHtml(body, rewrite)
  return encoding === 'gzip' ? rewriteGzip(body, rewrite) : undefined
}

function rewriteGzip(body: AsyncIterable<Buffer>, rewrite: (link: string) => string): AsyncIterable<Buffer> {
  const { createGunzip, createGzip } = process.getBuiltinModule('node:zlib')
  const packed = createGzip()
  // The last stream of the pipeline reports errors of all.
  pipeline(
    body,
    createGunzip(),
    (page: AsyncIterable<Buffer>) => rewriteHtml(page, rewrite),
    packed,
    () => undefined,
  )
  return packed
}
