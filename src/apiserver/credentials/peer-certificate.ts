/**
 * The certificate of a connection, verified against client authorities. The result holds until a certificate of the chain
 * expires or the authorities change. OpenSSL's reading of the certificates must agree (`Peer.isTrusted`): two
 * implementations are harder to fool than one.
 */
import type { Clock } from '#lib/clock.ts'
import type { Peer } from '#lib/http/exchange.ts'
import { type Certificate, parseCertificate } from '#lib/x509/certificate.ts'
import { verifyChain } from '#lib/x509/chain.ts'
import { X509Error } from '#lib/x509/error.ts'

import { CredentialError } from '../authenticators/authenticator.ts'

export interface PeerVerifierOptions {
  readonly clock: Clock
  /** A new list when the file has changed, the same one otherwise. */
  readonly authorities: () => readonly Certificate[]
}

/** Undefined when the peer showed no certificate. Throws CredentialError for one that cannot be trusted. */
export type VerifyPeer = (peer: Peer) => Certificate | undefined

interface Finding {
  readonly authorities: readonly Certificate[]
  /** The authorities when the client connected. `Peer.isTrusted` is about these only. */
  readonly judgedBy: readonly Certificate[]
  readonly validUntilMs: number
  readonly outcome: Certificate | CredentialError
}

/** A certificate that was refused is looked at again after this long: it may have been too early. */
const REFUSAL_MS = 10_000

export function createPeerVerifier({ clock, authorities }: PeerVerifierOptions): VerifyPeer {
  const findings = new WeakMap<Peer, Finding>()
  return (peer) => {
    if (peer.certificate === undefined) return undefined
    const roots = authorities()
    const nowMs = clock.now()
    let finding = findings.get(peer)
    if (finding === undefined || finding.authorities !== roots || nowMs > finding.validUntilMs) {
      finding = examine(peer, { authorities: roots, judgedBy: finding?.judgedBy ?? roots }, nowMs)
      findings.set(peer, finding)
    }
    if (finding.outcome instanceof CredentialError) throw finding.outcome
    return finding.outcome
  }
}

const UNKNOWN_AUTHORITY =
  'The certificate is signed by an unknown authority: OpenSSL does not find it signed by a client authority'

function examine(peer: Peer, by: Pick<Finding, 'authorities' | 'judgedBy'>, nowMs: number): Finding {
  try {
    // First, so that no signature is computed with the keys of strangers.
    if (by.authorities === by.judgedBy && !peer.isTrusted) {
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

/** What cannot be read cannot lie on the way; the leaf may be trusted without it. */
function readable(der: Buffer): Certificate[] {
  try {
    return [parseCertificate(der)]
  } catch {
    return []
  }
}
