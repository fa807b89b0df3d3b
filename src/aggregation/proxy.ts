/**
 * A request for another server, passed on after it was let in: who asks is said in headers, the rest goes as it came, and
 * so does the answer. Redirects are neither followed nor passed on: they would lead clients, with their credentials, to
 * wherever the other server likes (CVE-2022-3172). Follows upstream's kube-aggregator/pkg/apiserver/handler_proxy.go, v1.36.
 */
import type { Answer, Call, WholeAnswer } from '#apiserver/call.ts'
import {
  requestHeaders,
  type RequestHeaders,
  responseHeaders,
  upgradeHeaders,
} from '#apiserver/connect/forwarded-headers.ts'
import { bodyOf } from '#apiserver/connect/passed-body.ts'
import { relayed } from '#apiserver/connect/relay.ts'
import { passUpgrade } from '#apiserver/connect/stream-upgrade.ts'
import { isLongRunning } from '#apiserver/filters/inflight.ts'
import type { Clock } from '#lib/clock.ts'
import type { HttpResponse } from '#lib/http/response.ts'

import { failureText, type FrontProxy, userHeaders } from './front-proxy.ts'
import type { Remote } from './roster.ts'

export interface PassingOn {
  readonly clock: Clock
  readonly frontProxy: FrontProxy
  /** How long an answer may take, to its last byte; one without end by nature may take longer. */
  readonly requestTimeoutMs: number
  /** Whether other servers are told the uid of the user. */
  readonly tellsUid: boolean
}

/** Discovery must be quick: clients ask every server for it before they do anything. */
const DISCOVERY_TIMEOUT_MS = 5000

/** Who waits for the answer has been told that it is late by then; this lets go of the connection. */
const LETTING_GO_MS = 1000

/** Never throws: what goes wrong is an answer, as plain text. */
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
  const headers = headersFor(call, url, options, requestHeaders(exchange))
  const limit = timeLimitOf(call, options)
  try {
    const request = { method: exchange.method, url, path, headers, ...bodyOf(exchange), signal: call.signal, ...limit }
    return answerOf(await client.request(request))
  } catch (error) {
    return unavailable(`error trying to reach service: ${failureText(error, new URL(url).host)}`)
  }
}

/** Who asks, whom they asked and under which id; nothing else is added, and what only proves something to us is gone. */
function headersFor(
  { user, auditId, exchange }: Call,
  url: string,
  { tellsUid }: PassingOn,
  passed: RequestHeaders,
): RequestHeaders {
  const { host } = new URL(url)
  const { host: _asked, ...kept } = passed
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
