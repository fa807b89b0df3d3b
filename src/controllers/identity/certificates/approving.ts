/**
 * Approves kubelet client CSRs if a SubjectAccessReview on certificatesigningrequests/nodeclient or /selfnodeclient
 * allows the requestor. Other CSRs need manual approval.
 */
import { SubjectAccessReviews } from '#apis/authorization/v1.ts'
import { type CertificateSigningRequest, CertificateSigningRequests } from '#apis/certificates/v1.ts'
import type { CertificateRequest } from '#lib/x509/request.ts'
import { kubeletClientComplaint, KUBELET_CLIENT_SIGNER, readCertificateRequest } from '#model/certificate-requests.ts'
import { itself, NotYet, rule } from '#reconcile/controller.ts'

import { type Controller, type ControllerContext, defineController } from '../../controller.ts'
import { CERTIFICATE_RETRY, decisionOn } from './requests.ts'

interface ApprovalRule {
  readonly subresource: string
  readonly message: string
  applies(request: CertificateSigningRequest, csr: CertificateRequest): boolean
}

/** In this order. */
const APPROVAL_RULES: readonly ApprovalRule[] = [
  {
    subresource: 'selfnodeclient',
    message: 'Auto approving self kubelet client certificate after SubjectAccessReview.',
    applies: ({ spec }, { subject }) => (spec.username ?? '') === subject.commonName,
  },
  {
    subresource: 'nodeclient',
    message: 'Auto approving kubelet client certificate after SubjectAccessReview.',
    applies: () => true,
  },
]

export const certificateApprovingController: Controller = defineController({
  name: 'certificatesigningrequest-approving-controller',
  aliases: ['csrapproving'],
  account: 'certificate-controller',
  retry: CERTIFICATE_RETRY,
  watches: [itself(CertificateSigningRequests)],
  rules: [
    rule('certificates.k8s.io', 'certificatesigningrequests', 'get list watch'),
    rule('certificates.k8s.io', 'certificatesigningrequests/approval', 'update'),
    rule('authorization.k8s.io', 'subjectaccessreviews', 'create'),
  ],

  async reconcile(name, context) {
    const request = context.cache.get(CertificateSigningRequests, name)
    if (request === undefined || (request.status.certificate ?? '') !== '') return
    if (decisionOn(request) !== 'none' || request.spec.signerName !== KUBELET_CLIENT_SIGNER) return
    const csr = readCertificateRequest(request)
    if (kubeletClientComplaint(csr, request.spec.usages ?? []) !== undefined) return
    const rules = APPROVAL_RULES.filter((rule) => rule.applies(request, csr))
    for (const rule of rules) if (await mayAsk(request, rule, context)) return approve(request, rule, context)
    const tried = rules.map(({ subresource }) => subresource).join(' ')
    throw new NotYet(`recognized csr "${name}" as [${tried}] but subject access review was not approved`)
  },
})

async function mayAsk(
  { spec }: CertificateSigningRequest,
  { subresource }: ApprovalRule,
  { client, signal }: ControllerContext,
): Promise<boolean> {
  const { username, uid, groups, extra } = spec
  const resourceAttributes = {
    group: 'certificates.k8s.io',
    resource: 'certificatesigningrequests',
    verb: 'create',
    version: '*',
    subresource,
  }
  const who = {
    ...(username !== undefined && { user: username }),
    ...(uid !== undefined && { uid }),
    ...(groups !== undefined && { groups }),
    ...(extra !== undefined && { extra }),
  }
  const review = { metadata: {}, spec: { ...who, resourceAttributes } }
  const { status } = await client.create(SubjectAccessReviews, review, { signal })
  return status.allowed
}

async function approve(
  request: CertificateSigningRequest,
  { message }: ApprovalRule,
  { client, signal }: ControllerContext,
): Promise<void> {
  const approved = {
    type: 'Approved',
    status: 'True',
    reason: 'AutoApproved',
    message,
    lastUpdateTime: null,
    lastTransitionTime: null,
  }
  const conditions = [...(request.status.conditions ?? []), approved]
  const decided = { ...request, status: { ...request.status, conditions } }
  await client.update(CertificateSigningRequests, decided, { subresource: 'approval', signal })
}
