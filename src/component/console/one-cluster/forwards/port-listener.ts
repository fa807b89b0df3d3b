/** Listens on a free port of loopback, IPv4 and IPv6. */
import { createServer, type Server, type Socket } from 'node:net'

import { listen } from '#lib/http/listen.ts'

export interface LoopbackPort {
  readonly port: number
  close(): void
}

/** Both have the same port, so that no other program takes connections to the other address. */
const TRIES = 5
/** The machine has no IPv6. */
const NO_IPV6 = ['EADDRNOTAVAIL', 'EAFNOSUPPORT', 'EINVAL']

export async function listenOnLoopback(take: (socket: Socket) => void): Promise<LoopbackPort> {
  for (let tries = 1; ; tries++) {
    const first = serverFor(take)
    const bound = await listen(first, { host: '127.0.0.1', port: 0 })
    const port = 'port' in bound ? bound.port : 0
    const second = serverFor(take)
    const error = await listen(second, { host: '::1', port }).then(() => undefined, codeOf)
    if (error === undefined || NO_IPV6.includes(error)) {
      return { port, close: () => [first, second].forEach((server) => server.close()) }
    }
    first.close()
    if (tries === TRIES) throw new Error(`No port is free on both addresses of loopback: ${error}`)
  }
}

function codeOf(error: NodeJS.ErrnoException): string {
  return error.code ?? error.message
}

/** A client that has sent everything still gets the answer. */
function serverFor(take: (socket: Socket) => void): Server {
  return createServer({ allowHalfOpen: true, noDelay: true }, take)
}
