/**
 * Plans the write that gives a role or binding the contents of a file. Compares the permissions that rules grant, not
 * the rules' texts.
 */
import type { ClusterRole, PolicyRule, RoleRef, Subject } from '#apis/rbac/v1.ts'
import { type KubeObject, semanticEqual } from '#meta/object.ts'
import { uncoveredRights } from '#model/rule-coverage.ts'

export interface RbacObject extends KubeObject {
  rules?: PolicyRule[]
  aggregationRule?: ClusterRole['aggregationRule']
  subjects?: Subject[]
  roleRef?: RoleRef
}

type Operation = 'none' | 'create' | 'update' | 'recreate'

export interface Reconciliation {
  readonly operation: Operation
  readonly object: RbacObject
  /** True if an annotation opts the object out of updates. */
  readonly isProtected: boolean
  readonly missingSubjects: readonly Subject[]
  readonly extraSubjects: readonly Subject[]
  readonly missingRules: readonly PolicyRule[]
  readonly extraRules: readonly PolicyRule[]
}

export interface ReconcileOptions {
  readonly removeExtraPermissions: boolean
  readonly removeExtraSubjects: boolean
}

const NOTHING = { missingSubjects: [], extraSubjects: [], missingRules: [], extraRules: [] }

export function planReconcile(
  expected: RbacObject,
  existing: RbacObject | undefined,
  options: ReconcileOptions,
): Reconciliation {
  if (existing === undefined) {
    const { rules = [], subjects = [] } = expected
    const missing = { missingRules: rules, missingSubjects: subjects }
    return { ...NOTHING, ...missing, operation: 'create', object: expected, isProtected: false }
  }
  const isProtected = existing.metadata.annotations?.['rbac.authorization.kubernetes.io/autoupdate'] === 'false'
  const isBinding = (expected.kind ?? '').endsWith('Binding')
  if (isBinding && !semanticEqual(expected.roleRef, existing.roleRef)) {
    return { ...NOTHING, operation: 'recreate', object: expected, isProtected }
  }
  const { metadata: had } = existing
  const { metadata: wanted } = expected
  const object: RbacObject = {
    ...existing,
    metadata: {
      ...had,
      ...joined('annotations', wanted.annotations, had.annotations),
      ...joined('labels', wanted.labels, had.labels),
    },
  }
  const found = isBinding ? reconcileSubjects(object, expected, options) : reconcileRules(object, expected, options)
  const operation = semanticEqual(object, existing) ? 'none' : 'update'
  return { ...NOTHING, ...found, operation, object, isProtected }
}

/** Existing values win. */
function joined(
  field: 'annotations' | 'labels',
  wanted: Readonly<Record<string, string>> | undefined,
  had: Readonly<Record<string, string>> | undefined,
): object {
  return wanted === undefined && had === undefined ? {} : { [field]: { ...wanted, ...had } }
}

function reconcileSubjects(
  object: RbacObject,
  expected: RbacObject,
  { removeExtraSubjects }: ReconcileOptions,
): Partial<Reconciliation> {
  const [want, have] = [expected.subjects ?? [], object.subjects ?? []]
  const missingSubjects = without(want, have)
  const extraSubjects = without(have, want)
  if (removeExtraSubjects && missingSubjects.length + extraSubjects.length > 0) object.subjects = want
  else if (missingSubjects.length > 0) object.subjects = [...have, ...missingSubjects]
  return { missingSubjects, extraSubjects }
}

function without(some: readonly Subject[], others: readonly Subject[]): Subject[] {
  const keyOf = (subject: Subject): string => subjectText(subject)
  const known = new Set(others.map(keyOf))
  return some.filter((one) => {
    const key = keyOf(one)
    return known.has(key) ? false : known.add(key)
  })
}

function reconcileRules(
  object: RbacObject,
  expected: RbacObject,
  { removeExtraPermissions }: ReconcileOptions,
): Partial<Reconciliation> {
  const [want, have] = [expected.rules ?? [], object.rules ?? []]
  const bothGather = expected.aggregationRule !== undefined && object.aggregationRule !== undefined
  const extraRules = bothGather ? [] : uncoveredRights(want, have)
  const missingRules = uncoveredRights(have, want)
  if (removeExtraPermissions && missingRules.length + extraRules.length > 0) object.rules = want
  else if (missingRules.length > 0) object.rules = [...have, ...missingRules]
  reconcileAggregation(object, expected, removeExtraPermissions)
  return { missingRules, extraRules }
}

function reconcileAggregation(object: RbacObject, expected: RbacObject, removesExtra: boolean): void {
  const want = expected.aggregationRule?.clusterRoleSelectors ?? []
  const have = object.aggregationRule?.clusterRoleSelectors ?? []
  if (expected.aggregationRule === undefined) {
    delete object.aggregationRule
    return
  }
  const notIn = (some: typeof want, others: typeof want): typeof want =>
    some.filter((one) => !others.some((other) => semanticEqual(one, other)))
  const missing = notIn(want, have)
  if (removesExtra && missing.length + notIn(have, want).length > 0) object.aggregationRule = expected.aggregationRule
  else if (missing.length > 0) object.aggregationRule = { clusterRoleSelectors: [...have, ...missing] }
}

/** In Go's %+v form, with field names. */
export function subjectText({ kind, apiGroup = '', name, namespace = '' }: Subject): string {
  return `{Kind:${kind} APIGroup:${apiGroup} Name:${name} Namespace:${namespace}}`
}

export function ruleText(rule: PolicyRule): string {
  const parts: [string, readonly string[] | undefined][] = [
    ['Verbs', rule.verbs],
    ['APIGroups', rule.apiGroups],
    ['Resources', rule.resources],
    ['ResourceNames', rule.resourceNames],
    ['NonResourceURLs', rule.nonResourceURLs],
  ]
  return `{${parts.map(([name, list = []]) => `${name}:[${list.join(' ')}]`).join(' ')}}`
}
