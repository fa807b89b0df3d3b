/**
 * Decides which streams of the management server the agent of a machine serves. `machine` is for the cluster builder, two
 * names lead to the API server of control planes, other addresses only to allowed loopback ports.
 */
import { connectTo } from '#lib/tunnel/connect-to.ts'
import { REQUEST_PROTOCOL } from '#lib/tunnel/request-head.ts'
import type { Accept } from '#lib/tunnel/tunnel.ts'
import type { NodeRole } from '#supervisor/agent/parameters.ts'

import type { ApiServiceOptions } from './api-service.ts'

/** The name of the builder's service in addresses. */
const BUILDER = 'machine'
const API_SERVER = 'kube-apiserver'
/** The connections of the builder, which has its own credentials for the API server. */
const API_SERVER_PORT = 'kube-apiserver-port'
const toApiServer = connectTo(() => true)

export interface StreamOptions extends ApiServiceOptions {
  readonly roles: readonly NodeRole[]
  /** Ports of 127.0.0.1 that the server may connect to. */
  readonly loopbackPorts: ReadonlySet<string>
  readonly env: Readonly<Record<string, string | undefined>>
}

export function acceptStreams(options: StreamOptions, closing: AsyncDisposableStack): Accept {
  const { roles, loopbackPorts, env } = options
  const toPorts = connectTo((_, address) => {
    const [, port = ''] = /^(?:127\.0\.0\.1|localhost|\[::1\]):(\d+)$/.exec(address) ?? []
    return loopbackPorts.has(port)
  })
  const api = once(async () => (await import('./api-service.ts')).openApiService(options, closing))
  return (protocol, address) => {
    const [name = ''] = address.split(':')
    if (name === BUILDER && process.platform !== 'win32')
      return (stream) => {
        const served = import('#provision/tunnel/serve.ts').then(({ serveBuilder }) =>
          serveBuilder(stream, scriptEnv(env)),
        )
        served.catch((error: unknown) => stream.destroy(error as Error))
      }
    if (protocol === REQUEST_PROTOCOL && address === API_SERVER && roles.includes('controlplane'))
      return (stream) => {
        api().then(
          (proxy) => proxy.accept(stream),
          (error: unknown) => stream.destroy(error as Error),
        )
      }
    if (name === API_SERVER_PORT && roles.includes('controlplane')) return toApiServer('tcp', '127.0.0.1:6443')
    return toPorts(protocol, address)
  }
}

/** A failed attempt is repeated at the next call. */
function once<T>(open: () => Promise<T>): () => Promise<T> {
  let opening: Promise<T> | undefined
  return () => {
    opening ??= open().catch((error: unknown) => {
      opening = undefined
      throw error
    })
    return opening
  }
}

/** Without the token of the agent. */
function scriptEnv({ PATH, HOME, LANG }: StreamOptions['env']): StreamOptions['env'] {
  return { PATH: PATH ?? '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin', HOME: HOME ?? '/root', LANG }
}
