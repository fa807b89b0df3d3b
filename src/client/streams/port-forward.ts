/**
 * Forwards ports to a pod. All forwarded connections share one connection to the server, with a data stream and an
 * error stream for each.
 */
import { Duplex } from 'node:stream'

import type { WebSocketConnection } from '#lib/http/websocket.ts'
import { SpdyConnection } from '#lib/spdy/connection.ts'
import type { SpdyStream } from '#lib/spdy/stream.ts'

import { dialSpdy, dialWebSocket, type SpdyRequest, type StreamRequest } from './dial.ts'

const PROTOCOL = 'portforward.k8s.io'
/** SPDY tunneled through WebSocket. */
const TUNNEL = `SPDY/3.1+${PROTOCOL}`

export interface ForwardedStreams {
  readonly data: SpdyStream
  /** Empty unless the forwarding failed; the client does not write to it. */
  readonly errors: SpdyStream
}

export class PodPorts {
  readonly #spdy: SpdyConnection
  #nextRequest = 0

  constructor(spdy: SpdyConnection) {
    this.#spdy = spdy
  }

  /** Resolves when the connection is closed by either side. */
  get closed(): Promise<void> {
    return this.#spdy.closed
  }

  /** Opens a connection to a port of the pod. Rejects with SpdyError. */
  async connect(port: number): Promise<ForwardedStreams> {
    const request = String(this.#nextRequest++)
    const open = (type: string): Promise<SpdyStream> =>
      this.#spdy.open(
        new Map([
          ['streamtype', type],
          ['port', String(port)],
          ['requestid', request],
        ]),
      )
    const errors = await open('error')
    errors.end()
    return { errors, data: await open('data') }
  }

  close(): void {
    this.#spdy.close()
  }

  destroy(): void {
    this.#spdy.destroy()
  }
}

/** Throws StatusError, or Error with the server's message. */
export async function dialPodPorts(request: StreamRequest): Promise<PodPorts> {
  const tunnel = await dialWebSocket(request, TUNNEL)
  if (tunnel !== undefined) {
    return new PodPorts(new SpdyConnection(asDuplex(tunnel), { clock: request.clock, role: 'client' }))
  }
  return dialPodPortsBySpdy(request)
}

/** For connections whose credentials are not known here. Throws Error with the server's message. */
export async function dialPodPortsBySpdy(request: SpdyRequest): Promise<PodPorts> {
  const { spdy, protocol } = await dialSpdy(request, [PROTOCOL])
  if (protocol === PROTOCOL) return new PodPorts(spdy)
  spdy.destroy()
  throw new Error(`unable to negotiate protocol: client supports "${PROTOCOL}", server returned "${protocol}"`)
}

/** The byte stream of a connection's messages; message boundaries have no meaning. */
function asDuplex(connection: WebSocketConnection): Duplex {
  const messages = connection[Symbol.asyncIterator]()
  return new Duplex({
    read() {
      messages.next().then(
        ({ done, value }) => this.push(done === true ? null : value.data),
        (error: Error) => this.destroy(error),
      )
    },
    write(data: Buffer, _encoding, done) {
      void report(connection.send(data), done)
    },
    final(done) {
      void report(connection.close(), done)
    },
    destroy(error, done) {
      connection.destroy()
      done(error)
    },
  })
}

async function report(work: Promise<void>, done: (error?: Error) => void): Promise<void> {
  let failure: Error | undefined
  try {
    await work
  } catch (error) {
    failure = error as Error
  }
  done(failure)
}
