/** Creates and parses certificate requests (PKCS#10). */
import type { KeyObject } from 'node:crypto'
import { createPublicKey } from 'node:crypto'

import * as asn1 from './asn1.ts'
import { guard, X509Error } from './error.ts'
import type { Extensions } from './extension.ts'
import { encodeRequestedExtensions, readExtensions } from './extension.ts'
import { publicKeyDer } from './key.ts'
import type { AlternativeNames, Name, NameParts } from './name.ts'
import { encodeName, nameOf, readName } from './name.ts'
import { encodePem, parsePem } from './pem.ts'
import { encodeSigned, isSignatureValid, readSigned, type Signed } from './signature.ts'

const EXTENSION_REQUEST = '1.2.840.113549.1.9.14'
const REQUEST_LABEL = 'CERTIFICATE REQUEST'
/** The form of older tools. */
const OLD_REQUEST_LABEL = 'NEW CERTIFICATE REQUEST'

/** A parsed request. Its extensions are only requested; its signature has not been checked: see `verifyRequest`. */
export interface CertificateRequest extends Extensions {
  readonly der: Buffer
  readonly pem: string
  readonly subject: Name
  readonly publicKey: KeyObject
  readonly signed: Signed
}

export interface RequestPlan extends NameParts {
  readonly names?: Partial<AlternativeNames>
  /** Usages to ask for; Kubernetes states them beside the request instead. */
  readonly usages?: readonly string[]
}

/** A request signed with `key`, which thereby proves that it holds the private half. */
export function createRequest(plan: RequestPlan, key: KeyObject): CertificateRequest {
  const subject = nameOf(plan)
  const hasEmptySubject = subject.attributes.length === 0
  const requested = encodeRequestedExtensions({ names: plan.names ?? {}, usages: plan.usages ?? [], hasEmptySubject })
  const attributes =
    requested.length === 0 ? [] : [asn1.sequence(asn1.oid(EXTENSION_REQUEST), asn1.setOf(asn1.sequence(...requested)))]
  const body = asn1.sequence(
    asn1.integer(0),
    encodeName(subject),
    publicKeyDer(key),
    asn1.element(asn1.contextTag(0), ...attributes),
  )
  return parseRequest(encodeSigned(body, key))
}

/** Reads one request from DER or PEM. Throws nothing but `X509Error`; PEM with anything else in it is refused. */
export function parseRequest(input: Buffer | string): CertificateRequest {
  if (typeof input !== 'string') return guard('malformed', 'Not a certificate request', () => readRequest(input))
  const [block, ...others] = parsePem(input)
  if (
    block === undefined ||
    others.length > 0 ||
    (block.label !== REQUEST_LABEL && block.label !== OLD_REQUEST_LABEL)
  ) {
    throw new X509Error('malformed', `PEM block type must be ${REQUEST_LABEL}`)
  }
  return parseRequest(block.bytes)
}

/** Real requests are under 10 KB. */
const MAX_REQUEST_BYTES = 256 << 10

function readRequest(der: Buffer): CertificateRequest {
  const signed = readSigned(der, MAX_REQUEST_BYTES, 'Request')
  const [version, subject, keyInfo, attributes] = signed.body.children()
  if (asn1.readSmallInteger(version) !== 0) throw new X509Error('unsupported', 'Only version 1 requests are supported')
  const info = asn1.expectTag(keyInfo, asn1.TAG.sequence, 'Public key').raw
  return {
    ...readExtensions(readRequestedExtensions(attributes)),
    der,
    pem: encodePem(REQUEST_LABEL, der),
    subject: readName(subject),
    publicKey: guard('key', 'Cannot read the public key', () => {
      return createPublicKey({ key: info, format: 'der', type: 'spki' })
    }),
    signed,
  }
}

/** The requested extensions of every such attribute, as Go reads them. Unparsable attributes are skipped. */
function readRequestedExtensions(attributes: asn1.DerElement | undefined): asn1.DerElement[] {
  if (attributes === undefined) return []
  const found = asn1.expectTag(attributes, asn1.contextTag(0), 'Attributes').children()
  return found.flatMap((attribute) => {
    const requested = valueOf(attribute, EXTENSION_REQUEST)
    return requested === undefined ? [] : asn1.expectTag(requested, asn1.TAG.sequence, 'Extensions').children()
  })
}

/** The first value of an attribute with this identifier. */
function valueOf(attribute: asn1.DerElement, wanted: string): asn1.DerElement | undefined {
  try {
    const [oid, values] = asn1.expectTag(attribute, asn1.TAG.sequence, 'Attribute').children()
    const [first] = asn1.expectTag(values, asn1.TAG.set, 'Values').children()
    return asn1.readOid(oid) === wanted ? first : undefined
  } catch (error) {
    if (error instanceof asn1.Asn1Error) return undefined
    throw error
  }
}

/** Throws unless the author of the request has the private half of its key. */
export function verifyRequest(request: CertificateRequest): void {
  if (!isSignatureValid(request.signed, request.publicKey, 'request')) {
    throw new X509Error('signature', 'The signature of the certificate request does not fit its key')
  }
}
