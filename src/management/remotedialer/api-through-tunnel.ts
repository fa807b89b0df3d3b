/**
 * Does in the server what our own agent does in the cluster, for Rancher's agent: TLS to the API server through the
 * tunnel, the check of the user, impersonation, and the service account token.
 */
import { Duplex, duplexPair } from 'node:stream'
import { checkServerIdentity, connect, type TLSSocket } from 'node:tls'

import { Namespaces } from '#apis/core/v1.ts'
import { ClusterRoleBindings } from '#apis/rbac/v1.ts'
import { ApiClient } from '#client/api-client.ts'
import { createApiProxy } from '#cluster-agent/api-proxy.ts'
import type { Clock } from '#lib/clock.ts'
import { createHttpClient, type HttpRequest } from '#lib/http/client.ts'
import type { Logger } from '#lib/log/log.ts'
import type { Tunnel } from '#lib/tunnel/tunnel.ts'
import { isAlreadyExists } from '#meta/status.ts'
import { userAgent } from '#model/version.ts'

import { ownerBinding } from '../clusters/access-objects.ts'
import type { ApiCredential } from './parameters.ts'

export interface ApiThroughTunnel {
  /** A stream that takes one request as our own agent does, with the user in impersonation headers. */
  dial(): Duplex
  /** Binds the owners of the server, and returns the uid of the namespace kube-system. */
  prepare(signal: AbortSignal): Promise<string>
  close(): Promise<void>
}

const HANDSHAKE_MS = 15_000

export function apiThroughTunnel(
  tunnel: Tunnel,
  { address, token, certificateAuthority }: ApiCredential,
  { clock, log }: { readonly clock: Clock; readonly log: Logger },
): ApiThroughTunnel {
  const authority = certificateAuthority === '' ? undefined : certificateAuthority
  const client = createHttpClient({
    clock,
    http1Only: true,
    connect: () => secured(tunnel.dial('tcp', address), { address, authority, clock }),
  })
  const withToken = <R extends Pick<HttpRequest, 'headers'>>(request: R): R => ({
    ...request,
    headers: { ...request.headers, authorization: `Bearer ${token}` },
  })
  // The scheme only says that `connect` makes the connections, which are TLS.
  const server = `http://${address}`
  const transport = { request: (request: HttpRequest) => client.request(withToken(request)) }
  const upgrade: typeof client.upgrade = (request) => client.upgrade(withToken(request))
  const proxy = createApiProxy({ connection: { transport, upgrade, server }, clock, log })
  const api = new ApiClient({ transport, server, clock, userAgent: userAgent('hyperkube-server') })
  return {
    dial() {
      const [ours, theirs] = duplexPair()
      ours.destroy = givenUp
      proxy.accept(theirs)
      return ours
    },
    async prepare(signal) {
      await api.create(ClusterRoleBindings, ownerBinding(), { signal }).catch((error: unknown) => {
        if (!isAlreadyExists(error)) throw error
      })
      const { metadata } = await api.get(Namespaces, { name: 'kube-system' }, { signal })
      return metadata.uid ?? ''
    },
    async close() {
      client.close()
      await proxy.close()
    },
  }
}

/** Without an error, the proxy would take the part of a request that it has for the whole. */
function givenUp(this: Duplex, error: Error = new Error('The request was given up')): Duplex {
  return Duplex.prototype.destroy.call(this, error)
}

interface Security {
  readonly address: string
  /** PEM; undefined: the public authorities. */
  readonly authority: string | undefined
  readonly clock: Clock
}

/** The agent copies bytes only: without TLS to the API server, an attacker between it and us could read the token. */
function secured(stream: Duplex, { address, authority, clock }: Security): Promise<TLSSocket> {
  const host = address.slice(0, address.lastIndexOf(':')).replace(/^\[(.*)\]$/, '$1')
  const { promise, resolve, reject } = Promise.withResolvers<TLSSocket>()
  const isName = /[a-z]/i.test(host) && !host.includes(':')
  const socket = connect({
    socket: stream,
    minVersion: 'TLSv1.2',
    ALPNProtocols: ['http/1.1'],
    checkServerIdentity: (_host, certificate) => checkServerIdentity(host, certificate),
    ...(isName && { servername: host }),
    ...(authority !== undefined && { ca: authority }),
  })
  const timer = clock.after(HANDSHAKE_MS, () => socket.destroy(new Error('no TLS handshake')), { background: true })
  // The user of the socket receives errors too; none may be unhandled.
  socket.on('error', reject)
  socket.on('close', () => {
    timer.cancel()
    stream.destroy()
    reject(new Error('the connection to the API server was closed'))
  })
  stream.on('error', (error) => socket.destroy(error))
  socket.once('secureConnect', () => {
    timer.cancel()
    resolve(socket)
  })
  return promise
}
