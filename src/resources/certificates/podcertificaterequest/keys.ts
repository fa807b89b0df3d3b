/** Validates the key of a pod certificate request: allowed types, and the proof of possession. */
import { constants, createPublicKey, type KeyObject, verify } from 'node:crypto'

import type { PodCertificateRequestSpec } from '#apis/certificates/v1beta1.ts'
import { attempt } from '#lib/attempt.ts'
import { type CertificateRequest, parseRequest, verifyRequest } from '#lib/x509/request.ts'
import { type FieldError, fieldPath, omitted } from '#meta/validation/field-path.ts'

/** The limit of each field; real values are far smaller. */
const MAX_BYTES = 10 << 10

const STUB = fieldPath('spec.stubPKCS10Request')
const PUBLIC_KEY = fieldPath('spec.pkixPublicKey')
const PROOF = fieldPath('spec.proofOfPossession')

const NOT_A_REQUEST = 'must be a valid PKCS#10 CSR'
const NOT_A_KEY = 'must be a valid PKIX-serialized public key'
const UNKNOWN_TYPE = 'unknown public key type; supported types are Ed25519, ECDSA, and RSA'
const RSA_SIZES = 'RSA keys must have modulus size 3072 or 4096'

/** The key is in an empty certificate request or, in older requests, has a signature over the pod's uid. */
export function validateKey(spec: PodCertificateRequestSpec): FieldError[] {
  const [stub, key, proof] = [spec.stubPKCS10Request, spec.pkixPublicKey, spec.proofOfPossession].map(bytesOf)
  if (stub !== undefined && key === undefined && proof === undefined) return validateStub(stub)
  if (stub === undefined && key !== undefined && proof !== undefined) {
    return validateProvenKey(spec, key, proof)
  }
  const detail = 'exactly one of (stubPKCS10Request) or (pkixPublicKey, proofOfPossession) must be set'
  return [fieldPath('spec').invalid(omitted, detail)]
}

/** The key for the certificate, or the error of a request from an older release. */
export function readRequestedKey(spec: PodCertificateRequestSpec): KeyObject | FieldError {
  const stub = bytesOf(spec.stubPKCS10Request)
  if (stub !== undefined) {
    return attempt(() => parseRequest(stub).publicKey) ?? STUB.invalid(omitted, NOT_A_REQUEST)
  }
  return parsePublicKey(bytesOf(spec.pkixPublicKey) ?? Buffer.alloc(0)) ?? PUBLIC_KEY.invalid(omitted, NOT_A_KEY)
}

function bytesOf(base64: string | null | undefined): Buffer | undefined {
  return (base64 ?? '') === '' ? undefined : Buffer.from(base64 ?? '', 'base64')
}

function validateStub(stub: Buffer): FieldError[] {
  if (stub.length > MAX_BYTES) return [STUB.tooLong(MAX_BYTES)]
  const request = attempt(() => parseRequest(stub))
  if (request === undefined) return [STUB.invalid(omitted, NOT_A_REQUEST)]
  const complaint = keyComplaint(request.publicKey, 'P256, P384, or P521')
  if (complaint !== undefined) return [STUB.invalid(complaint.shown ?? omitted, complaint.detail)]
  return isSigned(request) ? [] : [STUB.invalid(omitted, 'invalid signature')]
}

function isSigned(request: CertificateRequest): boolean {
  return attempt(() => (verifyRequest(request), true)) === true
}

function validateProvenKey(
  { podUID, pkixPublicKey }: PodCertificateRequestSpec,
  key: Buffer,
  proof: Buffer,
): FieldError[] {
  if (key.length > MAX_BYTES) return [PUBLIC_KEY.tooLong(MAX_BYTES)]
  if (proof.length > MAX_BYTES) return [PROOF.tooLong(MAX_BYTES)]
  const parsed = parsePublicKey(key)
  if (parsed === undefined) return [PUBLIC_KEY.invalid(pkixPublicKey, NOT_A_KEY)]
  const complaint = keyComplaint(parsed, 'P256 or P384')
  if (complaint !== undefined) return [PUBLIC_KEY.invalid(complaint.shown ?? pkixPublicKey, complaint.detail)]
  if (isProof(parsed, Buffer.from(podUID), proof)) return []
  return [PROOF.invalid(omitted, 'could not verify proof-of-possession signature')]
}

function parsePublicKey(der: Buffer): KeyObject | undefined {
  const key = attempt(() => createPublicKey({ key: der, format: 'der', type: 'spki' }))
  // Go supports only these curves.
  const isForeign = key?.asymmetricKeyType === 'ec' && !curves.has(key.asymmetricKeyDetails?.namedCurve ?? '')
  return isForeign ? undefined : key
}

const curves = new Map([
  ['secp224r1', 'P-224'],
  ['prime256v1', 'P-256'],
  ['secp384r1', 'P-384'],
  ['secp521r1', 'P-521'],
])

/** Errors print `shown` instead of the long value. */
function keyComplaint(key: KeyObject, curveNames: string): { shown?: string; detail: string } | undefined {
  const { namedCurve = '', modulusLength = 0 } = key.asymmetricKeyDetails ?? {}
  switch (key.asymmetricKeyType) {
    case 'ed25519':
      return undefined
    case 'ec': {
      if (curves.has(namedCurve) && namedCurve !== 'secp224r1') return undefined
      const shown = `curve ${curves.get(namedCurve) ?? namedCurve}`
      return { shown, detail: `elliptic public keys must use curve ${curveNames}` }
    }
    case 'rsa': {
      const bits = Math.ceil(modulusLength / 8) * 8
      return bits === 3072 || bits === 4096 ? undefined : { shown: `${bits}-bit modulus`, detail: RSA_SIZES }
    }
    default:
      return { detail: UNKNOWN_TYPE }
  }
}

function isProof(key: KeyObject, message: Buffer, signature: Buffer): boolean {
  const check = (): boolean => {
    if (key.asymmetricKeyType === 'ed25519') return verify(null, message, key, signature)
    if (key.asymmetricKeyType === 'ec') return verify('sha256', message, key, signature)
    const padding = constants.RSA_PKCS1_PSS_PADDING
    return verify('sha256', message, { key, padding, saltLength: constants.RSA_PSS_SALTLEN_AUTO }, signature)
  }
  return attempt(check) === true
}
