/** Names of signers of certificates, `example.com/name`, and of the bundles of trust that belong to them. */
import { byteLength } from '#lib/go-text.ts'
import { type FieldError, invalid, required, tooLong } from '#meta/validation/field-error.ts'
import { dns1123Label, dns1123Subdomain } from '#meta/validation/names.ts'

const MAX_DOMAIN_BYTES = 253
/** A domain, a slash, a namespace, a dot and the name of an object. */
const MAX_SIGNER_BYTES = 253 + 1 + 63 + 1 + 253

/** A signer of the Kubernetes project's own. */
export function isKubernetesSigner(signer: string): boolean {
  const domain = signer.split('/', 1)[0] ?? ''
  return domain === 'kubernetes.io' || domain.endsWith('.kubernetes.io')
}

export function validateSignerName(field: string, signer: string): FieldError[] {
  if (signer === '') return [required(field)]
  const [domain = '', path = '', ...more] = signer.split('/')
  if (!signer.includes('/') || more.length > 0) {
    const form = "must be a fully qualified domain and path of the form 'example.com/signer-name'"
    return [invalid(field, signer, form)]
  }
  const errors = byteLength(domain) > MAX_DOMAIN_BYTES ? [tooLong(field, MAX_DOMAIN_BYTES)] : []
  errors.push(...firstBadPart(field, domain, dns1123Label))
  if (!domain.includes('.')) {
    errors.push(invalid(field, domain, 'should be a domain with at least two segments separated by dots'))
  }
  errors.push(...firstBadPart(field, path, dns1123Subdomain))
  return byteLength(signer) > MAX_SIGNER_BYTES ? [...errors, tooLong(field, MAX_SIGNER_BYTES)] : errors
}

/** One bad part is enough: complaints about further ones would look the same. */
function firstBadPart(field: string, text: string, check: (part: string) => string[]): FieldError[] {
  const bad = text.split('.').find((part) => check(part).length > 0)
  if (bad === undefined) return []
  return check(bad).map((complaint) => invalid(field, text, `validating label "${bad}": ${complaint}`))
}

/** A bundle named `example.com:signer:name` belongs to a signer, any other to none. */
export function trustBundleComplaints(name: string): string[] {
  const colon = name.lastIndexOf(':')
  if (colon === 0) return ['ClusterTrustBundle without signer name must not have ":" in its name']
  return dns1123Subdomain(colon < 0 ? name : name.slice(colon + 1))
}
