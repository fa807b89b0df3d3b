/** CertificateApproval: users who approve or deny a CertificateSigningRequest need permission for its signer. */
import type { CertificateSigningRequest } from '#apis/certificates/v1.ts'
import type { Attributes } from '#apiserver/registry/admission.ts'
import { goQuote } from '#lib/go/text.ts'

import { refuse } from './kit/refusal.ts'
import { type Authorize, mayUseSigner } from './kit/signer-access.ts'
import { type AdmissionPlugin, defineAdmission } from './plugin.ts'

export function createCertificateApproval(ask: Authorize): AdmissionPlugin {
  return defineAdmission({
    name: 'CertificateApproval',
    on: ['UPDATE'],
    resources: ['certificatesigningrequests.certificates.k8s.io/approval'],
    validate: (attributes) => check(ask, attributes),
  })
}

/** Uses the stored signer: the update might name another one. */
async function check(ask: Authorize, attributes: Attributes): Promise<void> {
  const { signerName } = (attributes.oldObject as CertificateSigningRequest).spec
  if (await mayUseSigner(ask, attributes, { verb: 'approve', signerName })) return
  throw refuse(attributes, `user not permitted to approve requests with signerName ${goQuote(signerName)}`)
}
