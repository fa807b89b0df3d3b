/**
 * CertificateSigning: users who set the certificate or a condition of a CertificateSigningRequest need permission to
 * sign for its signer.
 */
import type { CertificateSigningRequest } from '#apis/certificates/v1.ts'
import type { Attributes } from '#apiserver/registry/admission.ts'
import { goQuote } from '#lib/go/text.ts'
import { semanticEqual } from '#meta/object.ts'

import { refuse } from './kit/refusal.ts'
import { type Authorize, mayUseSigner } from './kit/signer-access.ts'
import { type AdmissionPlugin, defineAdmission } from './plugin.ts'

export function createCertificateSigning(ask: Authorize): AdmissionPlugin {
  return defineAdmission({
    name: 'CertificateSigning',
    on: ['UPDATE'],
    resources: ['certificatesigningrequests.certificates.k8s.io/status'],

    validate(attributes) {
      const next = (attributes.object as CertificateSigningRequest).status
      const old = (attributes.oldObject as CertificateSigningRequest).status
      const same =
        (next?.certificate ?? '') === (old?.certificate ?? '') && semanticEqual(next?.conditions, old?.conditions)
      return same ? undefined : check(ask, attributes)
    },
  })
}

async function check(ask: Authorize, attributes: Attributes): Promise<void> {
  const { signerName } = (attributes.oldObject as CertificateSigningRequest).spec
  if (await mayUseSigner(ask, attributes, { verb: 'sign', signerName })) return
  throw refuse(attributes, `user not permitted to sign requests with signerName ${goQuote(signerName)}`)
}
