/**
 * A fake kubelet for tests: TLS that requires a client certificate, and scripted responses. It speaks SPDY as real
 * kubelets do.
 */
import type { Duplex } from 'node:stream'

import { realClock } from '#lib/clock.ts'
import type { Exchange } from '#lib/http/exchange.ts'
import { createHttpServer } from '#lib/http/server.ts'
import { secureRandom } from '#lib/random.ts'
import { SpdyConnection } from '#lib/spdy/connection.ts'
import type { SpdyStream } from '#lib/spdy/stream.ts'
import { type Authority, createAuthority } from '#lib/x509/authority.ts'

export interface StandInKubelet extends AsyncDisposable {
  readonly port: number
  readonly authority: Authority
  /** Its requests in order: method and path. */
  readonly asked: readonly string[]
  /** Headers of the last request. */
  readonly lastHeaders: Readonly<Record<string, unknown>>
  /** Common name of the certificate the last caller showed. */
  readonly caller: string
  /** Answers from now on. */
  answer: (exchange: Exchange) => void | Promise<void>
  /** Connections that are open. */
  readonly connections: number
}

const tools = { clock: realClock, random: secureRandom }

/** One authority for all tests: making keys is the slowest part. */
const authority: Authority = createAuthority({ commonName: 'kubernetes' }, tools)
const serving = authority.issue({ commonName: 'kubelet', names: { ips: ['127.0.0.1', '10.9.9.9'] }, purpose: 'server' })
const client = authority.issue({ commonName: 'kube-apiserver-kubelet-client', purpose: 'client' })

/** The client certificate of the API server for kubelets, and the CA that it trusts. */
export const kubeletTls: Readonly<Record<'ca' | 'certificate' | 'key', string>> = {
  ca: authority.certificatePem,
  certificate: client.certificatePem,
  key: client.keyPem,
}

export async function startStandInKubelet(): Promise<StandInKubelet> {
  const asked: string[] = []
  let lastHeaders: Readonly<Record<string, unknown>> = {}
  let caller = ''
  const server = createHttpServer({
    clock: realClock,
    upgrades: ['websocket', 'spdy/3.1'],
    tls: {
      certificate: serving.certificatePem,
      key: serving.keyPem,
      clientAuthorities: [authority.certificatePem],
    },
    serve(exchange) {
      asked.push(`${exchange.method} ${exchange.path}`)
      lastHeaders = { ...exchange.headers }
      if (!exchange.peer.isTrusted) return exchange.respond(401, [], 'Unauthorized')
      caller = exchange.peer.certificate?.subject ?? ''
      return kubelet.answer(exchange)
    },
  })
  const bound = await server.listen({ host: '127.0.0.1', port: 0 })
  const kubelet: StandInKubelet = {
    port: 'port' in bound ? bound.port : 0,
    authority,
    asked,
    get lastHeaders() {
      return lastHeaders
    },
    get caller() {
      return caller
    },
    get connections() {
      return server.connections
    },
    answer: (exchange) => exchange.respond(200, [], 'fine'),
    [Symbol.asyncDispose]: () => server.drain(0),
  }
  return kubelet
}

/** Streams of a SPDY session, by their type. */
export interface SpdySession {
  readonly connection: SpdyConnection
  /** The stream of a type, once the client has opened it. */
  readonly stream: (type: string) => Promise<SpdyStream>
}

/** Goes on in SPDY, speaking `protocol`. */
export function acceptSpdy(exchange: Exchange, protocol = 'v4.channel.k8s.io'): SpdySession {
  const { socket, head } = exchange.upgrade()
  socket.write(switching(`Upgrade: SPDY/3.1\r\nX-Stream-Protocol-Version: ${protocol}\r\n`))
  const streams = new Map<string, PromiseWithResolvers<SpdyStream>>()
  const slot = (type: string): PromiseWithResolvers<SpdyStream> => {
    const known = streams.get(type) ?? Promise.withResolvers<SpdyStream>()
    streams.set(type, known)
    return known
  }
  const connection = new SpdyConnection(socket, {
    clock: realClock,
    role: 'server',
    head,
    onStream: (stream) => slot(stream.headers.get('streamtype') ?? '').resolve(stream),
  })
  return { connection, stream: (type) => slot(type).promise }
}

export function switching(headers: string): string {
  return `HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\n${headers}\r\n`
}

/** Everything that comes until the other side ends. */
export async function textOf(source: Duplex | AsyncIterable<Buffer>): Promise<string> {
  let text = ''
  try {
    for await (const piece of source) text += (piece as Buffer).toString('latin1')
  } catch {
    // Cut: what came before counts.
  }
  return text
}
