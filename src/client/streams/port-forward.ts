/** Ports of a pod: many connections over one, each with a stream for its bytes and one for what goes wrong. */
import { Duplex } from 'node:stream'

import { SpdyConnection } from '#lib/spdy/connection.ts'
import type { SpdyStream } from '#lib/spdy/stream.ts'
import type { WebSocketConnection } from '#lib/websocket.ts'

import { dialSpdy, dialWebSocket, type StreamAsk } from './dial.ts'

const PROTOCOL = 'portforward.k8s.io'
/** SPDY inside of WebSocket. */
const TUNNEL = `SPDY/3.1+${PROTOCOL}`

export interface ForwardedStreams {
  readonly data: SpdyStream
  /** Empty unless something went wrong; it is not written to. */
  readonly errors: SpdyStream
}

export class PodPorts {
  readonly #spdy: SpdyConnection
  #nextRequest = 0

  constructor(spdy: SpdyConnection) {
    this.#spdy = spdy
  }

  /** Resolves when the connection is gone, whoever ended it. */
  get closed(): Promise<void> {
    return this.#spdy.closed
  }

  /** A connection to a port of the pod. Rejects with SpdyError. */
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

/** Throws StatusError, or Error with what the server said. */
export async function dialPodPorts(ask: StreamAsk): Promise<PodPorts> {
  const tunnel = await dialWebSocket(ask, TUNNEL)
  if (tunnel !== undefined) {
    return new PodPorts(new SpdyConnection(asDuplex(tunnel), { clock: ask.clock, role: 'client' }))
  }
  const { spdy, protocol } = await dialSpdy(ask, [PROTOCOL])
  if (protocol === PROTOCOL) return new PodPorts(spdy)
  spdy.destroy()
  throw new Error(`unable to negotiate protocol: client supports "${PROTOCOL}", server returned "${protocol}"`)
}

/** Messages as bytes, whose borders mean nothing. */
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
