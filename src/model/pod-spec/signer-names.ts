/** Validates names of certificate signers, `example.com/name`, and of their trust bundles. */
import { byteLength } from '#lib/go/text.ts'
import type { FieldError, FieldPath } from '#meta/validation/field-path.ts'
import { dns1123Label, dns1123Subdomain } from '#meta/validation/names.ts'

const MAX_DOMAIN_BYTES = 253
/** A domain, a slash, a namespace, a dot and an object name. */
const MAX_SIGNER_BYTES = 253 + 1 + 63 + 1 + 253

/** A signer of the Kubernetes project. */
export function isKubernetesSigner(signer: string): boolean {
  const domain = signer.split('/', 1)[0] ?? ''
  return domain === 'kubernetes.io' || domain.endsWith('.kubernetes.io')
}

export function validateSignerName(field: FieldPath, signer: string): FieldError[] {
  if (signer === '') return [field.required()]
  const [domain = '', path = '', ...more] = signer.split('/')
  if (!signer.includes('/') || more.length > 0) {
    const form = "must be a fully qualified domain and path of the form 'example.com/signer-name'"
    return [field.invalid(signer, form)]
  }
  const errors = byteLength(domain) > MAX_DOMAIN_BYTES ? [field.tooLong(MAX_DOMAIN_BYTES)] : []
  errors.push(...firstBadPart(field, domain, dns1123Label))
  if (!domain.includes('.')) {
    errors.push(field.invalid(domain, 'should be a domain with at least two segments separated by dots'))
  }
  errors.push(...firstBadPart(field, path, dns1123Subdomain))
  return byteLength(signer) > MAX_SIGNER_BYTES ? [...errors, field.tooLong(MAX_SIGNER_BYTES)] : errors
}

/** One error suffices, because further ones would look the same. */
function firstBadPart(path: FieldPath, text: string, check: (part: string) => string[]): FieldError[] {
  const bad = text.split('.').find((part) => check(part).length > 0)
  if (bad === undefined) return []
  return check(bad).map((complaint) => path.invalid(text, `validating label "${bad}": ${complaint}`))
}

/** A bundle named `example.com:signer:name` belongs to a signer, others to none. */
export function trustBundleComplaints(name: string): string[] {
  const colon = name.lastIndexOf(':')
  if (colon === 0) return ['ClusterTrustBundle without signer name must not have ":" in its name']
  return dns1123Subdomain(colon < 0 ? name : name.slice(colon + 1))
}
