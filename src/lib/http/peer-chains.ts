/**
 * The certificates that clients send. A resumed TLS session keeps only the client's own certificate, so this remembers
 * intermediate certificates from the handshakes of others: there are few of them, however many clients.
 *
 * OpenSSL does not verify them in the handshake. A signature that fails there leaves an error behind, for which Node closes
 * the connection although the certificate is optional; the client then gets no answer instead of a 401.
 */
import { X509Certificate } from 'node:crypto'
import type { TLSSocket } from 'node:tls'

/** Real chains are shorter. */
const MAX_CHAIN = 10

/** Signatures checked for one client: it can send certificates that seem to sign each other in every order. */
const MAX_CHECKS = 64

/** More intermediates than anybody runs; the least recently used one is dropped first. */
const MAX_REMEMBERED = 256

export class PeerChains {
  readonly #intermediates = new Map<string, X509Certificate>()
  #authorities: readonly X509Certificate[] = []

  /** PEM of the authorities that later connections are checked against. */
  setAuthorities(bundles: readonly string[]): void {
    this.#authorities = bundles.flatMap(certificatesOf)
  }

  /**
   * Returns true if signatures lead from the client's certificate to an authority; validity and purpose are not checked.
   * Call it after each handshake, before the client can come back: it remembers the intermediates of a client that it
   * trusts. Others must not push them out.
   */
  admit(socket: TLSSocket): boolean {
    const chain = this.#chainOf(socket)
    const [leaf, ...others] = chain
    if (
      leaf === undefined ||
      !isSignedByOneOf(leaf, { authorities: this.#authorities, others, checksLeft: MAX_CHECKS })
    )
      return false
    if (!socket.isSessionReused()) for (const certificate of others) this.#touch(certificate)
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

const BLOCK = /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g

function certificatesOf(bundle: string): X509Certificate[] {
  return (bundle.match(BLOCK) ?? []).map((pem) => new X509Certificate(pem))
}

interface Search {
  readonly authorities: readonly X509Certificate[]
  /** Untrusted certificates that may lie between the client's and an authority. */
  readonly others: readonly X509Certificate[]
  checksLeft: number
}

function isSignedByOneOf(certificate: X509Certificate, search: Search, depth = 1): boolean {
  const { authorities, others } = search
  if (authorities.some((one) => isSame(one, certificate) || hasSigned(one, certificate, search))) return true
  if (depth >= MAX_CHAIN) return false
  return others.some(
    (one) =>
      one.ca &&
      !isSame(one, certificate) &&
      hasSigned(one, certificate, search) &&
      isSignedByOneOf(one, search, depth + 1),
  )
}

function isSame(a: X509Certificate, b: X509Certificate): boolean {
  return a.raw.equals(b.raw)
}

function hasSigned(issuer: X509Certificate, certificate: X509Certificate, search: Search): boolean {
  if (!certificate.checkIssued(issuer) || search.checksLeft-- <= 0) return false
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
