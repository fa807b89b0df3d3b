/**
 * Proxies an authorized request to an aggregated server: user headers are added, everything else passes unchanged, as
 * does the response. Redirects are neither followed nor passed on: they would lead clients, with their credentials, to
 * any address (CVE-2022-3172). Follows upstream's kube-aggregator/pkg/apiserver/handler_proxy.go, v1.36.
 */
import { relayed } from '#apiserver/connect/relay.ts'
import { passUpgrade } from '#apiserver/connect/stream-upgrade.ts'
import { bodyOf } from '#component/forwarding/body.ts'
import {
  isWithheldFromBackends,
  requestHeaders,
  type RequestHeaders,
  responseHeaders,
  upgradeHeaders,
} from '#component/forwarding/headers.ts'
import type { Answer, Call, WholeAnswer } from '#component/requests/call.ts'
import { isLongRunning } from '#component/requests/inflight.ts'
import type { Clock } from '#lib/clock.ts'
import type { HttpResponse } from '#lib/http/response.ts'

import { failureText, type FrontProxy, userHeaders } from './front-proxy.ts'
import type { Remote } from './roster.ts'

export interface PassingOn {
  readonly clock: Clock
  readonly frontProxy: FrontProxy
  /** The timeout of a complete response; long-running ones may take longer. */
  readonly requestTimeoutMs: number
  /** True if user headers include the uid. */
  readonly tellsUid: boolean
}

/** Discovery must be quick: clients request it from every server first. */
const DISCOVERY_TIMEOUT_MS = 5000

/** The client has received a timeout by then; this closes the connection. */
const LETTING_GO_MS = 1000

/** Never throws: errors are plain-text responses. */
export async function passOn(call: Call, remote: Remote, options: PassingOn): Promise<Answer> {
  if (!remote.isAvailable) return unavailable('service unavailable')
  const { frontProxy, clock } = options
  const { exchange } = call
  let url: string
  try {
    url = frontProxy.locate(remote)
  } catch {
    return unavailable('service unavailable')
  }
  const client = frontProxy.clientOf(remote)
  const path = exchange.path
  if (exchange.upgradeProtocol !== undefined) {
    const headers = headersFor(call, url, options, upgradeHeaders(exchange))
    const refuse = (text: string): Error => new Error(text)
    const passed = passUpgrade(call, { client, url, path, headers, refuse }, clock)
    return passed.catch((error: unknown) => unavailable((error as Error).message))
  }
  const headers = headersFor(call, url, options, requestHeaders(exchange, isWithheldFromBackends))
  const limit = timeLimitOf(call, options)
  try {
    const request = { method: exchange.method, url, path, headers, ...bodyOf(exchange), signal: call.signal, ...limit }
    return answerOf(await client.request(request))
  } catch (error) {
    return unavailable(`error trying to reach service: ${failureText(error, new URL(url).host)}`)
  }
}

/** User headers, host and audit ID; nothing else is added, and credentials for this server are removed. */
function headersFor(
  { user, auditId, exchange }: Call,
  url: string,
  { tellsUid }: PassingOn,
  passed: RequestHeaders,
): RequestHeaders {
  const { host } = new URL(url)
  const { host: _host, ...kept } = passed
  const known = tellsUid ? user : { ...user, uid: '' }
  const isUpgrade = exchange.upgradeProtocol !== undefined
  const [path = ''] = exchange.path.split('?')
  return {
    ...kept,
    'audit-id': auditId,
    ...userHeaders(known),
    ...(!isUpgrade && { 'x-forwarded-host': host, 'x-forwarded-proto': 'https', 'x-forwarded-uri': path }),
  }
}

function timeLimitOf({ info }: Call, { requestTimeoutMs }: PassingOn): { readonly timeoutMs?: number } {
  if (isLongRunning(info)) return {}
  const isDiscovery = !info.isResource && info.path.split('/').filter((part) => part !== '').length === 3
  return { timeoutMs: isDiscovery ? DISCOVERY_TIMEOUT_MS : requestTimeoutMs + LETTING_GO_MS }
}

function answerOf(response: HttpResponse): Answer {
  const { status, headers } = response
  if (status >= 300 && status < 400 && headers.location !== undefined) {
    response.discard()
    return plainText(502, 'the backend attempted to redirect this request, which is not permitted')
  }
  return { status, contentType: '', passedOn: responseHeaders(headers), ...relayed(response) }
}

function unavailable(text: string): WholeAnswer {
  const answer = plainText(503, `${text}\n`)
  return { ...answer, headers: { 'X-Content-Type-Options': 'nosniff' } }
}

function plainText(status: number, body: string): WholeAnswer {
  return { status, contentType: 'text/plain; charset=utf-8', body: Buffer.from(body) }
}
