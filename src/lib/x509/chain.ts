/**
 * Verifies a certificate chain from a leaf through intermediates to a root. Name constraints and revocation are not
 * supported; a certificate that demands name constraints is refused.
 */
import type { Certificate } from './certificate.ts'
import { X509Error } from './error.ts'
import { isSignatureValid } from './signature.ts'
import type { Usage } from './usage.ts'

export interface Trust {
  readonly roots: readonly Certificate[]
  /** Untrusted certificates that may lie on the way, such as those the peer sent along. */
  readonly intermediates?: readonly Certificate[]
  readonly nowMs: number
  /** The required usages; a certificate without extended usages is valid for all. */
  readonly usage: Usage
}

/** Enough for every real hierarchy. */
const MAX_CHAIN = 16

/** Signatures looked at for one leaf: a peer can send certificates that sign each other in every order. */
const MAX_CHECKS = 64

/** A search under way. */
interface Search {
  readonly trust: Trust
  checksLeft: number
  /** The first reason why a way that looked right was not; better to report than "unknown authority". */
  failure?: X509Error
}

/** The way from `leaf` to a root, both included. Throws `X509Error` when there is none, naming the nearest reason. */
export function verifyChain(leaf: Certificate, trust: Trust): Certificate[] {
  checkOne(leaf, trust)
  if (trust.roots.some((root) => root.der.equals(leaf.der))) return [leaf]
  const search: Search = { trust, checksLeft: MAX_CHECKS }
  const found = climb([leaf], search)
  if (found !== undefined) return found
  throw search.failure ?? new X509Error('untrusted', 'The certificate is signed by an unknown authority')
}

function climb(path: readonly Certificate[], search: Search): Certificate[] | undefined {
  const child = path.at(-1)
  if (child === undefined || path.length >= MAX_CHAIN) return undefined
  const { roots, intermediates = [] } = search.trust
  for (const issuer of [...roots, ...intermediates]) {
    if (path.includes(issuer) || !mayBeIssuer(child, issuer)) continue
    if (search.checksLeft-- <= 0) return undefined
    const problem = findProblem(issuer, path, search.trust)
    if (problem !== undefined) {
      search.failure ??= problem
      continue
    }
    const way = [...path, issuer]
    const found = roots.includes(issuer) ? way : climb(way, search)
    if (found !== undefined) return found
  }
  return undefined
}

function findProblem(issuer: Certificate, below: readonly Certificate[], trust: Trust): X509Error | undefined {
  try {
    checkSignature(below.at(-1), issuer)
    checkOne(issuer, trust)
    checkAuthority(issuer, below, trust)
    return undefined
  } catch (error) {
    if (error instanceof X509Error) return error
    throw error
  }
}

function mayBeIssuer(child: Certificate, issuer: Certificate): boolean {
  if (!child.issuerDer.equals(issuer.subjectDer)) return false
  const { authorityKeyId } = child
  return authorityKeyId === undefined || issuer.subjectKeyId?.equals(authorityKeyId) !== false
}

function checkSignature(child: Certificate | undefined, issuer: Certificate): void {
  if (child !== undefined && isSignatureValid(child.signed, issuer.publicKey, 'certificate')) return
  throw new X509Error('signature', `The certificate was not signed by "${issuer.subject.commonName}"`)
}

function checkAuthority(issuer: Certificate, below: readonly Certificate[], trust: Trust): void {
  const who = `Authority "${issuer.subject.commonName}"`
  // Roots from before basic constraints lack them; a trusted root is an authority anyway.
  const isOldRoot = issuer.version < 3 && !issuer.isConstrained && trust.roots.includes(issuer)
  if (!issuer.isAuthority && !isOldRoot) throw new X509Error('untrusted', `${who} may not sign certificates`)
  if (hasKeyUsage(issuer) && !issuer.usages.includes('cert sign')) {
    throw new X509Error('untrusted', `${who} may not use its key to sign certificates`)
  }
  // The leaf does not count, nor does an authority that signed itself (RFC 5280 4.2.1.9).
  const authorities = below.slice(1).filter((one) => !one.subjectDer.equals(one.issuerDer)).length
  if (issuer.pathLength !== undefined && authorities > issuer.pathLength) {
    throw new X509Error('untrusted', `${who} allows only ${issuer.pathLength} authorities below it`)
  }
}

function checkOne(certificate: Certificate, { nowMs, usage }: Trust): void {
  const who = `Certificate "${certificate.subject.commonName}"`
  if (nowMs < certificate.notBeforeMs) {
    throw new X509Error('expired', `${who} is not valid before ${new Date(certificate.notBeforeMs).toISOString()}`)
  }
  if (nowMs > certificate.notAfterMs) {
    throw new X509Error('expired', `${who} has expired at ${new Date(certificate.notAfterMs).toISOString()}`)
  }
  if (certificate.unknownCritical.length > 0) {
    throw new X509Error('untrusted', `${who} has critical extensions: ${certificate.unknownCritical.join(', ')}`)
  }
  const extended = certificate.usages.filter((name) => !KEY_USAGES.has(name))
  if (extended.length > 0 && !extended.includes(usage) && !extended.includes('any')) {
    throw new X509Error('untrusted', `${who} is not for "${usage}", only for "${extended.join(', ')}"`)
  }
}

const KEY_USAGES: ReadonlySet<string> = new Set<Usage>([
  'digital signature',
  'content commitment',
  'key encipherment',
  'data encipherment',
  'key agreement',
  'cert sign',
  'crl sign',
  'encipher only',
  'decipher only',
])

function hasKeyUsage(certificate: Certificate): boolean {
  return certificate.usages.some((name) => KEY_USAGES.has(name))
}
