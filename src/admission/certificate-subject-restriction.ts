/**
 * CertificateSubjectRestriction: refuses client certificate requests of the group system:masters for the signer
 * kube-apiserver-client.
 */
import type { CertificateSigningRequest } from '#apis/certificates/v1.ts'
import type { Attributes } from '#apiserver/registry/admission.ts'
import { PRIVILEGED_GROUP } from '#auth/authorizer.ts'
import { readCertificateRequest } from '#model/certificate-requests.ts'

import { refuse } from './kit/refusal.ts'
import { type AdmissionPlugin, defineAdmission } from './plugin.ts'

const SIGNER = 'kubernetes.io/kube-apiserver-client'

export const certificateSubjectRestriction: AdmissionPlugin = defineAdmission({
  name: 'CertificateSubjectRestriction',
  on: ['CREATE'],
  resources: ['certificatesigningrequests.certificates.k8s.io'],

  validate(attributes) {
    const request = attributes.object as CertificateSigningRequest
    if (request.spec.signerName !== SIGNER || !organizationsOf(attributes, request).includes(PRIVILEGED_GROUP)) return
    throw refuse(attributes, `use of ${SIGNER} signer with ${PRIVILEGED_GROUP} group is not allowed`)
  },
})

function organizationsOf(attributes: Attributes, request: CertificateSigningRequest): readonly string[] {
  try {
    return readCertificateRequest(request).subject.organizations
  } catch (error) {
    throw refuse(attributes, `failed to parse CSR: ${(error as Error).message}`)
  }
}
