/** Binds a server to a port or a unix socket and reports the address. */
import { chmod, unlink } from 'node:fs/promises'
import type { Server, Socket } from 'node:net'
import { connect, createServer } from 'node:net'

/** Where to listen: a TCP address (port 0 picks a free one) or the path of a unix socket. */
export type ListenAddress =
  | { readonly host: string; readonly port: number; readonly reusePort?: boolean }
  | {
      readonly path: string
      /** Permissions of the socket file; only the owner may connect by default. */
      readonly mode?: number
    }

/** Where a server listens. */
export type BoundAddress = { readonly host: string; readonly port: number } | { readonly path: string }

/** A bound port without a server yet: connections wait until one accepts. */
export interface Listener {
  readonly address: BoundAddress
  /** Connections go to `take` from now on, first those that waited. */
  accept(take: (socket: Socket) => void): void
  /** No more connections are taken; those that still wait are dropped. */
  close(): void
}

/** Dead peers are noticed by TCP after this and a few probes. */
const TCP_KEEPALIVE_MS = 30_000

/** More may not wait for a server that is starting. */
const MAX_WAITING = 1000

/** Takes the port, so that it is known, and known to be ours, before there is a server to answer on it. */
export async function bind(address: ListenAddress): Promise<Listener> {
  const server = createServer({ noDelay: true, keepAlive: true, keepAliveInitialDelay: TCP_KEEPALIVE_MS })
  const waiting = new Set<Socket>()
  const hold = (socket: Socket): void => {
    if (waiting.size >= MAX_WAITING) return void socket.destroy()
    waiting.add(socket)
    socket.on('error', () => undefined)
    socket.once('close', () => waiting.delete(socket))
  }
  server.on('connection', hold)
  return {
    address: await listen(server, address),
    accept(take) {
      server.off('connection', hold)
      server.on('connection', take)
      const queued = [...waiting]
      waiting.clear()
      for (const socket of queued) take(socket)
    },
    close() {
      server.close()
      for (const socket of waiting) socket.destroy()
    },
  }
}

/**
 * Starts listening. The file of an unused Unix socket is removed first; a socket in use is refused, as a port in use
 * is.
 */
export async function listen(server: Server, address: ListenAddress): Promise<BoundAddress> {
  if ('path' in address) {
    if (await isStale(address.path)) await unlink(address.path)
    await open(server, { path: address.path })
    await chmod(address.path, address.mode ?? 0o600)
    return { path: address.path }
  }
  await open(server, { host: address.host, port: address.port, reusePort: address.reusePort === true })
  const bound = server.address()
  if (bound === null || typeof bound === 'string') throw new Error('The server stopped while it was starting')
  return { host: bound.address, port: bound.port }
}

function open(
  server: Server,
  options: { path: string } | { host: string; port: number; reusePort: boolean },
): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject)
    server.listen(options, () => {
      server.off('error', reject)
      // Accepting can fail later, as when file descriptors run out; that client tries again, the server goes on.
      server.on('error', () => undefined)
      resolve()
    })
  })
}

/** A socket file is stale when connecting to it is refused; when it does not exist there is nothing to take away. */
function isStale(path: string): Promise<boolean> {
  return new Promise((resolve) => {
    const probe = connect({ path })
    probe.once('connect', () => {
      probe.destroy()
      resolve(false)
    })
    probe.once('error', (error: NodeJS.ErrnoException) => resolve(error.code === 'ECONNREFUSED'))
  })
}
