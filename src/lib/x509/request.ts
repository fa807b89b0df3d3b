/** Certificate requests (PKCS#10): what somebody with a key asks an authority to sign. */
import type { KeyObject } from 'node:crypto'
import { createPublicKey } from 'node:crypto'

import * as asn1 from '../asn1.ts'
import { guard, X509Error } from './error.ts'
import type { Extensions } from './extension.ts'
import { encodeRequestedExtensions, readExtensions } from './extension.ts'
import { encodeSigned, isSignatureValid, publicKeyDer } from './key.ts'
import type { AlternativeNames, Name, NameParts } from './name.ts'
import { encodeName, nameOf, readName } from './name.ts'
import { encodePem, parsePem } from './pem.ts'

const EXTENSION_REQUEST = '1.2.840.113549.1.9.14'
const REQUEST_LABEL = 'CERTIFICATE REQUEST'
/** What older tools write. */
const OLD_REQUEST_LABEL = 'NEW CERTIFICATE REQUEST'

/** A request as read. Its extensions are wishes; its signature has not been checked: see `verifyRequest`. */
export interface CertificateRequest extends Extensions {
  readonly der: Buffer
  readonly pem: string
  readonly subject: Name
  readonly publicKey: KeyObject
  readonly signed: { readonly body: Buffer; readonly oid: string; readonly signature: Buffer }
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
  const wishes = encodeRequestedExtensions({ names: plan.names ?? {}, usages: plan.usages ?? [], hasEmptySubject })
  const attributes =
    wishes.length === 0 ? [] : [asn1.sequence(asn1.oid(EXTENSION_REQUEST), asn1.setOf(asn1.sequence(...wishes)))]
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
  const outer = asn1.expectTag(asn1.readDer(der, MAX_REQUEST_BYTES), asn1.TAG.sequence, 'Request').children()
  const body = asn1.expectTag(outer[0], asn1.TAG.sequence, 'Body')
  const algorithm = asn1.expectTag(outer[1], asn1.TAG.sequence, 'Signature algorithm').children()
  const [version, subject, keyInfo, attributes] = body.children()
  if (asn1.readSmallInteger(version) !== 0) throw new X509Error('unsupported', 'Only version 1 requests are supported')
  const info = asn1.expectTag(keyInfo, asn1.TAG.sequence, 'Public key').raw
  return {
    ...readExtensions(findWishes(attributes)),
    der,
    pem: encodePem(REQUEST_LABEL, der),
    subject: readName(subject),
    publicKey: guard('key', 'Cannot read the public key', () => {
      return createPublicKey({ key: info, format: 'der', type: 'spki' })
    }),
    signed: { body: body.raw, oid: asn1.readOid(algorithm[0]), signature: asn1.readBitString(outer[2]) },
  }
}

function findWishes(attributes: asn1.DerElement | undefined): asn1.DerElement | undefined {
  if (attributes === undefined) return undefined
  for (const attribute of asn1.expectTag(attributes, asn1.contextTag(0), 'Attributes').children()) {
    const [oid, values] = asn1.expectTag(attribute, asn1.TAG.sequence, 'Attribute').children()
    if (asn1.readOid(oid) !== EXTENSION_REQUEST) continue
    return asn1.expectTag(values, asn1.TAG.set, 'Requested extensions').children()[0]
  }
  return undefined
}

/** Throws unless whoever made the request holds the private half of its key. */
export function verifyRequest(request: CertificateRequest): void {
  if (!isSignatureValid(request.signed, request.publicKey)) {
    throw new X509Error('signature', 'The signature of the certificate request does not fit its key')
  }
}
