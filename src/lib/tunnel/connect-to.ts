/** Serves tunnel streams by opening TCP connections from this machine. */
import { connect, type Socket } from 'node:net'
import type { Duplex } from 'node:stream'

import type { Accept } from './tunnel.ts'

/** Connects to the addresses that `allows` accepts, such as `tcp` and `127.0.0.1:10250`. */
export function connectTo(allows: (protocol: string, address: string) => boolean): Accept {
  return (protocol, address) => {
    const colon = address.lastIndexOf(':')
    const port = Number(address.slice(colon + 1))
    const isPort = Number.isInteger(port) && port > 0 && port < 65_536
    if (protocol !== 'tcp' || colon < 0 || !isPort || !allows(protocol, address)) return undefined
    const host = address.slice(0, colon).replace(/^\[(.*)\]$/, '$1')
    return (stream) => joinSocket(stream, connect({ host, port, allowHalfOpen: true, noDelay: true }))
  }
}

/** Copies in both directions until both have ended. Both directions of the socket must be able to end independently. */
export function joinSocket(stream: Duplex, socket: Socket): void {
  socket.on('error', (error) => stream.destroy(error))
  // After its end, the stream may still have bytes to send.
  socket.on('close', () => {
    if (!stream.writableEnded) stream.destroy()
  })
  stream.on('close', () => {
    if (stream.errored) socket.resetAndDestroy()
    else if (stream.readableEnded) socket.destroySoon()
    else socket.destroy()
  })
  stream.pipe(socket)
  socket.pipe(stream)
}
