/** Rules as the texts of form fields, and back. */
import type { PolicyRule } from '#apis/rbac/v1.ts'

export interface RuleTexts {
  readonly verbs: string
  readonly apiGroups: string
  readonly resources: string
  readonly resourceNames: string
  readonly nonResourceURLs: string
}

export const NO_TEXTS: RuleTexts = { verbs: '', apiGroups: '', resources: '', resourceNames: '', nonResourceURLs: '' }

/** The core group has an empty name, which people cannot see in a list. */
const CORE = 'core'

export function textsOf(rule: PolicyRule): RuleTexts {
  const { verbs, apiGroups = [], resources = [], resourceNames = [], nonResourceURLs = [] } = rule
  const texts = (list: readonly string[]): string => list.join(', ')
  return {
    verbs: texts(verbs),
    apiGroups: texts(apiGroups.map((group) => (group === '' ? CORE : group))),
    resources: texts(resources),
    resourceNames: texts(resourceNames),
    nonResourceURLs: texts(nonResourceURLs),
  }
}

/** Undefined if all texts are empty. Resources without a group are those of the core group. */
export function ruleOf(texts: RuleTexts): PolicyRule | undefined {
  const [verbs, groups, resources] = [listOf(texts.verbs), listOf(texts.apiGroups), listOf(texts.resources)]
  const [resourceNames, nonResourceURLs] = [listOf(texts.resourceNames), listOf(texts.nonResourceURLs)]
  if ([verbs, groups, resources, resourceNames, nonResourceURLs].every((list) => list.length === 0)) return undefined
  const apiGroups = groups.length === 0 && resources.length > 0 ? [CORE] : groups
  return {
    verbs,
    ...(apiGroups.length > 0 && { apiGroups: apiGroups.map((group) => (group === CORE ? '' : group)) }),
    ...(resources.length > 0 && { resources }),
    ...(resourceNames.length > 0 && { resourceNames }),
    ...(nonResourceURLs.length > 0 && { nonResourceURLs }),
  }
}

/** Words between commas or spaces. */
function listOf(text: string): string[] {
  return text.split(/[\s,]+/).filter(Boolean)
}
