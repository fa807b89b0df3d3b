/**
 * Creates placeholder certificates that have only the subject of an authority. A TLS server sends these subjects to
 * clients as acceptable issuers, while OpenSSL verifies no client certificate with them.
 */
import type { KeyObject } from 'node:crypto'

import * as asn1 from './asn1.ts'
import { type Certificate, parseBundle } from './certificate.ts'
import { encodeExtensions, keyIdOf } from './extension.ts'
import { createKey, publicKeyDer } from './key.ts'
import { encodePem } from './pem.ts'
import { encodeSigned, signatureAlgorithm } from './signature.ts'

/** Shared by all: no verifier trusts it. */
let shared: KeyObject | undefined

/** For each certificate of the PEM text one that names the same subject and may not sign, as PEM. */
export function acceptableIssuers(pem: string): string[] {
  return parseBundle(pem).map(acceptableIssuer)
}

function acceptableIssuer({ subjectDer }: Certificate): string {
  const key = (shared ??= createKey())
  const info = publicKeyDer(key)
  // Without "cert sign" OpenSSL does not take it for an issuer, so it never checks a signature with its key.
  const plan = { usages: ['digital signature'], hasEmptySubject: false }
  const body = asn1.sequence(
    asn1.element(asn1.contextTag(0), asn1.integer(2)),
    asn1.integer(1),
    signatureAlgorithm(key),
    subjectDer,
    asn1.sequence(asn1.time(0), asn1.time(0)),
    subjectDer,
    info,
    asn1.element(asn1.contextTag(3), encodeExtensions(plan, { subject: keyIdOf(info) })),
  )
  return encodePem('CERTIFICATE', encodeSigned(body, key))
}
