/** The certificate request inside a CertificateSigningRequest. */
import type { CertificateSigningRequest } from '#apis/certificates/v1.ts'
import { type CertificateRequest, parseRequest } from '#lib/x509/request.ts'

/** Throws X509Error. */
export function readCertificateRequest({ spec }: CertificateSigningRequest): CertificateRequest {
  return parseRequest(Buffer.from(spec.request, 'base64').toString('latin1'))
}
