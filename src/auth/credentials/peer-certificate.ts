/**
 * Verifies the client certificate of a connection against the client CAs and caches the result. OpenSSL must trust the
 * certificate too.
 */
import type { Clock } from '#lib/clock.ts'
import type { Peer } from '#lib/http/exchange.ts'
import { type Certificate, parseCertificate } from '#lib/x509/certificate.ts'
import { verifyChain } from '#lib/x509/chain.ts'
import { X509Error } from '#lib/x509/error.ts'

import { CredentialError } from '../authenticator.ts'

export interface PeerVerifierOptions {
  readonly clock: Clock
  /** Returns a new list when the file has changed, otherwise the same list. */
  readonly authorities: () => readonly Certificate[]
}

/** Undefined if the peer sent no certificate. Throws CredentialError for an untrusted one. */
export type VerifyPeer = (peer: Peer) => Certificate | undefined

interface Finding {
  readonly authorities: readonly Certificate[]
  /** The authorities at the time of the handshake. `Peer.isTrusted` refers only to these. */
  readonly connectionRoots: readonly Certificate[]
  readonly validUntilMs: number
  readonly outcome: Certificate | CredentialError
}

/** The lifetime of a refusal: the certificate may become valid later. */
const REFUSAL_MS = 10_000

export function createPeerVerifier({ clock, authorities }: PeerVerifierOptions): VerifyPeer {
  const findings = new WeakMap<Peer, Finding>()
  return (peer) => {
    if (peer.certificate === undefined) return undefined
    const roots = authorities()
    const nowMs = clock.now()
    let finding = findings.get(peer)
    if (finding === undefined || finding.authorities !== roots || nowMs > finding.validUntilMs) {
      finding = examine(peer, { authorities: roots, connectionRoots: finding?.connectionRoots ?? roots }, nowMs)
      findings.set(peer, finding)
    }
    if (finding.outcome instanceof CredentialError) throw finding.outcome
    return finding.outcome
  }
}

const UNKNOWN_AUTHORITY =
  'The certificate is signed by an unknown authority: OpenSSL does not find it signed by a client authority'

function examine(peer: Peer, by: Pick<Finding, 'authorities' | 'connectionRoots'>, nowMs: number): Finding {
  try {
    // First, so that no signature is computed with unknown keys.
    if (by.authorities === by.connectionRoots && !peer.isTrusted) {
      throw new X509Error('untrusted', UNKNOWN_AUTHORITY)
    }
    const [leafDer, ...others] = peer.chain()
    if (leafDer === undefined) throw new X509Error('malformed', 'The certificate could not be read')
    const leaf = parseCertificate(leafDer)
    const intermediates = others.flatMap(readable)
    const chain = verifyChain(leaf, { roots: by.authorities, intermediates, nowMs, usage: 'client auth' })
    const validUntilMs = Math.min(...chain.map(({ notAfterMs }) => notAfterMs))
    return { ...by, validUntilMs, outcome: leaf }
  } catch (cause) {
    if (!(cause instanceof X509Error)) throw cause
    const outcome = new CredentialError(`verifying certificate failed: ${cause.message}`, { cause })
    return { ...by, validUntilMs: nowMs + REFUSAL_MS, outcome }
  }
}

/** Skips unreadable certificates of the chain; the leaf may be trusted without them. */
function readable(der: Buffer): Certificate[] {
  try {
    return [parseCertificate(der)]
  } catch {
    return []
  }
}
