/**
 * Approval of requests for certificates: those by which kubelets come into the cluster and stay there, where whoever asks
 * may ask (a SubjectAccessReview on certificatesigningrequests/nodeclient or /selfnodeclient). All others wait for people.
 */
import { SubjectAccessReviews } from '#apis/authorization/v1.ts'
import { type CertificateSigningRequest, CertificateSigningRequests } from '#apis/certificates/v1.ts'
import type { CertificateRequest } from '#lib/x509/request.ts'
import { kubeletClientComplaint, KUBELET_CLIENT_SIGNER, readCertificateRequest } from '#model/certificate-requests.ts'

import { type Controller, type ControllerContext, defineController, itself, NotYet, rule } from '../controller.ts'
import { CERTIFICATE_RETRY, decisionOn } from './requests.ts'

interface Ground {
  readonly subresource: string
  readonly message: string
  applies(request: CertificateSigningRequest, asked: CertificateRequest): boolean
}

/** In the order in which they are tried. */
const GROUNDS: readonly Ground[] = [
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
    const asked = readCertificateRequest(request)
    if (kubeletClientComplaint(asked, request.spec.usages ?? []) !== undefined) return
    const grounds = GROUNDS.filter((ground) => ground.applies(request, asked))
    for (const ground of grounds) if (await mayAsk(request, ground, context)) return approve(request, ground, context)
    const tried = grounds.map(({ subresource }) => subresource).join(' ')
    throw new NotYet(`recognized csr "${name}" as [${tried}] but subject access review was not approved`)
  },
})

async function mayAsk(
  { spec }: CertificateSigningRequest,
  { subresource }: Ground,
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
  { message }: Ground,
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
