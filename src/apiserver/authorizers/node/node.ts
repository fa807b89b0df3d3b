/**
 * Node authorizer: a kubelet may read what the pods on its node need, and nothing else of the same kinds; what is not
 * divided by node it may do by fixed rules. What a node may write of its own objects is checked by admission.
 * Upstream's plugin/pkg/auth/authorizer/node, v1.36.
 */
import type { PolicyRule } from '#apis/rbac/v1.ts'
import { goQuote } from '#lib/go-text.ts'
import { parseFieldSelector, requiredField } from '#meta/fields.ts'

import type { User } from '../../registry/resource.ts'
import { type Access, ALLOWED, type Authorizer, NO_OPINION, NO_RULES, noOpinion, type Verdict } from '../authorizer.ts'
import { questionOf, RuleTable } from '../rbac/rule-table.ts'
import type { NodeGraph } from './graph.ts'
import { type ReferredKind, referenceTo } from './references.ts'

export interface NodeAuthorizerOptions {
  readonly graph: Pick<NodeGraph, 'relates' | 'relatesToVolume'>
  /** What every node may do: the rules of the role `system:node`. */
  readonly rules: readonly PolicyRule[]
  readonly isEnabled: (gate: string) => boolean
}

/** A request of an identified node. */
interface Asked {
  readonly node: string
  readonly access: Access
  readonly options: NodeAuthorizerOptions
}

/** Undefined: the fixed rules decide. */
type Judge = (asked: Asked) => Verdict | undefined

export function createNodeAuthorizer(options: NodeAuthorizerOptions): Authorizer {
  const table = new RuleTable(options.rules)
  return {
    authorize(user, access) {
      if (!isNode(user)) return NO_OPINION
      const node = nodeNameOf(user)
      if (node === '') return noOpinion(`unknown node for user ${goQuote(user.name)}`)
      const judge = access.isResource ? JUDGES.get(`${access.group}/${access.resource}`) : undefined
      const verdict = judge?.({ node, access, options })
      return verdict ?? (table.allows(questionOf(access)) ? ALLOWED : NO_OPINION)
    },
    rulesFor: (user) =>
      isNode(user)
        ? { ...NO_RULES, incomplete: true, error: 'node authorizer does not support user rule resolution' }
        : NO_RULES,
  }
}

const USER_PREFIX = 'system:node:'
const NODES_GROUP = 'system:nodes'

/** By name and group; one without the other is nobody's node. */
function isNode({ name, groups }: User): boolean {
  return name.startsWith(USER_PREFIX) && groups.includes(NODES_GROUP)
}

export function nodeNameOf(user: User): string {
  return isNode(user) ? user.name.slice(USER_PREFIX.length) : ''
}

const JUDGES: ReadonlyMap<string, Judge> = new Map<string, Judge>([
  ['/secrets', (asked) => readNamespaced(asked, 'secret')],
  ['/configmaps', (asked) => readNamespaced(asked, 'configmap')],
  ['/persistentvolumeclaims', judgeClaim],
  ['/persistentvolumes', (asked) => getOne(asked, () => judgeVolume(asked))],
  ['resource.k8s.io/resourceclaims', (asked) => getOne(asked, () => related(asked, 'resourceclaim'))],
  ['storage.k8s.io/volumeattachments', (asked) => getOne(asked, () => related(asked, 'volumeattachment'))],
  ['/serviceaccounts', judgeServiceAccount],
  ['coordination.k8s.io/leases', judgeLease],
  ['storage.k8s.io/csinodes', judgeCsiNode],
  ['resource.k8s.io/resourceslices', judgeResourceSlice],
  ['/nodes', judgeNode],
  ['/pods', judgePod],
  ['certificates.k8s.io/podcertificaterequests', judgeCertificateRequest],
])

/** The last step of most ways: the object must have to do with the node. */
function related({ node, access, options }: Asked, kind: ReferredKind): Verdict {
  if (access.name === '') return noOpinion('No Object name found')
  const isRelated = options.graph.relates(node, referenceTo(kind, access.namespace, access.name))
  return isRelated ? ALLOWED : unrelated(node)
}

function unrelated(node: string): Verdict {
  return noOpinion(`no relationship found between node '${node}' and this object`)
}

function judgeVolume({ node, access, options }: Asked): Verdict {
  if (access.name === '') return noOpinion('No Object name found')
  return options.graph.relatesToVolume(node, access.name) ? ALLOWED : unrelated(node)
}

function getOne({ access }: Asked, go: () => Verdict): Verdict {
  if (access.verb !== 'get') return noOpinion('can only get individual resources of this type')
  if (access.subresource !== '') return noOpinion('cannot get subresource')
  return go()
}

function readNamespaced(asked: Asked, kind: ReferredKind): Verdict {
  const { verb, subresource, namespace } = asked.access
  if (!['get', 'list', 'watch'].includes(verb)) return noOpinion('can only read resources of this type')
  if (subresource !== '') return noOpinion('cannot read subresource')
  if (namespace === '') return noOpinion('can only read namespaced object of this type')
  return related(asked, kind)
}

function judgeClaim(asked: Asked): Verdict {
  const { verb, subresource } = asked.access
  if (subresource !== 'status') return getOne(asked, () => related(asked, 'persistentvolumeclaim'))
  if (verb !== 'update' && verb !== 'patch') return noOpinion('can only get/update/patch this type')
  return related(asked, 'persistentvolumeclaim')
}

