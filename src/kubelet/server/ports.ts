/** The ports of a kubelet: the authenticated port (10250) and the optional read-only port (10255). */
import type { SecureVersion } from 'node:tls'

import type { Clock } from '#lib/clock.ts'
import { createHttpServer, type HttpServer, type HttpServerOptions } from '#lib/http/server.ts'
import type { CertificateAndKey } from '#lib/http/tls.ts'
import { type Certificate, parseBundle } from '#lib/x509/certificate.ts'

import type { AccessRules } from './access.ts'
import { createKubeletApi, type KubeletApiOptions } from './kubelet-api.ts'

/** Without a certificate ('') connections fail until there is one. */
export interface Serving extends CertificateAndKey {
  readonly address: string
  /** 0 means any free port. */
  readonly port: number
  /** Authorities of client certificates in PEM; '' for none. */
  readonly clientAuthority: string
  readonly allowsAnonymous: boolean
  readonly rules?: AccessRules
  readonly hasDebugging?: boolean
  readonly minVersion?: SecureVersion
  readonly ciphers?: readonly string[]
  /** Port without TLS and authentication; none by default. */
  readonly readOnlyPort?: number
  /** Registers a callback for new certificates and authorities. */
  readonly follow?: (changed: (next: CertificateAndKey & { readonly clientAuthority: string }) => void) => void
}

export interface PortsOptions {
  readonly clock: Clock
  readonly serving: Serving
  readonly api: (authorities: () => readonly Certificate[]) => KubeletApiOptions
  readonly onError: (error: unknown, path: string) => void
  /** Counts requests. */
  readonly count: (isReadOnly: boolean) => (serve: HttpServerOptions['serve']) => HttpServerOptions['serve']
}

/** Time for running requests when the kubelet stops. */
const GRACE_MS = 2000

const UPGRADES = ['spdy/3.1', 'websocket']

/** Returns the port of the API. */
export async function openPorts(options: PortsOptions, closing: AsyncDisposableStack): Promise<number> {
  const { clock, serving } = options
  const { clientAuthority, readOnlyPort } = serving
  let authorities = authoritiesIn(clientAuthority)
  const api = options.api(() => authorities)
  const onError: HttpServerOptions['onError'] = (error, { path }) => options.onError(error, path)
  const listen = async (own: Omit<HttpServerOptions, 'clock'>, port: number): Promise<[HttpServer, number]> => {
    const server = createHttpServer({ ...own, clock, onError })
    const bound = await server.listen({ host: serving.address, port })
    closing.defer(() => server.drain(GRACE_MS))
    return [server, 'port' in bound ? bound.port : 0]
  }
  const tls = { ...serving, clientAuthorities: listed(clientAuthority) }
  const serve = options.count(false)(createKubeletApi(api))
  const [server, port] = await listen({ serve, tls, upgrades: UPGRADES }, serving.port)
  serving.follow?.((next) => {
    authorities = authoritiesIn(next.clientAuthority)
    server.reloadTls({ ...tls, ...next, clientAuthorities: listed(next.clientAuthority) })
  })
  if (readOnlyPort !== undefined) {
    await listen({ serve: options.count(true)(createKubeletApi({ ...api, access: undefined })) }, readOnlyPort)
  }
  return port
}

const authoritiesIn = (pem: string): readonly Certificate[] => (pem === '' ? [] : parseBundle(pem))
const listed = (pem: string): readonly string[] => (pem === '' ? [] : [pem])
