/**
 * The HTTP endpoint to which kube-apiserver sends TokenReviews. It speaks plain HTTP, so it must listen on loopback
 * only.
 */
import type { Clock } from '#lib/clock.ts'
import { BodyError, type Exchange, type HeaderList } from '#lib/http/exchange.ts'
import { createHttpServer, type HttpServer } from '#lib/http/server.ts'
import type { Logger } from '#lib/log/log.ts'
import { parseIp } from '#lib/net/cidr.ts'

import type { AuthRecords } from './records.ts'
import { answerReview, parseReview } from './review.ts'

export interface EndpointOptions {
  readonly clock: Clock
  readonly log: Logger
  /** Undefined: not known yet. */
  readonly records: () => AuthRecords | undefined
}

interface EndpointAnswer {
  readonly status: number
  readonly headers?: HeaderList
  readonly body: string | object
}

type Serve = (options: EndpointOptions, exchange: Exchange) => Promise<EndpointAnswer>

const MAX_BODY_BYTES = 64 << 10

const ROUTES: ReadonlyMap<string, readonly [method: string, serve: Serve]> = new Map([
  ['/v1/authenticate', ['POST', authenticate]],
  ['/healthcheck', ['GET', healthcheck]],
] as const)

/** The caller listens on it and drains it. */
export function createAuthEndpoint(options: EndpointOptions): HttpServer {
  const { clock, log } = options
  return createHttpServer({
    clock,
    onError: (error) => log.error(error, 'Failed to serve a request'),
    async serve(exchange) {
      const { status, headers = [], body } = await answerOf(options, exchange)
      const [type, text] = typeof body === 'string' ? ['text/plain', body] : ['application/json', JSON.stringify(body)]
      exchange.respond(status, ['Content-Type', type, ...headers], Buffer.from(`${text}\n`))
    },
  })
}

async function answerOf(options: EndpointOptions, exchange: Exchange): Promise<EndpointAnswer> {
  // API servers add the query `timeout`.
  const [method, serve] = ROUTES.get(exchange.path.split('?', 1)[0] ?? '') ?? []
  if (method === undefined || serve === undefined) return { status: 404, body: 'not found' }
  if (exchange.method !== method) return { status: 405, headers: ['Allow', method], body: 'method not allowed' }
  return serve(options, exchange)
}

async function authenticate({ records, clock, log }: EndpointOptions, exchange: Exchange): Promise<EndpointAnswer> {
  let text: string
  try {
    text = (await exchange.readBody(MAX_BODY_BYTES)).toString()
  } catch (error) {
    if (!(error instanceof BodyError)) throw error
    return { status: error.code === 'too-large' ? 413 : 408, body: error.message }
  }
  const review = parseReview(text)
  if (review === undefined) return { status: 400, body: 'the body is no TokenReview of authentication.k8s.io' }
  return { status: 200, body: answerReview(review, { records: records(), nowMs: clock.now(), log }) }
}

function healthcheck({ records }: EndpointOptions): Promise<EndpointAnswer> {
  const isReady = records() !== undefined
  return Promise.resolve(
    isReady ? { status: 200, body: 'ok' } : { status: 503, body: 'the tokens of the cluster are not known yet' },
  )
}

/** The address of `host:port`. Undefined: it is not one of loopback. */
export function loopbackAddress(text: string): { readonly host: string; readonly port: number } | undefined {
  const [, bracketed, plain = bracketed ?? '', port = ''] = /^(?:\[([\da-f:]+)\]|([^:]+)):(\d{1,5})$/i.exec(text) ?? []
  const host = plain === 'localhost' ? '127.0.0.1' : plain
  const ip = parseIp(host)
  const isLoopback = ip !== undefined && (ip.family === 4 ? ip.value >> 24n === 127n : ip.value === 1n)
  return isLoopback && Number(port) <= 65_535 ? { host, port: Number(port) } : undefined
}
