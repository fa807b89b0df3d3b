/** The parts that Role and ClusterRole share: names, rules and the escalation check. */
import type { ClusterRole, PolicyRule, Role } from '#apis/rbac/v1.ts'
import type { ResourceSpec } from '#apiserver/registry/resource.ts'
import type { EscalationChecks } from '#auth/authorizers/rbac/escalation.ts'
import { type FieldError, fieldPath, type FieldPath } from '#meta/validation/field-path.ts'
import { type NameRule, pathSegmentName } from '#meta/validation/names.ts'

/** Any path segment, such as `system:node`. The same applies to generateName. */
export const nameIsRbacName: NameRule = (name) => pathSegmentName(name)

/** The hook that runs the escalation check before a write. It reserves nothing, so there is nothing to undo. */
export function guardRoleWrites<T extends Role | ClusterRole>(
  checks: EscalationChecks | undefined,
): Pick<ResourceSpec<T>, 'allocate'> {
  if (checks === undefined) return {}
  return {
    async allocate(next, old, { user }) {
      await checks.roleWrite(user, next, old)
      return async () => {}
    },
  }
}

export function validatePolicyRules(rules: readonly PolicyRule[] | null, namespaced: boolean): FieldError[] {
  return fieldPath('rules').each(rules, (path, rule) => validatePolicyRule(path, rule, namespaced))
}

function validatePolicyRule(path: FieldPath, rule: PolicyRule, namespaced: boolean): FieldError[] {
  const { verbs, apiGroups, resources, resourceNames, nonResourceURLs: urls } = rule
  const isEmpty = (list: readonly string[] | null | undefined): boolean => (list ?? []).length === 0
  const errors = isEmpty(verbs) ? [path.child('verbs').required('verbs must contain at least one value')] : []
  if (!isEmpty(urls)) {
    const field = path.child('nonResourceURLs')
    if (namespaced) errors.push(field.invalid(urls, 'namespaced rules cannot apply to non-resource URLs'))
    if (![apiGroups, resources, resourceNames].every(isEmpty)) {
      errors.push(field.invalid(urls, 'rules cannot apply to both regular resources and non-resource URLs'))
    }
    return errors
  }
  if (isEmpty(apiGroups)) {
    errors.push(path.child('apiGroups').required('resource rules must supply at least one api group'))
  }
  if (isEmpty(resources)) {
    errors.push(path.child('resources').required('resource rules must supply at least one resource'))
  }
  return errors
}
