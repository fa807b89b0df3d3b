/**
 * Validates certificate signing requests. An update may keep errors of the old object, so that objects of older
 * releases stay writable.
 */
import type { CertificateSigningRequest, CertificateSigningRequestCondition } from '#apis/certificates/v1.ts'
import { goQuote } from '#lib/go/text.ts'
import { createRepetition } from '#lib/repetition.ts'
import { semanticEqual } from '#meta/object.ts'
import { asJson, collectErrors, type FieldError, fieldPath } from '#meta/validation/field-path.ts'
import { validateSignerName } from '#model/pod-spec/signer-names.ts'

import { certificatesComplaint, requestComplaint } from './pem.ts'

const MIN_EXPIRATION_SECONDS = 600
const LEGACY_SIGNER = 'kubernetes.io/legacy-unknown'

const usages = new Set([
  'signing',
  'digital signature',
  'content commitment',
  'key encipherment',
  'key agreement',
  'data encipherment',
  'cert sign',
  'crl sign',
  'encipher only',
  'decipher only',
  'any',
  'server auth',
  'client auth',
  'code signing',
  'email protection',
  's/mime',
  'ipsec end system',
  'ipsec tunnel',
  'ipsec user',
  'timestamping',
  'ocsp signing',
  'microsoft sgc',
  'netscape sgc',
])

/** A decision is permanent; these conditions must be true. */
const finalTypes = ['Approved', 'Denied', 'Failed']
const decisionTypes = ['Approved', 'Denied']

/** The fields that this subresource may set. */
export interface Powers {
  readonly decides?: boolean
  readonly setsCertificate?: boolean
}

export function validateNew(next: CertificateSigningRequest): FieldError[] {
  return validateRequest(next, undefined)
}

export function validateChange(
  next: CertificateSigningRequest,
  old: CertificateSigningRequest,
  powers: Powers,
): FieldError[] {
  return collectErrors(
    validateRequest(next, old),
    finalTypes
      .filter((type) => withType(next, type).length < withType(old, type).length)
      .map((type) =>
        fieldPath('status.conditions').forbidden(`updates may not remove a condition of type ${goQuote(type)}`),
      ),
    powers.decides !== true && decisionTypes.flatMap((type) => validateUndecided(next, old, type)),
    validateCertificateChange(next, old, powers),
  )
}

function conditionsOf({ status }: CertificateSigningRequest): readonly CertificateSigningRequestCondition[] {
  return status?.conditions ?? []
}

function withType(request: CertificateSigningRequest, type: string): CertificateSigningRequestCondition[] {
  return conditionsOf(request).filter((condition) => condition.type === type)
}

function certificateOf({ status }: CertificateSigningRequest): string {
  return status?.certificate ?? ''
}

function validateUndecided(
  next: CertificateSigningRequest,
  old: CertificateSigningRequest,
  type: string,
): FieldError[] {
  const [now, before] = [withType(next, type), withType(old, type)]
  // The removal was already reported.
  if (now.length < before.length || semanticEqual(now, before)) return []
  const what = now.length > before.length ? 'add' : 'modify'
  return [fieldPath('status.conditions').forbidden(`updates may not ${what} a condition of type ${goQuote(type)}`)]
}

function validateCertificateChange(
  next: CertificateSigningRequest,
  old: CertificateSigningRequest,
  { setsCertificate }: Powers,
): FieldError[] {
  if (certificateOf(next) === certificateOf(old)) return []
  if (setsCertificate !== true)
    return [fieldPath('status.certificate').forbidden('updates may not set certificate content')]
  if (certificateOf(old) === '') return []
  return [fieldPath('status.certificate').forbidden('updates may not modify existing certificate content')]
}

function validateRequest(next: CertificateSigningRequest, old: CertificateSigningRequest | undefined): FieldError[] {
  const { request, signerName, expirationSeconds } = next.spec
  const complaint = requestComplaint(request ?? '')
  const legacyAllowed = old?.spec.signerName === LEGACY_SIGNER
  return collectErrors(
    complaint !== undefined && fieldPath('spec.request').invalid(request, complaint),
    validateUsages(next.spec.usages ?? [], old?.spec.usages ?? []),
    signerName === LEGACY_SIGNER && !legacyAllowed
      ? fieldPath('spec.signerName').invalid(signerName, 'the legacy signerName is not allowed via this API version')
      : validateSignerName(fieldPath('spec.signerName'), signerName),
    expirationSeconds !== undefined &&
      expirationSeconds < MIN_EXPIRATION_SECONDS &&
      fieldPath('spec.expirationSeconds').invalid(
        expirationSeconds,
        `may not specify a duration less than ${MIN_EXPIRATION_SECONDS} seconds (10 minutes)`,
      ),
    validateConditions(conditionsOf(next), old === undefined ? [] : conditionsOf(old)),
    validateCertificate(next, old),
  )
}

function hasRepetition(values: readonly string[]): boolean {
  return new Set(values).size < values.length
}

function validateUsages(next: readonly string[], old: readonly string[]): FieldError[] {
  const field = fieldPath('spec.usages')
  const unknown = old.every((usage) => usages.has(usage))
    ? field.each(next, (path, usage) => !usages.has(usage) && path.notInSet(asJson(usage), usages))
    : []
  const isRepeated = createRepetition()
  const repeated = hasRepetition(old)
    ? []
    : field.each(next, (path, usage) => isRepeated(usage) && path.duplicate(asJson(usage)))
  return collectErrors(next.length === 0 && field.required(), unknown, repeated)
}

function validateConditions(
  next: readonly CertificateSigningRequestCondition[],
  old: readonly CertificateSigningRequestCondition[],
): FieldError[] {
  const before = old.map(({ type }) => type)
  const [allowsEmpty, allowsRepeated] = [before.includes(''), hasRepetition(before)]
  const earlier = new Set<string>()
  const allowsBoth = decisionTypes.every((type) => before.includes(type))
  return fieldPath('status.conditions').each(next, (path, { type, status }) => {
    const errors = type === '' && !allowsEmpty ? [path.child('type').required()] : []
    const statuses = finalTypes.includes(type) ? ['True'] : ['False', 'True', 'Unknown']
    if (status === '') errors.push(path.child('status').required())
    else if (!statuses.includes(status)) errors.push(path.child('status').notInSet(asJson(status), statuses))
    const other = decisionTypes.includes(type) ? decisionTypes.find((one) => one !== type) : undefined
    if (other !== undefined && !allowsBoth && earlier.has(other)) {
      const rule = 'Approved and Denied conditions are mutually exclusive'
      errors.push(fieldPath('status.conditions').invalid(asJson(type), rule, 'zeroOrOneOf'))
    }
    if (!allowsRepeated && earlier.has(type)) errors.push(path.child('type').duplicate(asJson(type)))
    earlier.add(type)
    return errors
  })
}

/** An unchanged certificate, or one that replaces an invalid one, is accepted. */
function validateCertificate(
  next: CertificateSigningRequest,
  old: CertificateSigningRequest | undefined,
): FieldError[] {
  const [now, before] = [certificateOf(next), old === undefined ? undefined : certificateOf(old)]
  if (now === before || (before !== undefined && certificatesComplaint(before) !== undefined)) return []
  const complaint = certificatesComplaint(now)
  return complaint === undefined ? [] : [fieldPath('status.certificate').invalid('<certificate data>', complaint)]
}
