/**
 * The TLS settings of servers: versions, ciphers and the certificate for each server name. They can be reloaded without
 * a restart.
 */
import type { SecureContext, SecureContextOptions, SecureVersion, Server } from 'node:tls'
import { createSecureContext, createServer } from 'node:tls'

import { acceptableIssuers } from '../x509/acceptable-issuer.ts'

export interface CertificateAndKey {
  /** PEM: the certificate, then what lies between it and a root. */
  readonly certificate: string
  readonly key: string
}

export interface ServerTls extends CertificateAndKey {
  /** Other certificates for clients that ask for these names; `*.example.com` matches one label. */
  readonly sni?: readonly (CertificateAndKey & { readonly names: readonly string[] })[]
  /** PEM of the authorities (one or many) of client certificates. TLS names them to clients; `PeerChains` checks. */
  readonly clientAuthorities?: readonly string[]
  readonly minVersion?: SecureVersion
  /** OpenSSL's names, best first. */
  readonly ciphers?: readonly string[]
}

/**
 * AES-128 first: it is a fifth faster than AES-256 and encryption is the ceiling for large lists. All of them are
 * authenticated and forward secret.
 */
const CIPHERS: readonly string[] = [
  'TLS_AES_128_GCM_SHA256',
  'TLS_AES_256_GCM_SHA384',
  'TLS_CHACHA20_POLY1305_SHA256',
  'ECDHE-ECDSA-AES128-GCM-SHA256',
  'ECDHE-RSA-AES128-GCM-SHA256',
  'ECDHE-ECDSA-AES256-GCM-SHA384',
  'ECDHE-RSA-AES256-GCM-SHA384',
  'ECDHE-ECDSA-CHACHA20-POLY1305',
  'ECDHE-RSA-CHACHA20-POLY1305',
]

function contextOptions(tls: ServerTls, pair: CertificateAndKey): SecureContextOptions {
  return {
    cert: pair.certificate,
    key: pair.key,
    minVersion: tls.minVersion ?? 'TLSv1.2',
    ciphers: (tls.ciphers ?? CIPHERS).join(':'),
    honorCipherOrder: true,
    // An empty list, not none at all: with none, Node would verify client certificates by every public authority.
    ca: (tls.clientAuthorities ?? []).flatMap(acceptableIssuers),
  }
}

export interface TlsServer {
  /** Emits 'secureConnection'; pass it raw sockets by emitting 'connection'. It never listens itself. */
  readonly server: Server
  /** New connections get the new certificates and authorities; old sessions cannot be resumed. Throws if unusable. */
  reload(tls: ServerTls): void
}

export function createTlsServer(
  initial: ServerTls,
  handshakeTimeoutMs: number,
  onHandshakeError?: () => void,
): TlsServer {
  let sni = createSniTable(initial)
  const server = createServer({
    ...contextOptions(initial, initial),
    ALPNProtocols: ['h2', 'http/1.1'],
    // Always requested, since authorities can come with a reload; never required, because there are other credentials.
    requestCert: true,
    rejectUnauthorized: false,
    handshakeTimeout: handshakeTimeoutMs,
    SNICallback: (name, done) => done(null, findContext(sni, name)),
  })
  server.on('tlsClientError', (_error, socket) => {
    onHandshakeError?.()
    socket.destroy()
  })
  return {
    server,
    reload(tls) {
      const next = createSniTable(tls)
      server.setSecureContext(contextOptions(tls, tls))
      sni = next
    },
  }
}

function createSniTable(tls: ServerTls): ReadonlyMap<string, SecureContext> {
  const table = new Map<string, SecureContext>()
  for (const pair of tls.sni ?? []) {
    const context = createSecureContext(contextOptions(tls, pair))
    // The first certificate for a name wins, as upstream's does.
    for (const name of pair.names) if (!table.has(name.toLowerCase())) table.set(name.toLowerCase(), context)
  }
  return table
}

/** Undefined stands for the main certificate. */
function findContext(table: ReadonlyMap<string, SecureContext>, name: string): SecureContext | undefined {
  const lower = name.toLowerCase()
  return table.get(lower) ?? table.get(`*${lower.slice(Math.max(0, lower.indexOf('.')))}`)
}
