/**
 * The ClusterRole resource: permissions for the whole cluster, or for one namespace through a RoleBinding; may
 * aggregate other roles.
 */
import { type ClusterRole, ClusterRoles } from '#apis/rbac/v1.ts'
import { nameColumn } from '#apiserver/registry/columns.ts'
import { defineResource, type Resource } from '#apiserver/registry/resource.ts'
import type { EscalationChecks } from '#auth/authorizers/rbac/escalation.ts'
import { asSelector, type LabelSelector, validateLabelSelector } from '#meta/label-selector.ts'
import { type FieldError, fieldPath } from '#meta/validation/field-path.ts'

import { createdAtColumn } from '../created-at.ts'
import { guardRoleWrites, nameIsRbacName, validatePolicyRules } from './rules.ts'

const SELECTORS = fieldPath('aggregationRule.clusterRoleSelectors')

/** `checks` may be omitted if all writers are trusted. */
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
    errors.push(SELECTORS.required('at least one clusterRoleSelector required if aggregationRule is non-nil'))
  }
  for (const [at, selector] of selectors.entries()) {
    const field = SELECTORS.index(at)
    errors.push(...validateLabelSelector(field, selector, { invalidValues }))
    if (!isUsable(selector)) errors.push(field.invalid(null, 'invalid label selector.'))
  }
  return errors
}

function selectorsOf({ aggregationRule }: ClusterRole): readonly LabelSelector[] {
  return aggregationRule?.clusterRoleSelectors ?? []
}

function breaksRules(selector: LabelSelector): boolean {
  return validateLabelSelector(fieldPath(''), selector).length > 0
}

function isUsable(selector: LabelSelector): boolean {
  try {
    asSelector(selector)
    return true
  } catch {
    return false
  }
}
