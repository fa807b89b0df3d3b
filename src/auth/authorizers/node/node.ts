/**
 * Node authorizer: a kubelet may read only the objects that pods on its node need. Admission checks a kubelet's writes.
 * Upstream's plugin/pkg/auth/authorizer/node, v1.36.
 */
import type { PolicyRule } from '#apis/rbac/v1.ts'
import { goQuote } from '#lib/go/text.ts'
import { parseFieldSelector, requiredField } from '#meta/fields.ts'
import { ruleRequestOf, RuleTable } from '#model/rule-table.ts'

import {
  type Access,
  ALLOWED,
  type Authorizer,
  NO_OPINION,
  NO_RULES,
  noOpinion,
  type Verdict,
} from '../../authorizer.ts'
import type { User } from '../../user.ts'
import type { NodeGraph } from './graph.ts'
import { type ReferredKind, referenceTo } from './references.ts'

export interface NodeAuthorizerOptions {
  readonly graph: Pick<NodeGraph, 'relates' | 'relatesToVolume'>
  /** The rules of the role `system:node`, for every node. */
  readonly rules: readonly PolicyRule[]
  readonly isEnabled: (gate: string) => boolean
}

/** A request of an identified node. */
interface NodeRequest {
  readonly node: string
  readonly access: Access
  readonly options: NodeAuthorizerOptions
}

/** Undefined: the fixed rules decide. */
type NodeRule = (request: NodeRequest) => Verdict | undefined

export function createNodeAuthorizer(options: NodeAuthorizerOptions): Authorizer {
  const table = new RuleTable(options.rules)
  return {
    authorize(user, access) {
      if (!isNode(user)) return NO_OPINION
      const node = nodeNameOf(user)
      if (node === '') return noOpinion(`unknown node for user ${goQuote(user.name)}`)
      const rule = access.isResource ? NODE_RULES.get(`${access.group}/${access.resource}`) : undefined
      const verdict = rule?.({ node, access, options })
      return verdict ?? (table.allows(ruleRequestOf(access)) ? ALLOWED : NO_OPINION)
    },
    rulesFor: (user) =>
      isNode(user)
        ? { ...NO_RULES, incomplete: true, error: 'node authorizer does not support user rule resolution' }
        : NO_RULES,
  }
}

const USER_PREFIX = 'system:node:'
const NODES_GROUP = 'system:nodes'

/** A node needs both the user name and the group. */
function isNode({ name, groups }: User): boolean {
  return name.startsWith(USER_PREFIX) && groups.includes(NODES_GROUP)
}

export function nodeNameOf(user: User): string {
  return isNode(user) ? user.name.slice(USER_PREFIX.length) : ''
}

const NODE_RULES: ReadonlyMap<string, NodeRule> = new Map<string, NodeRule>([
  ['/secrets', (request) => readNamespaced(request, 'secret')],
  ['/configmaps', (request) => readNamespaced(request, 'configmap')],
  ['/persistentvolumeclaims', authorizeClaim],
  ['/persistentvolumes', (request) => getOne(request, () => authorizeVolume(request))],
  ['resource.k8s.io/resourceclaims', (request) => getOne(request, () => related(request, 'resourceclaim'))],
  ['storage.k8s.io/volumeattachments', (request) => getOne(request, () => related(request, 'volumeattachment'))],
  ['/serviceaccounts', authorizeServiceAccount],
  ['coordination.k8s.io/leases', authorizeLease],
  ['storage.k8s.io/csinodes', authorizeCsiNode],
  ['resource.k8s.io/resourceslices', authorizeResourceSlice],
  ['/nodes', authorizeNode],
  ['/pods', authorizePod],
  ['certificates.k8s.io/podcertificaterequests', authorizeCertificateRequest],
])

/** Allows the request if the graph connects the object with the node. */
function related({ node, access, options }: NodeRequest, kind: ReferredKind): Verdict {
  if (access.name === '') return noOpinion('No Object name found')
  const isRelated = options.graph.relates(node, referenceTo(kind, access.namespace, access.name))
  return isRelated ? ALLOWED : unrelated(node)
}

function unrelated(node: string): Verdict {
  return noOpinion(`no relationship found between node '${node}' and this object`)
}

function authorizeVolume({ node, access, options }: NodeRequest): Verdict {
  if (access.name === '') return noOpinion('No Object name found')
  return options.graph.relatesToVolume(node, access.name) ? ALLOWED : unrelated(node)
}

function getOne({ access }: NodeRequest, go: () => Verdict): Verdict {
  if (access.verb !== 'get') return noOpinion('can only get individual resources of this type')
  if (access.subresource !== '') return noOpinion('cannot get subresource')
  return go()
}

function readNamespaced(request: NodeRequest, kind: ReferredKind): Verdict {
  const { verb, subresource, namespace } = request.access
  if (!['get', 'list', 'watch'].includes(verb)) return noOpinion('can only read resources of this type')
  if (subresource !== '') return noOpinion('cannot read subresource')
  if (namespace === '') return noOpinion('can only read namespaced object of this type')
  return related(request, kind)
}

function authorizeClaim(request: NodeRequest): Verdict {
  const { verb, subresource } = request.access
  if (subresource !== 'status') return getOne(request, () => related(request, 'persistentvolumeclaim'))
  if (verb !== 'update' && verb !== 'patch') return noOpinion('can only get/update/patch this type')
  return related(request, 'persistentvolumeclaim')
}

