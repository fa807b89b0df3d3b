/** Opens sockets of the HTTP client, with its TLS settings. */
import type { Socket } from 'node:net'
import { connect as connectNet, isIP } from 'node:net'
import type { ConnectionOptions, PeerCertificate } from 'node:tls'
import { checkServerIdentity, connect as connectTls, TLSSocket } from 'node:tls'

import { onAbort } from '../abort.ts'
import type { Clock } from '../clock.ts'
import { HttpError, type HttpErrorCode } from './http-error.ts'

export interface ClientTls {
  /** PEM of the authorities to trust, instead of the public ones. */
  readonly ca?: string
  readonly certificate?: string
  readonly key?: string
  /** Accepts any certificate. Only for callers that ask for it explicitly. */
  readonly insecure?: boolean
  /** Name to ask for and to expect in the certificate, when it is not the host's. */
  readonly serverName?: string
}

/** Where to connect to. */
export interface Origin {
  readonly isSecure: boolean
  readonly host: string
  readonly port: number
  /** Connects to this Unix socket, whatever the host is. */
  readonly socketPath?: string
}

export interface DialOptions {
  readonly clock: Clock
  readonly tls: ClientTls
  readonly timeoutMs: number
  /** Protocols to offer, best first. */
  readonly alpn: readonly string[]
  readonly signal?: AbortSignal
}

/** A connected socket, after its TLS handshake. Rejects with `HttpError`. */
export function dial(origin: Origin, options: DialOptions): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = openSocket(origin, options)
    const fail = (code: HttpErrorCode, reason: string, cause?: unknown): void => {
      finish()
      socket.destroy()
      reject(new HttpError(code, `Cannot connect to "${describe(origin)}": ${reason}`, { cause }))
    }
    const onError = (error: Error): void => fail('connect', reasonOf(error), error)
    const onClose = (): void => fail('connect', 'the server closed the connection')
    const timer = options.clock.after(options.timeoutMs, () =>
      fail('timeout', `no answer within ${options.timeoutMs} ms`),
    )
    let release = (): void => undefined
    const finish = (): void => {
      timer.cancel()
      release()
      socket.off('error', onError)
      socket.off('close', onClose)
      // The user of the socket handles later errors; none may be unhandled.
      socket.on('error', () => undefined)
    }
    socket.on('error', onError)
    socket.on('close', onClose)
    socket.once(socket instanceof TLSSocket ? 'secureConnect' : 'connect', () => {
      finish()
      resolve(socket)
    })
    // Last: the signal may be aborted already.
    release = onAbort(options.signal, () => fail('aborted', 'given up', options.signal?.reason))
  })
}

/** A socket that is connecting, to be listened to by the caller. */
export function openSocket(
  { isSecure, host, port, socketPath }: Origin,
  { tls, alpn }: Pick<DialOptions, 'tls' | 'alpn'>,
): Socket {
  const where = socketPath === undefined ? { host, port } : { path: socketPath }
  if (!isSecure) return connectNet({ ...where, noDelay: true, keepAlive: true })
  const serverName = tls.serverName ?? host
  const options: ConnectionOptions = {
    ...where,
    ALPNProtocols: [...alpn],
    minVersion: 'TLSv1.2',
    rejectUnauthorized: tls.insecure !== true,
    // The host, not the address that it was resolved to.
    checkServerIdentity: (_host, certificate) => identityFault(serverName, certificate),
    // SNI does not allow addresses; the certificate is checked against the host all the same.
    ...(isIP(serverName) === 0 ? { servername: serverName } : {}),
    // Like Go, every listed certificate is trusted, even if no listed authority signed it: envtest lists a webhook's
    // own certificate.
    ...(tls.ca === undefined ? {} : { ca: tls.ca, allowPartialTrustChain: true }),
    ...(tls.certificate === undefined ? {} : { cert: tls.certificate }),
    ...(tls.key === undefined ? {} : { key: tls.key }),
  }
  const socket = connectTls(options)
  socket.setNoDelay(true)
  socket.setKeepAlive(true)
  return socket
}

/** As in Node, except that the common name alone never identifies a server, as in Go. */
function identityFault(host: string, certificate: PeerCertificate): Error | undefined {
  if (certificate.subjectaltname !== undefined) return checkServerIdentity(host, certificate)
  const code = 'ERR_TLS_CERT_ALTNAME_INVALID'
  return Object.assign(new Error(`The certificate has no alternative names, "${host}" is expected`), {
    code,
    host,
    cert: certificate,
  })
}

function describe({ host, port, socketPath }: Origin): string {
  return socketPath ?? `${host}:${port}`
}

/** A host with several addresses fails with one error for each of them. */
function reasonOf(error: Error): string {
  if (error instanceof AggregateError && error.message === '') return error.errors.map(String).join('; ')
  return error.message
}
