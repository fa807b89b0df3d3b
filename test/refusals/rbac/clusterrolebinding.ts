import { ClusterRoleBindings } from '#apis/rbac/v1.ts'

import type { KindCases } from '../case.ts'
import { badMetadataUpdates } from '../metadata.ts'
import { badBindings, badBindingUpdates, binding } from './bindings.ts'

export const clusterRoleBinding: KindCases = {
  kind: ClusterRoleBindings,
  valid: binding,
  refused: [
    ...badBindings,
    { why: 'an account without a namespace', set: { '/subjects/1/namespace': undefined } },
    { why: 'a role of a namespace', set: { '/roleRef/kind': 'Role' } },
    ...badBindingUpdates,
    ...badMetadataUpdates,
  ],
}
