/** ClusterRole: what may be done in the whole cluster, or in one namespace when bound there; may gather other roles. */
import { type ClusterRole, ClusterRoles } from '#apis/rbac/v1.ts'
import type { EscalationChecks } from '#apiserver/authorizers/rbac/escalation.ts'
import { nameColumn } from '#apiserver/registry/columns.ts'
import { defineResource, type Resource } from '#apiserver/registry/resource.ts'
import { asSelector, type LabelSelector, validateLabelSelector } from '#meta/label-selector.ts'
import { type FieldError, index, invalid, required } from '#meta/validation/field-error.ts'

import { createdAtColumn } from '../created-at.ts'
import { guardRoleWrites, nameIsRbacName, validatePolicyRules } from './rules.ts'

const SELECTORS = 'aggregationRule.clusterRoleSelectors'

/** `checks` may be left out where everybody who writes is trusted. */
export function defineClusterRole(checks?: EscalationChecks): Resource<ClusterRole> {
  return defineResource<ClusterRole>({
    kind: ClusterRoles,
    metadataRules: { update: ['whole', 'change'] },
    nameRule: nameIsRbacName,
    ...guardRoleWrites<ClusterRole>(checks),
    validate: (role) => validateClusterRole(role, false),
    validateUpdate: (next, old) => validateClusterRole(next, selectorsOf(old).some(breaksRules)),
    columns: [nameColumn, createdAtColumn],
    putCreates: true,
  })
}

function validateClusterRole(role: ClusterRole, invalidValues: boolean): FieldError[] {
  const errors = validatePolicyRules(role.rules, false)
  if (role.aggregationRule === undefined) return errors
  const selectors = selectorsOf(role)
  if (selectors.length === 0) {
    errors.push(required(SELECTORS, 'at least one clusterRoleSelector required if aggregationRule is non-nil'))
  }
  for (const [at, selector] of selectors.entries()) {
    const field = index(SELECTORS, at)
    errors.push(...validateLabelSelector(field, selector, { invalidValues }))
    if (!isUsable(selector)) errors.push(invalid(field, null, 'invalid label selector.'))
  }
  return errors
}

function selectorsOf({ aggregationRule }: ClusterRole): readonly LabelSelector[] {
  return aggregationRule?.clusterRoleSelectors ?? []
}

function breaksRules(selector: LabelSelector): boolean {
  return validateLabelSelector('', selector).length > 0
}

function isUsable(selector: LabelSelector): boolean {
  try {
    asSelector(selector)
    return true
  } catch {
    return false
  }
}
