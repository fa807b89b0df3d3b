/**
 * The certificates clients send. A resumed TLS session keeps only the client's own, so what lies between it and a root is
 * remembered from the handshakes of others: there are few such certificates, however many clients.
 */
import type { X509Certificate } from 'node:crypto'
import type { TLSSocket } from 'node:tls'

/** Longer chains than this are nobody's real one. */
const MAX_CHAIN = 10

/** More authorities between clients and roots than anybody runs; the one not used for longest goes first. */
const MAX_REMEMBERED = 256

export class PeerChains {
  readonly #intermediates = new Map<string, X509Certificate>()

  /**
   * To be called after each handshake, before the client can come back. Only what TLS found trustworthy is kept: nobody
   * else may push out the certificates of others.
   */
  remember(socket: TLSSocket): void {
    if (!isFoundGood(socket) || socket.isSessionReused()) return
    for (const certificate of sent(socket).slice(1)) this.#touch(certificate)
  }

  /** The client's certificate and what it sent along, now or when its session began; empty when it sent none. */
  read(socket: TLSSocket): Buffer[] {
    const chain = sent(socket)
    if (socket.isSessionReused()) this.#complete(chain)
    return chain.map(({ raw }) => raw)
  }

  /** Adds every certificate that may have signed one of these. Which of them did is for the verifier to find out. */
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
 * Whether TLS found a way from the client's certificate to an authority. Whether it is for clients is not TLS's to say: by
 * its rules one whose key may only encipher is not, and such certificates are in use.
 */
export function isFoundGood({ authorized, authorizationError }: TLSSocket): boolean {
  // Whatever else is wrong is found later, and named instead.
  return authorized || String(authorizationError) === 'INVALID_PURPOSE'
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