function judgeServiceAccount(asked: Asked): Verdict {
  const { node, access, options } = asked
  const { verb, subresource, name, namespace } = access
  if (verb === 'get' && subresource === '') {
    const isAllowed = ['KubeletServiceAccountTokenForCredentialProviders', 'PodCertificateRequest'].some(
      options.isEnabled,
    )
    return isAllowed ? readNamespaced(asked, 'serviceaccount') : noOpinion('not allowed to get service accounts')
  }
  if (verb !== 'create' || name === '') return noOpinion('can only create tokens for individual service accounts')
  if (subresource !== 'token') return noOpinion('can only create token subresource of serviceaccount')
  return options.graph.relates(node, referenceTo('serviceaccount', namespace, name)) ? ALLOWED : unrelated(node)
}

const OWN_VERBS: ReadonlySet<string> = new Set(['get', 'create', 'update', 'patch', 'delete'])
const LEASE_NAMESPACE = 'kube-node-lease'

/** On create the name is in the body, which admission looks at. */
function judgeLease({ node, access: { verb, namespace, name } }: Asked): Verdict {
  if (!OWN_VERBS.has(verb)) return noOpinion('can only get, create, update, patch, or delete a node lease')
  if (namespace !== LEASE_NAMESPACE) {
    return noOpinion(`can only access leases in the ${goQuote(LEASE_NAMESPACE)} system namespace`)
  }
  if (verb === 'create' || name === node) return ALLOWED
  return noOpinion('can only access node lease with the same name as the requesting node')
}

function judgeCsiNode({ node, access: { verb, subresource, name } }: Asked): Verdict {
  if (!OWN_VERBS.has(verb)) return noOpinion('can only get, create, update, patch, or delete a CSINode')
  if (subresource !== '') return noOpinion('cannot authorize CSINode subresources')
  if (verb === 'create' || name === node) return ALLOWED
  return noOpinion('can only access CSINode with the same name as the requesting node')
}

function judgeResourceSlice(asked: Asked): Verdict {
  const { verb, subresource } = asked.access
  if (subresource !== '') return noOpinion('cannot authorize ResourceSlice subresources')
  switch (verb) {
    case 'create':
      return ALLOWED
    case 'get':
    case 'update':
    case 'patch':
    case 'delete':
      return related(asked, 'resourceslice')
    case 'watch':
    case 'list':
    case 'deletecollection':
      if (selects(asked, 'spec.nodeName') || !asked.options.isEnabled(WITH_SELECTORS)) return ALLOWED
      return noOpinion('can only list/watch/deletecollection resourceslices with nodeName field selector')
    default: {
      const verbs = 'get, watch, list, create, update, patch, delete, deletecollection'
      return noOpinion(`only the following verbs are allowed for a ResourceSlice: ${verbs}`)
    }
  }
}

const WITH_SELECTORS = 'AuthorizeNodeWithSelectors'

function judgeNode({ node, access, options }: Asked): Verdict | undefined {
  if (!options.isEnabled(WITH_SELECTORS)) return undefined
  const { verb, subresource, name } = access
  if (subresource === 'status') return verb === 'update' || verb === 'patch' ? ALLOWED : NO_OPINION
  if (subresource !== '') return NO_OPINION
  if (verb === 'create' || verb === 'update' || verb === 'patch') return ALLOWED
  if (!['get', 'list', 'watch'].includes(verb)) return NO_OPINION
  // By name and not by the graph, so that a kubelet can look for its Node before there is one.
  if (name === node) return ALLOWED
  const what = name === '' ? 'all nodes' : `'${name}'`
  return noOpinion(`node '${node}' cannot read ${what}, only its own Node object`)
}

function judgePod(asked: Asked): Verdict | undefined {
  if (!asked.options.isEnabled(WITH_SELECTORS)) return undefined
  const { verb, subresource } = asked.access
  if (subresource === '') return judgeWholePod(asked)
  const isStatusWrite = subresource === 'status' && (verb === 'update' || verb === 'patch')
  return isStatusWrite || (subresource === 'eviction' && verb === 'create') ? ALLOWED : NO_OPINION
}

/** Create and delete are for mirror pods, which admission checks. */
function judgeWholePod(asked: Asked): Verdict {
  const { verb, name } = asked.access
  if (verb === 'get') return related(asked, 'pod')
  if (verb === 'create' || verb === 'delete') return ALLOWED
  if (verb !== 'list' && verb !== 'watch') return NO_OPINION
  if (selects(asked, 'spec.nodeName')) return ALLOWED
  if (name !== '') return related(asked, 'pod')
  return noOpinion('can only list/watch pods with spec.nodeName field selector')
}

function judgeCertificateRequest(asked: Asked): Verdict {
  const { verb, subresource } = asked.access
  const { isEnabled } = asked.options
  if (!isEnabled('PodCertificateRequest') || !isEnabled(WITH_SELECTORS)) return NO_OPINION
  if (subresource !== '') {
    return noOpinion('nodes may not access the status subresource of PodCertificateRequests')
  }
  if (verb === 'create') return ALLOWED
  if (verb === 'get') return related(asked, 'podcertificaterequest')
  if (verb !== 'list' && verb !== 'watch') return noOpinion(`nodes may not ${verb} podcertificaterequests`)
  return selects(asked, 'spec.nodeName')
    ? ALLOWED
    : noOpinion('can only list/watch podcertificaterequests with nodeName field selector')
}

/** Whether only objects of this node are asked for. */
function selects({ node, access: { fieldSelector = '' } }: Asked, field: string): boolean {
  try {
    return requiredField(parseFieldSelector(fieldSelector), field) === node
  } catch {
    // A selector that nobody understands is refused later; here it narrows nothing.
    return false
  }
}
