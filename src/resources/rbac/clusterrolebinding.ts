/** The ClusterRoleBinding resource: grants a cluster role in the whole cluster. */
import { type ClusterRoleBinding, ClusterRoleBindings } from '#apis/rbac/v1.ts'
import { defineResource, type Resource } from '#apiserver/registry/resource.ts'
import type { EscalationChecks } from '#auth/authorizers/rbac/escalation.ts'

import { bindingColumns, defaultBinding, guardBindingWrites, validateBinding, validateSameRole } from './binding.ts'
import { nameIsRbacName } from './rules.ts'

const kinds = ['ClusterRole']

/** `checks` may be omitted if all writers are trusted. */
export function defineClusterRoleBinding(checks?: EscalationChecks): Resource<ClusterRoleBinding> {
  return defineResource<ClusterRoleBinding>({
    kind: ClusterRoleBindings,
    metadataRules: { update: ['whole', 'change'] },
    nameRule: nameIsRbacName,
    applyDefaults: defaultBinding,
    ...guardBindingWrites<ClusterRoleBinding>(checks),
    validate: (binding) => validateBinding(binding, kinds, false),
    validateUpdate: (next, old) => [...validateBinding(next, kinds, false), ...validateSameRole(next, old)],
    columns: bindingColumns,
    putCreates: true,
  })
}
