/** RBAC rules for people: as the cells of a table, or in words. */
import type { PolicyRule } from '#apis/rbac/v1.ts'

export const RULE_COLUMNS: readonly string[] = ['Verbs', 'Resources', 'API groups', 'Names']

export function ruleRow({
  verbs,
  resources = [],
  apiGroups = [],
  resourceNames = [],
  nonResourceURLs = [],
}: PolicyRule): readonly string[] {
  const groups = resources.length === 0 ? [] : apiGroups.map((group) => (group === '' ? 'core' : group))
  return [verbs, [...resources, ...nonResourceURLs], groups, resourceNames].map((texts) => texts.join(', '))
}

/** `get, list deployments of apps named web`. The core group has no name. */
export function ruleText({
  verbs,
  resources = [],
  apiGroups = [],
  resourceNames = [],
  nonResourceURLs = [],
}: Partial<PolicyRule>): string {
  const what = [...resources, ...nonResourceURLs].map((one) => (one === '*' ? 'everything' : one))
  const groups = apiGroups.filter((group) => group !== '' && group !== '*')
  return [
    verbs?.includes('*') === true ? 'every verb on' : (verbs ?? []).join(', '),
    what.join(', '),
    ...(groups.length === 0 ? [] : [`of ${groups.join(', ')}`]),
    ...(resourceNames.length === 0 ? [] : [`named ${resourceNames.join(', ')}`]),
  ].join(' ')
}
