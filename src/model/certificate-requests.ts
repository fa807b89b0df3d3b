/**
 * Parses the certificate request in a CertificateSigningRequest, and checks the requirements of Kubernetes' signers.
 * Pure.
 */
import type { CertificateSigningRequest } from '#apis/certificates/v1.ts'
import { type CertificateRequest, parseRequest } from '#lib/x509/request.ts'

/** Throws X509Error. */
export function readCertificateRequest({ spec }: CertificateSigningRequest): CertificateRequest {
  return parseRequest(Buffer.from(spec.request, 'base64').toString('latin1'))
}

/** The error in upstream's words; undefined for a valid request. */
type SignerRule = (request: CertificateRequest, usages: readonly string[]) => string | undefined

export const CLIENT_SIGNER = 'kubernetes.io/kube-apiserver-client'
export const KUBELET_CLIENT_SIGNER = 'kubernetes.io/kube-apiserver-client-kubelet'
export const KUBELET_SERVING_SIGNER = 'kubernetes.io/kubelet-serving'
export const LEGACY_SIGNER = 'kubernetes.io/legacy-unknown'

/** By signer name. */
export const SIGNER_RULES: ReadonlyMap<string, SignerRule> = new Map<string, SignerRule>([
  [CLIENT_SIGNER, (_, usages) => clientComplaint(usages)],
  [KUBELET_CLIENT_SIGNER, kubeletClientComplaint],
  [KUBELET_SERVING_SIGNER, kubeletServingComplaint],
  [LEGACY_SIGNER, () => undefined],
])

function clientComplaint(usages: readonly string[]): string | undefined {
  const allowed = ['digital signature', 'key encipherment', 'client auth']
  const strange = usages.find((usage) => !allowed.includes(usage))
  if (strange !== undefined) return `invalid usage for client certificate: ${strange}`
  return usages.includes('client auth') ? undefined : 'missing required usage for client certificate: client auth'
}

const NOT_NODES = 'subject organization is not system:nodes'
const NOT_A_NODE = 'subject common name does not begin with system:node:'

function isOfNodes({ subject }: CertificateRequest): boolean {
  return subject.organizations.length === 1 && subject.organizations[0] === 'system:nodes'
}

function isOfNode({ subject }: CertificateRequest): boolean {
  return subject.commonName.startsWith('system:node:')
}

export function kubeletClientComplaint(request: CertificateRequest, usages: readonly string[]): string | undefined {
  const { dns, emails, ips, uris } = request.names
  if (!isOfNodes(request)) return NOT_NODES
  if (dns.length > 0) return 'DNS subjectAltNames are not allowed'
  if (emails.length > 0) return 'Email subjectAltNames are not allowed'
  if (ips.length > 0) return 'IP subjectAltNames are not allowed'
  if (uris.length > 0) return 'URI subjectAltNames are not allowed'
  if (!isOfNode(request)) return NOT_A_NODE
  return usageComplaint(usages, 'client auth')
}

function kubeletServingComplaint(request: CertificateRequest, usages: readonly string[]): string | undefined {
  const { dns, emails, ips, uris } = request.names
  if (!isOfNodes(request)) return NOT_NODES
  if (dns.length === 0 && ips.length === 0) return 'DNS or IP subjectAltName is required'
  if (emails.length > 0) return 'Email subjectAltNames are not allowed'
  if (uris.length > 0) return 'URI subjectAltNames are not allowed'
  return usageComplaint(usages, 'server auth') ?? (isOfNode(request) ? undefined : NOT_A_NODE)
}

/** Key encipherment is for RSA keys and optional. */
function usageComplaint(usages: readonly string[], purpose: string): string | undefined {
  const wanted = ['digital signature', purpose]
  const requested = new Set(usages.filter((usage) => usage !== 'key encipherment'))
  if (requested.size === wanted.length && wanted.every((usage) => requested.has(usage))) return undefined
  const all = ['digital signature', 'key encipherment', purpose].toSorted()
  return `usages did not match [${all.join(' ')}]`
}
