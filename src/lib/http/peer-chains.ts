/**
 * Collects the intermediate certificates of TLS clients, because a resumed session contains only the client's own
 * certificate. OpenSSL does not verify client certificates in the handshake: Node would close the connection, and the
 * client would get no 401.
 */
import { X509Certificate } from 'node:crypto'
import type { TLSSocket } from 'node:tls'

import { parseBundle } from '../x509/certificate.ts'

/** Real chains are shorter. */
const MAX_CHAIN = 16

/** Signatures checked for one client: it can send many certificates that an authority seems to have signed. */
const MAX_CHECKS = 64

/** More intermediates than any real setup has; the least recently used one is dropped first. */
const MAX_REMEMBERED = 256

export class PeerChains {
  readonly #intermediates = new Map<string, X509Certificate>()
  #authorities: readonly X509Certificate[] = []

  /** Later connections are checked against these. */
  setAuthorities(authorities: readonly X509Certificate[]): void {
    this.#authorities = authorities
  }

  /**
   * Returns true if signatures lead from the client's certificate to an authority; validity and purpose are not checked.
   * Call it after each handshake, before the client can come back: it remembers the intermediates of a client that it
   * trusts. Others must not push them out.
   */
  admit(socket: TLSSocket): boolean {
    const chain = this.#chainOf(socket)
    const [leaf, ...others] = chain
    const trusted = signedBy(this.#authorities, chain)
    if (leaf === undefined || !trusted.has(leaf)) return false
    if (!socket.isSessionReused()) for (const one of others) if (trusted.has(one)) this.#touch(one)
    return true
  }

  /** The client's certificate and those it sent along, now or when its session began; empty when it sent none. */
  read(socket: TLSSocket): Buffer[] {
    return this.#chainOf(socket).map(({ raw }) => raw)
  }

  #chainOf(socket: TLSSocket): X509Certificate[] {
    const chain = sent(socket)
    if (socket.isSessionReused()) this.#complete(chain)
    return chain
  }

  /** Adds every certificate that may have signed one of these. The verifier finds out which of them did. */
  #complete(chain: X509Certificate[]): void {
    for (const below of chain) {
      for (const issuer of this.#intermediates.values()) {
        if (chain.length >= MAX_CHAIN) return
        if (chain.includes(issuer) || !below.checkIssued(issuer)) continue
        chain.push(issuer)
        this.#touch(issuer)
      }
    }
  }

  #touch(certificate: X509Certificate): void {
    const { fingerprint256 } = certificate
    this.#intermediates.delete(fingerprint256)
    this.#intermediates.set(fingerprint256, certificate)
    if (this.#intermediates.size <= MAX_REMEMBERED) return
    for (const oldest of this.#intermediates.keys()) return void this.#intermediates.delete(oldest)
  }
}

/**
 * Reads PEM of authorities. OpenSSL gets DER: `parseBundle`, which reads the same authorities for `verifyChain`, accepts line breaks
 * and blanks that OpenSSL's reader of PEM refuses. Throws for a certificate that one of them cannot read.
 */
export function readAuthorities(bundles: readonly string[] = []): X509Certificate[] {
  return bundles.flatMap((pem) => parseBundle(pem).map(({ der }) => new X509Certificate(der)))
}

/**
 * The certificates of a chain to which signatures lead from an authority. The search goes from the authorities down, so that it never
 * computes with a key of the client's choice: some keys take OpenSSL many milliseconds.
 */
function signedBy(
  authorities: readonly X509Certificate[],
  chain: readonly X509Certificate[],
): ReadonlySet<X509Certificate> {
  const trusted = new Set(chain.filter((one) => authorities.some((authority) => isSame(authority, one))))
  const issuers = [...authorities]
  const checks = { left: MAX_CHECKS }
  // Grows while it is walked: each authority that is found signed may have signed others.
  for (const issuer of issuers) {
    for (const one of chain) {
      if (trusted.has(one) || !hasSigned(issuer, one, checks)) continue
      trusted.add(one)
      if (one.ca) issuers.push(one)
    }
  }
  return trusted
}

function isSame(a: X509Certificate, b: X509Certificate): boolean {
  return a.raw.equals(b.raw)
}

function hasSigned(issuer: X509Certificate, certificate: X509Certificate, checks: { left: number }): boolean {
  if (!certificate.checkIssued(issuer) || checks.left-- <= 0) return false
  try {
    return certificate.verify(issuer.publicKey)
  } catch {
    // A key of a kind that OpenSSL cannot verify with.
    return false
  }
}

function sent(socket: TLSSocket): X509Certificate[] {
  const out: X509Certificate[] = []
  let next = socket.getPeerX509Certificate()
  while (next !== undefined && out.length < MAX_CHAIN) {
    out.push(next)
    next = next.issuerCertificate
  }
  return out
}
