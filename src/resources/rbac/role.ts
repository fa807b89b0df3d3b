/** Role: what may be done in one namespace. Nobody writes one that gives more than they have. */
import { type Role, Roles } from '#apis/rbac/v1.ts'
import type { EscalationChecks } from '#apiserver/authorizers/rbac/escalation.ts'
import { nameColumn } from '#apiserver/registry/columns.ts'
import { defineResource, type Resource } from '#apiserver/registry/resource.ts'

import { createdAtColumn } from '../created-at.ts'
import { guardRoleWrites, nameIsRbacName, validatePolicyRules } from './rules.ts'

/** `checks` may be left out where everybody who writes is trusted. */
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
