/** The RoleBinding resource: grants a role in one namespace. */
import { type RoleBinding, RoleBindings } from '#apis/rbac/v1.ts'
import { defineResource, type Resource } from '#apiserver/registry/resource.ts'
import type { EscalationChecks } from '#auth/authorizers/rbac/escalation.ts'

import { bindingColumns, defaultBinding, guardBindingWrites, validateBinding, validateSameRole } from './binding.ts'
import { nameIsRbacName } from './rules.ts'

const kinds = ['Role', 'ClusterRole']

/** `checks` may be omitted if all writers are trusted. */
export function defineRoleBinding(checks?: EscalationChecks): Resource<RoleBinding> {
  return defineResource<RoleBinding>({
    kind: RoleBindings,
    metadataRules: { update: ['whole', 'change'] },
    nameRule: nameIsRbacName,
    applyDefaults: defaultBinding,
    ...guardBindingWrites<RoleBinding>(checks),
    validate: (binding) => validateBinding(binding, kinds, true),
    validateUpdate: (next, old) => [...validateBinding(next, kinds, true), ...validateSameRole(next, old)],
    columns: bindingColumns,
    putCreates: true,
  })
}
