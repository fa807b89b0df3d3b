/**
 * NodeRestriction: a kubelet may write only the objects of its node and of the pods on it. Upstream's
 * plugin/pkg/admission/noderestriction, v1.36.
 */
import type { User } from '#auth/user.ts'
import { goQuote } from '#lib/go/text.ts'

import { refuseEarly } from '../kit/refusal.ts'
import type { Authorize } from '../kit/signer-access.ts'
import { type AdmissionPlugin, defineAdmission } from '../plugin.ts'
import { admitCertificateRequest, admitPodCertificateRequest } from './certificates.ts'
import type { Rule } from './node-write.ts'
import { admitNode } from './nodes.ts'
import { admitCsiNode, admitLease, admitResourceSlice } from './own-objects.ts'
import { admitPod } from './pods.ts'
import { admitToken } from './tokens.ts'
import { admitClaim } from './volume-claims.ts'

const RULES: ReadonlyMap<string, Rule> = new Map<string, Rule>([
  ['pods.', admitPod],
  ['nodes.', admitNode],
  ['persistentvolumeclaims.', admitClaim],
  ['serviceaccounts.', admitToken],
  ['leases.coordination.k8s.io', admitLease],
  ['csinodes.storage.k8s.io', admitCsiNode],
  ['resourceslices.resource.k8s.io', admitResourceSlice],
  ['certificatesigningrequests.certificates.k8s.io', admitCertificateRequest],
  ['podcertificaterequests.certificates.k8s.io', admitPodCertificateRequest],
])

export interface NodeRestrictionOptions {
  readonly isEnabled: (gate: string) => boolean
  /** True if a node may request tokens for an audience that its pod does not mention. */
  readonly ask: Authorize
}

export function createNodeRestriction({ isEnabled, ask }: NodeRestrictionOptions): AdmissionPlugin {
  return defineAdmission({
    name: 'NodeRestriction',
    on: ['CREATE', 'UPDATE', 'DELETE'],

    mutate(attributes) {
      const node = nodeOf(attributes.user)
      if (node === undefined) return
      if (node === '') {
        throw refuseEarly(attributes, `could not determine node from user ${goQuote(attributes.user.name)}`)
      }
      const { kind } = attributes
      return RULES.get(`${kind.plural}.${kind.group}`)?.({ attributes, node, isEnabled, ask })
    },
  })
}

const USER_PREFIX = 'system:node:'
const GROUP = 'system:nodes'

/** Undefined for users that are not kubelets. */
function nodeOf({ name, groups }: User): string | undefined {
  return name.startsWith(USER_PREFIX) && groups.includes(GROUP) ? name.slice(USER_PREFIX.length) : undefined
}
