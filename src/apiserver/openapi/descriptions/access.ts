/** rbac, authentication, authorization and certificates: who somebody is and what they may do. */
import type { DescriptionTable } from './table.ts'

const verbs = 'What may be done, such as get or create; * means everything.'
const apiGroups = 'With resources of these groups; empty text for the core group, * for all.'
const resources = 'With these resources; pods/log for a subresource, * for all.'
const resourceNames = 'Only with objects of these names. Empty: with all.'
const nonResourceURLs = 'With these paths; * at the end for all below.'
const resourceAttributes = 'What is asked about, when it is a resource.'
const nonResourceAttributes = 'What is asked about, when it is another path.'
const roleRef = 'The role. Cannot be changed.'
const subjects = 'Who.'

export const rbac: DescriptionTable = {
  Role: { '': 'A set of rights in one namespace.', rules: 'The rights.' },
  ClusterRole: {
    '': 'A set of rights in the whole cluster, or in a namespace when a RoleBinding names it.',
    rules: 'The rights.',
    aggregationRule: 'Take the rights from other ClusterRoles instead.',
  },
  RoleBinding: { '': 'Gives somebody the rights of a role in one namespace.', subjects, roleRef },
  ClusterRoleBinding: { '': 'Gives somebody the rights of a ClusterRole in the whole cluster.', subjects, roleRef },
  PolicyRule: { '': 'A right.', verbs, apiGroups, resources, resourceNames, nonResourceURLs },
  AggregationRule: {
    '': 'Where a ClusterRole takes its rights from.',
    clusterRoleSelectors: 'ClusterRoles with such labels.',
  },
  RoleRef: {
    '': 'Points to a role.',
    apiGroup: 'Always rbac.authorization.k8s.io.',
    kind: 'Role or ClusterRole.',
    name: 'Its name.',
  },
  Subject: {
    '': 'Somebody.',
    kind: 'User, Group or ServiceAccount.',
    apiGroup: 'For users and groups rbac.authorization.k8s.io, for ServiceAccounts empty.',
    apiVersion: 'Older name of apiGroup, in versions that are gone.',
    name: 'The name.',
    namespace: 'The namespace of a ServiceAccount.',
  },
}

export const authentication: DescriptionTable = {
  TokenReview: { '': 'Asks whether a token is good, and whose it is.' },
  TokenReviewSpec: {
    '': 'The question.',
    token: 'The token.',
    audiences: 'For whom it must be good. Default: the API server.',
  },
  TokenReviewStatus: {
    '': 'The answer.',
    authenticated: 'Whether it is good.',
    user: 'Whose it is.',
    audiences: 'For which of those asked about it is good.',
    error: 'Why it could not be checked.',
  },
  TokenRequest: { '': 'Asks for a token of a ServiceAccount.' },
  TokenRequestSpec: {
    '': 'What the token shall be.',
    audiences: 'For whom. Default: the API server.',
    expirationSeconds: 'For how long; at least 600. Default: an hour.',
    boundObjectRef: 'Good only as long as this object is there.',
  },
  TokenRequestStatus: { '': 'The token.', token: 'The token itself.', expirationTimestamp: 'Until when it is good.' },
  BoundObjectReference: {
    '': 'Points to a Pod, Secret or Node.',
    kind: 'Its kind.',
    apiVersion: 'Its API version.',
    name: 'Its name.',
    uid: 'Its uid.',
  },
  SelfSubjectReview: { '': 'Asks who the caller is (kubectl auth whoami).' },
  SelfSubjectReviewStatus: { '': 'The answer.', userInfo: 'Who the caller is.' },
  UserInfo: {
    '': 'Somebody, as authentication found out.',
    username: 'The name.',
    uid: 'Distinguishes namesakes.',
    groups: 'The groups.',
    extra: 'What else was found out.',
  },
}