function authorizeServiceAccount(request: NodeRequest): Verdict {
  const { node, access, options } = request
  const { verb, subresource, name, namespace } = access
  if (verb === 'get' && subresource === '') {
    const isAllowed = ['KubeletServiceAccountTokenForCredentialProviders', 'PodCertificateRequest'].some(
      options.isEnabled,
    )
    return isAllowed ? readNamespaced(request, 'serviceaccount') : noOpinion('not allowed to get service accounts')
  }
  if (verb !== 'create' || name === '') return noOpinion('can only create tokens for individual service accounts')
  if (subresource !== 'token') return noOpinion('can only create token subresource of serviceaccount')
  return options.graph.relates(node, referenceTo('serviceaccount', namespace, name)) ? ALLOWED : unrelated(node)
}

const OWN_VERBS: ReadonlySet<string> = new Set(['get', 'create', 'update', 'patch', 'delete'])
const LEASE_NAMESPACE = 'kube-node-lease'

/** On create the name is in the body, which admission checks. */
function authorizeLease({ node, access: { verb, namespace, name } }: NodeRequest): Verdict {
  if (!OWN_VERBS.has(verb)) return noOpinion('can only get, create, update, patch, or delete a node lease')
  if (namespace !== LEASE_NAMESPACE) {
    return noOpinion(`can only access leases in the ${goQuote(LEASE_NAMESPACE)} system namespace`)
  }
  if (verb === 'create' || name === node) return ALLOWED
  return noOpinion('can only access node lease with the same name as the requesting node')
}

function authorizeCsiNode({ node, access: { verb, subresource, name } }: NodeRequest): Verdict {
  if (!OWN_VERBS.has(verb)) return noOpinion('can only get, create, update, patch, or delete a CSINode')
  if (subresource !== '') return noOpinion('cannot authorize CSINode subresources')
  if (verb === 'create' || name === node) return ALLOWED
  return noOpinion('can only access CSINode with the same name as the requesting node')
}

function authorizeResourceSlice(request: NodeRequest): Verdict {
  const { verb, subresource } = request.access
  if (subresource !== '') return noOpinion('cannot authorize ResourceSlice subresources')
  switch (verb) {
    case 'create':
      return ALLOWED
    case 'get':
    case 'update':
    case 'patch':
    case 'delete':
      return related(request, 'resourceslice')
    case 'watch':
    case 'list':
    case 'deletecollection':
      if (selects(request, 'spec.nodeName') || !request.options.isEnabled(WITH_SELECTORS)) return ALLOWED
      return noOpinion('can only list/watch/deletecollection resourceslices with nodeName field selector')
    default: {
      const verbs = 'get, watch, list, create, update, patch, delete, deletecollection'
      return noOpinion(`only the following verbs are allowed for a ResourceSlice: ${verbs}`)
    }
  }
}

const WITH_SELECTORS = 'AuthorizeNodeWithSelectors'

function authorizeNode({ node, access, options }: NodeRequest): Verdict | undefined {
  if (!options.isEnabled(WITH_SELECTORS)) return undefined
  const { verb, subresource, name } = access
  if (subresource === 'status') return verb === 'update' || verb === 'patch' ? ALLOWED : NO_OPINION
  if (subresource !== '') return NO_OPINION
  if (verb === 'create' || verb === 'update' || verb === 'patch') return ALLOWED
  if (!['get', 'list', 'watch'].includes(verb)) return NO_OPINION
  // Compares names instead of the graph, so that a kubelet can look for its Node before it exists.
  if (name === node) return ALLOWED
  const what = name === '' ? 'all nodes' : `'${name}'`
  return noOpinion(`node '${node}' cannot read ${what}, only its own Node object`)
}

function authorizePod(request: NodeRequest): Verdict | undefined {
  if (!request.options.isEnabled(WITH_SELECTORS)) return undefined
  const { verb, subresource } = request.access
  if (subresource === '') return authorizePodItself(request)
  const isStatusWrite = subresource === 'status' && (verb === 'update' || verb === 'patch')
  return isStatusWrite || (subresource === 'eviction' && verb === 'create') ? ALLOWED : NO_OPINION
}

/** Create and delete are for mirror pods, which admission checks. */
function authorizePodItself(request: NodeRequest): Verdict {
  const { verb, name } = request.access
  if (verb === 'get') return related(request, 'pod')
  if (verb === 'create' || verb === 'delete') return ALLOWED
  if (verb !== 'list' && verb !== 'watch') return NO_OPINION
  if (selects(request, 'spec.nodeName')) return ALLOWED
  if (name !== '') return related(request, 'pod')
  return noOpinion('can only list/watch pods with spec.nodeName field selector')
}

function authorizeCertificateRequest(request: NodeRequest): Verdict {
  const { verb, subresource } = request.access
  const { isEnabled } = request.options
  if (!isEnabled('PodCertificateRequest') || !isEnabled(WITH_SELECTORS)) return NO_OPINION
  if (subresource !== '') {
    return noOpinion('nodes may not access the status subresource of PodCertificateRequests')
  }
  if (verb === 'create') return ALLOWED
  if (verb === 'get') return related(request, 'podcertificaterequest')
  if (verb !== 'list' && verb !== 'watch') return noOpinion(`nodes may not ${verb} podcertificaterequests`)
  return selects(request, 'spec.nodeName')
    ? ALLOWED
    : noOpinion('can only list/watch podcertificaterequests with nodeName field selector')
}

/** True if the field selector restricts the request to this node. */
function selects({ node, access: { fieldSelector = '' } }: NodeRequest, field: string): boolean {
  try {
    return requiredField(parseFieldSelector(fieldSelector), field) === node
  } catch {
    // A later step refuses an unparsable selector; here it restricts nothing.
    return false
  }
}
