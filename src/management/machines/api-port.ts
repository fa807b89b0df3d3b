/**
 * Opens a local port (127.0.0.1) that forwards connections to an API server through a tunnel, for clients such as
 * kubectl. It adds no credentials: TLS is between client and API server.
 */
import { once } from 'node:events'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import type { Duplex } from 'node:stream'

import { joinSocket } from '#lib/tunnel/connect-to.ts'

/** `dial` returns undefined while there is no tunnel: the connection ends then. Returns the port. */
export async function openApiPort(dial: () => Duplex | undefined, closing: AsyncDisposableStack): Promise<number> {
  const sockets = new Set<Socket>()
  const server = createServer({ allowHalfOpen: true, noDelay: true }, (socket) => {
    sockets.add(socket)
    socket.on('close', () => sockets.delete(socket))
    const stream = dial()
    if (stream === undefined) socket.destroy()
    else joinSocket(stream, socket)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  closing.defer(async () => {
    const closed = once(server, 'close')
    server.close()
    for (const socket of sockets) socket.destroy()
    await closed
  })
  return (server.address() as AddressInfo).port
}
