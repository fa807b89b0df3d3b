/** What both kinds of roles share: names, rules, and the check that nobody gives more than they have. */
import type { ClusterRole, PolicyRule, Role } from '#apis/rbac/v1.ts'
import type { EscalationChecks } from '#apiserver/authorizers/rbac/escalation.ts'
import type { ResourceSpec } from '#apiserver/registry/resource.ts'
import { child, type FieldError, index, invalid, required } from '#meta/validation/field-error.ts'
import { type NameRule, pathSegmentName } from '#meta/validation/names.ts'

/** Anything that fits into a URL, such as `system:node`. A generateName is held to the same. */
export const nameIsRbacName: NameRule = (name) => pathSegmentName(name)

/** The hook that asks before a role is written. It reserves nothing, so there is nothing to undo. */
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
  return (rules ?? []).flatMap((rule, at) => validatePolicyRule(index('rules', at), rule, namespaced))
}

function validatePolicyRule(path: string, rule: PolicyRule, namespaced: boolean): FieldError[] {
  const { verbs, apiGroups, resources, resourceNames, nonResourceURLs: urls } = rule
  const isEmpty = (list: readonly string[] | null | undefined): boolean => (list ?? []).length === 0
  const errors = isEmpty(verbs) ? [required(child(path, 'verbs'), 'verbs must contain at least one value')] : []
  if (!isEmpty(urls)) {
    const field = child(path, 'nonResourceURLs')
    if (namespaced) errors.push(invalid(field, urls, 'namespaced rules cannot apply to non-resource URLs'))
    if (![apiGroups, resources, resourceNames].every(isEmpty)) {
      errors.push(invalid(field, urls, 'rules cannot apply to both regular resources and non-resource URLs'))
    }
    return errors
  }
  if (isEmpty(apiGroups)) {
    errors.push(required(child(path, 'apiGroups'), 'resource rules must supply at least one api group'))
  }
  if (isEmpty(resources)) {
    errors.push(required(child(path, 'resources'), 'resource rules must supply at least one resource'))
  }
  return errors
}