export const authorization: DescriptionTable = {
  SubjectAccessReview: { '': 'Asks whether somebody may do something.' },
  LocalSubjectAccessReview: { '': 'Asks whether somebody may do something in this namespace.' },
  SelfSubjectAccessReview: { '': 'Asks whether the caller may do something (kubectl auth can-i).' },
  SelfSubjectRulesReview: { '': 'Asks what the caller may do in a namespace. For display, not for decisions.' },
  SubjectAccessReviewSpec: {
    '': 'The question.',
    resourceAttributes,
    nonResourceAttributes,
    user: 'Who.',
    groups: 'Which groups they are in.',
    uid: 'Their uid.',
    extra: 'What else is known about them.',
  },
  SelfSubjectAccessReviewSpec: { '': 'The question.', resourceAttributes, nonResourceAttributes },
  SelfSubjectRulesReviewSpec: { '': 'The question.', namespace: 'The namespace.' },
  ResourceAttributes: {
    '': 'Something to be done with a resource.',
    namespace: 'In which namespace. Empty: in all, or for kinds that have none.',
    verb: 'What, such as get.',
    group: 'The group of the resource; * for all.',
    version: 'Its version; * for all.',
    resource: 'The resource; * for all.',
    subresource: 'A part of it, such as log.',
    name: 'One object. Empty: all.',
    fieldSelector: 'Only objects with such fields.',
    labelSelector: 'Only objects with such labels.',
  },
  NonResourceAttributes: { '': 'Something to be done with a path.', path: 'The path.', verb: 'What.' },
  FieldSelectorAttributes: { '': 'A selection by fields.', rawSelector: 'As text.', requirements: 'Or taken apart.' },
  LabelSelectorAttributes: { '': 'A selection by labels.', rawSelector: 'As text.', requirements: 'Or taken apart.' },
  SubjectAccessReviewStatus: {
    '': 'The answer.',
    allowed: 'Whether it is allowed.',
    denied: 'Whether it is forbidden outright. Not allowed and not denied: nobody had an opinion.',
    reason: 'Why.',
    evaluationError: 'What went wrong while finding out; the answer may hold all the same.',
  },
  SubjectRulesReviewStatus: {
    '': 'The answer.',
    resourceRules: 'What may be done with resources.',
    nonResourceRules: 'What may be done with other paths.',
    incomplete: 'Whether there may be more.',
    evaluationError: 'What went wrong while finding out.',
  },
  ResourceRule: { '': 'Rights to resources.', verbs, apiGroups, resources, resourceNames },
  NonResourceRule: { '': 'What may be done with paths.', verbs, nonResourceURLs },
}

export const certificates: DescriptionTable = {
  CertificateSigningRequest: { '': 'Asks a signer for a certificate; somebody must approve it.' },
  CertificateSigningRequestSpec: {
    '': 'What is asked for. Cannot be changed.',
    request: 'The request in PEM, as base64.',
    signerName: 'The signer, as domain/name.',
    expirationSeconds: 'For how long, as a wish; at least 600.',
    usages: 'What the key is for, such as client auth.',
    username: 'Who asks. Filled in by the server.',
    uid: 'Their uid. Filled in by the server.',
    groups: 'Their groups. Filled in by the server.',
    extra: 'What else is known about them. Filled in by the server.',
  },
  CertificateSigningRequestStatus: {
    '': 'What became of it.',
    conditions: 'Approved, Denied or Failed.',
    certificate: 'The certificate in PEM, as base64, once it is issued.',
  },
  ClusterTrustBundle: { '': 'Certificates to trust, for everybody in the cluster.' },
  ClusterTrustBundleSpec: {
    '': 'The certificates.',
    signerName: 'The signer they belong to; the name of the bundle must begin with it. Cannot be changed.',
    trustBundle: 'Certificates of authorities in PEM, each once.',
  },
  PodCertificateRequest: { '': 'A kubelet asks a signer for a certificate for one of its pods.' },
  PodCertificateRequestSpec: {
    '': 'For whom. Cannot be changed.',
    signerName: 'The signer, as domain/name.',
    podName: 'The pod.',
    podUID: 'Its uid.',
    serviceAccountName: 'Its ServiceAccount.',
    serviceAccountUID: 'The uid of that.',
    nodeName: 'The node it runs on.',
    nodeUID: 'The uid of that.',
    maxExpirationSeconds: 'For how long at most; from an hour to 91 days. Default: a day.',
    stubPKCS10Request: 'A signed, empty request that carries the key, as base64.',
    pkixPublicKey: 'Older way to give the key.',
    proofOfPossession: 'With it: a signature over the uid of the pod.',
    unverifiedUserAnnotations: 'Hints from whoever wrote the pod. Nobody checks them.',
  },
  PodCertificateRequestStatus: {
    '': 'What became of it. Written once.',
    conditions: 'Issued, Denied or Failed.',
    certificateChain: 'The certificate in PEM, and those it needs to be verified.',
    notBefore: 'From when it is good.',
    beginRefreshAt: 'When the kubelet shall ask for the next one.',
    notAfter: 'Until when it is good.',
  },
}
