/** Binding a server to a port or a unix socket, and telling where it ended up. */
import { chmod, unlink } from 'node:fs/promises'
import type { Server } from 'node:net'
import { connect } from 'node:net'

/** Where to listen: a TCP address (port 0 picks a free one) or the path of a unix socket. */
export type ListenAddress =
  | { readonly host: string; readonly port: number; readonly reusePort?: boolean }
  | {
      readonly path: string
      /** Permissions of the socket file; only the owner may connect unless told. */
      readonly mode?: number
    }

/** Where a server listens. */
export type BoundAddress = { readonly host: string; readonly port: number } | { readonly path: string }

/**
 * Starts listening. The file of a unix socket that nobody listens on any more is taken away first; one that is in use
 * is left alone and refused, as a port in use is.
 */
export async function listen(server: Server, address: ListenAddress): Promise<BoundAddress> {
  if ('path' in address) {
    if (await isStale(address.path)) await unlink(address.path)
    await bind(server, { path: address.path })
    await chmod(address.path, address.mode ?? 0o600)
    return { path: address.path }
  }
  await bind(server, { host: address.host, port: address.port, reusePort: address.reusePort === true })
  const bound = server.address()
  if (bound === null || typeof bound === 'string') throw new Error('The server stopped while it was starting')
  return { host: bound.address, port: bound.port }
}

function bind(
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
