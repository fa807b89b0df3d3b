/** The Role resource: permissions in one namespace. Users cannot grant more than they have. */
import { type Role, Roles } from '#apis/rbac/v1.ts'
import { nameColumn } from '#apiserver/registry/columns.ts'
import { defineResource, type Resource } from '#apiserver/registry/resource.ts'
import type { EscalationChecks } from '#auth/authorizers/rbac/escalation.ts'

import { createdAtColumn } from '../created-at.ts'
import { guardRoleWrites, nameIsRbacName, validatePolicyRules } from './rules.ts'

/** `checks` may be omitted if all writers are trusted. */
export function defineRole(checks?: EscalationChecks): Resource<Role> {
  return defineResource<Role>({
    kind: Roles,
    metadataRules: { update: ['whole', 'change'] },
    nameRule: nameIsRbacName,
    ...guardRoleWrites<Role>(checks),
    validate: ({ rules }) => validatePolicyRules(rules, true),
    columns: [nameColumn, createdAtColumn],
    putCreates: true,
  })
}
