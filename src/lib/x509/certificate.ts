/** Creates certificates, parses them singly or as a bundle, and computes when to renew them. */
import type { KeyObject } from 'node:crypto'
import { createPublicKey } from 'node:crypto'

import type { Random } from '../random.ts'
import * as asn1 from './asn1.ts'
import { guard, X509Error } from './error.ts'
import type { ExtensionPlan, Extensions } from './extension.ts'
import { encodeExtensions, keyIdOf, readExtensions } from './extension.ts'
import { publicKeyDer } from './key.ts'
import type { Name } from './name.ts'
import { encodeName, readName } from './name.ts'
import { encodePem, parsePem } from './pem.ts'
import { encodeSigned, readSigned, type Signed, signatureAlgorithm } from './signature.ts'

/** A certificate as read. Nothing in it has been checked but its form: see `verifyChain`. */
export interface Certificate extends Extensions {
  readonly der: Buffer
  readonly pem: string
  /** Upper-case hexadecimal, as openssl and node:crypto print it. */
  readonly serialNumber: string
  readonly subject: Name
  readonly issuer: Name
  /** Encoded names: what issuer and subject are compared by. */
  readonly subjectDer: Buffer
  readonly issuerDer: Buffer
  readonly notBeforeMs: number
  /** The last moment at which it is valid. */
  readonly notAfterMs: number
  readonly publicKey: KeyObject
  /** 3 for all but old roots, which have no extensions. */
  readonly version: number
  readonly signed: Signed
}

/** Real certificates are under 10 KB. */
const MAX_CERTIFICATE_BYTES = 256 << 10

const CERTIFICATE_LABEL = 'CERTIFICATE'

/** Reads one certificate, from DER or from the first block of a PEM text. Throws nothing but `X509Error`. */
export function parseCertificate(input: Buffer | string): Certificate {
  if (typeof input === 'string') {
    const block = parsePem(input).find(({ label }) => label === CERTIFICATE_LABEL)
    if (block === undefined) throw new X509Error('malformed', 'There is no certificate in this PEM text')
    return parseCertificate(block.bytes)
  }
  return guard('malformed', 'Not a certificate', () => readCertificate(input))
}

/** Every certificate of a PEM text, in order; at least one. Other blocks are skipped. */
export function parseBundle(pem: string): Certificate[] {
  const found = parsePem(pem).filter(({ label }) => label === CERTIFICATE_LABEL)
  if (found.length === 0) throw new X509Error('malformed', 'There is no certificate in this PEM text')
  return found.map(({ bytes }) => parseCertificate(bytes))
}

function readCertificate(der: Buffer): Certificate {
  const signed = readSigned(der, MAX_CERTIFICATE_BYTES, 'Certificate')
  const fields = signed.body.children()
  // Version 1, which has no version field, is still found in old roots.
  const version = fields[0]?.tag === asn1.contextTag(0) ? 1 + asn1.readSmallInteger(fields.shift()?.children()[0]) : 1
  const [serial, algorithm, issuer, validity, subject, keyInfo, ...optional] = fields
  if (algorithm?.raw.equals(signed.algorithm.raw) !== true) {
    throw new X509Error('malformed', "x509: inner and outer signature algorithm identifiers don't match")
  }
  const [notBefore, notAfter] = asn1.expectTag(validity, asn1.TAG.sequence, 'Validity').children()
  const info = asn1.expectTag(keyInfo, asn1.TAG.sequence, 'Public key').raw
  const extensions = optional.find(({ tag }) => tag === asn1.contextTag(3))?.children()[0]
  return {
    ...readExtensions(
      extensions === undefined ? [] : asn1.expectTag(extensions, asn1.TAG.sequence, 'Extensions').children(),
    ),
    der,
    pem: encodePem(CERTIFICATE_LABEL, der),
    serialNumber: readSerial(serial),
    subject: readName(subject),
    issuer: readName(issuer),
    subjectDer: asn1.expectTag(subject, asn1.TAG.sequence, 'Subject').raw,
    issuerDer: asn1.expectTag(issuer, asn1.TAG.sequence, 'Issuer').raw,
    notBeforeMs: asn1.readTime(notBefore),
    notAfterMs: asn1.readTime(notAfter),
    publicKey: guard('key', 'Cannot read the public key', () => {
      return createPublicKey({ key: info, format: 'der', type: 'spki' })
    }),
    version,
    signed,
  }
}

/** Some issuers have written negative serial numbers; the bytes identify them all the same. */
function readSerial(found: asn1.DerElement | undefined): string {
  const bytes = asn1.expectTag(found, asn1.TAG.integer, 'Serial number').contents
  const trimmed = bytes.length > 1 && bytes[0] === 0 ? bytes.subarray(1) : bytes
  return trimmed.toString('hex').toUpperCase()
}

export interface CertificatePlan extends Omit<ExtensionPlan, 'hasEmptySubject'> {
  readonly subject: Name
  /** Public key (or its private half) of the subject. */
  readonly key: KeyObject
  readonly notBeforeMs: number
  readonly notAfterMs: number
}

/** The signer: a key and its certificate; without one the new certificate is self-signed. */
export interface Signer {
  readonly key: KeyObject
  readonly certificate?: Certificate
}

/** A new certificate with a random serial number of 128 bits. Checks nothing of the plan against the signer. */
export function signCertificate(plan: CertificatePlan, signer: Signer, random: Random): Certificate {
  const info = publicKeyDer(plan.key)
  const subject = keyIdOf(info)
  const authority = signer.certificate === undefined ? subject : signer.certificate.subjectKeyId
  const hasEmptySubject = plan.subject.attributes.length === 0
  const subjectDer = encodeName(plan.subject)
  const body = asn1.sequence(
    asn1.element(asn1.contextTag(0), asn1.integer(2)),
    asn1.integer(random.bytes(16)),
    signatureAlgorithm(signer.key),
    signer.certificate?.subjectDer ?? subjectDer,
    asn1.sequence(asn1.time(plan.notBeforeMs), asn1.time(plan.notAfterMs)),
    subjectDer,
    info,
    asn1.element(
      asn1.contextTag(3),
      encodeExtensions({ ...plan, hasEmptySubject }, authority === undefined ? { subject } : { subject, authority }),
    ),
  )
  return parseCertificate(encodeSigned(body, signer.key))
}

export function isExpired(certificate: Certificate, nowMs: number): boolean {
  return nowMs > certificate.notAfterMs
}

/**
 * The moment to renew at: after 70 to 90 % of its life, so that certificates issued together are not renewed
 * together. Draw once per certificate and keep the answer, as the kubelet does.
 */
export function planRenewal(certificate: Certificate, random: Random): number {
  const lifeMs = certificate.notAfterMs - certificate.notBeforeMs
  return certificate.notBeforeMs + lifeMs * (0.7 + 0.2 * random.float())
}
