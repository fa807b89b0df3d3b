/** The client of requests that travel on streams of a tunnel, one stream for each request. The heads are in `request-head.ts`. */
import type { Duplex } from 'node:stream'

import type { Clock } from '../clock.ts'
import { sendBody } from '../http/body.ts'
import type { HttpClient, HttpRequest, UpgradeResult } from '../http/client.ts'
import { headersOf } from '../http/exchange.ts'
import { HttpError } from '../http/http-error.ts'
import { type Limits, limitRequest, onFail } from '../http/request-limits.ts'
import { createResponse, type HttpResponse } from '../http/response.ts'
import { activeSpan } from '../tracing/active.ts'
import { withHttpSpan } from '../tracing/client-spans.ts'
import { announcedLength, decodeResponse, encodeHead, readHead } from './request-head.ts'
import type { TunnelRequest, TunnelResponse } from './request-head.ts'
import { TunnelError } from './tunnel-error.ts'

export type RequestClient = Pick<HttpClient, 'request' | 'upgrade'>

/** `dial` opens a stream to a server of requests. */
export function createRequestClient(clock: Clock, dial: () => Duplex): RequestClient {
  return {
    async request(request) {
      const span = activeSpan()
      if (span === undefined) return sendRequest(open(clock, dial, request), request)
      return withHttpSpan(span, { method: request.method ?? 'GET', url: new URL(request.url) }, (headers) => {
        const traced = { ...request, headers: { ...request.headers, ...headers } }
        return sendRequest(open(clock, dial, traced), traced)
      })
    },
    async upgrade(request) {
      const headers = { ...request.headers, ...activeSpan()?.headers() }
      return sendUpgrade(open(clock, dial, request), { ...request, headers })
    },
  }
}

interface OpenStream {
  readonly stream: Duplex
  readonly limits: Limits
}

function open(clock: Clock, dial: () => Duplex, request: HttpRequest): OpenStream {
  const limits = limitRequest(clock, request)
  const stream = dial()
  stream.on('error', () => undefined)
  stream.once('close', () => limits.release())
  onFail(limits, (error) => stream.destroy(error))
  return { stream, limits }
}

async function sendRequest(to: OpenStream, request: HttpRequest): Promise<HttpResponse> {
  const { body } = request
  const head = await exchangeHeads(to, request, body === undefined ? 'end' : 'body')
  if (head.status !== 101) return responseOf(to, head, request)
  to.stream.destroy()
  throw new HttpError('broken', 'The other side switched protocols without a request for an upgrade')
}

async function sendUpgrade(to: OpenStream, request: HttpRequest): Promise<UpgradeResult> {
  const head = await exchangeHeads(to, request, 'upgrade')
  if (head.status !== 101) return { isUpgraded: false, response: responseOf(to, head, request) }
  // From here on the stream is the caller's, and so is the time it takes.
  to.limits.release()
  return { isUpgraded: true, headers: headersOf(head.headers), socket: to.stream, head: Buffer.alloc(0) }
}

async function exchangeHeads(
  { stream, limits }: OpenStream,
  request: HttpRequest,
  follows: TunnelRequest['follows'],
): Promise<TunnelResponse> {
  try {
    const head = encodeHead(headOf(request, follows))
    if (follows === 'end') stream.end(head)
    else {
      // The head and a body that is already there leave together.
      stream.cork()
      process.nextTick(() => stream.uncork())
      stream.write(head)
      if (follows === 'body') sendBody(stream, request.body)
    }
    return decodeResponse(await readHead(stream))
  } catch (error) {
    stream.destroy()
    limits.release()
    throw limits.failure ?? asHttpError(error as Error)
  }
}

function headOf(
  { method = 'GET', url, path, headers = {}, body }: HttpRequest,
  follows: TunnelRequest['follows'],
): TunnelRequest {
  const list: string[] = []
  for (const name of Object.keys(headers)) {
    const value = headers[name] ?? []
    if (typeof value === 'string') list.push(name, value)
    else for (const one of value) list.push(name, one)
  }
  const isWhole = typeof body === 'string' || Buffer.isBuffer(body)
  if (isWhole && headers['content-length'] === undefined) list.push('content-length', String(Buffer.byteLength(body)))
  return { method, path: path ?? pathOf(new URL(url)), headers: list, follows }
}

function pathOf({ pathname, search }: URL): string {
  return pathname + search
}

function responseOf(
  { stream }: OpenStream,
  { status, headers: list }: TunnelResponse,
  { method }: HttpRequest,
): HttpResponse {
  const headers = headersOf(list)
  const hasNoBody = method === 'HEAD' || status === 204 || status === 304
  try {
    const lengthBytes = announcedLength(headers['content-length'])
    return createResponse(stream, { status, headers, version: '1.1' }, hasNoBody ? 0 : lengthBytes)
  } catch (error) {
    stream.destroy()
    throw asHttpError(error as Error)
  }
}

function asHttpError(error: Error): HttpError {
  if (error instanceof HttpError) return error
  if (error instanceof TunnelError && error.code === 'refused')
    return new HttpError(
      'connect',
      `The agent refused the request: ${error.message}; agents need the version of the server`,
      {
        cause: error,
      },
    )
  return new HttpError('broken', `The request failed: ${error.message}`, { cause: error })
}
