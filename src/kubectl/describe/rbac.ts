/** Describes roles and bindings. Rules are grouped by resource, with all their verbs. */
import type { ClusterRole, ClusterRoleBinding, PolicyRule, Role, RoleBinding } from '#apis/rbac/v1.ts'
import { compareUtf8 } from '#lib/json/write.ts'

import { type DescribedKinds, describesWithoutEvents } from './describer.ts'
import type { Part } from './rows.ts'
import { clusterHead, listText } from './sections.ts'

/** A rule for a single resource, resource name or path. */
export interface Simple {
  readonly group: string | undefined
  readonly resource: string | undefined
  readonly name: string | undefined
  readonly path: string | undefined
  readonly verbs: string[]
}

function simpleRules({
  apiGroups = [],
  resources = [],
  resourceNames = [],
  nonResourceURLs = [],
  verbs,
}: PolicyRule): Simple[] {
  const names = resourceNames.length === 0 ? [undefined] : resourceNames
  const about = apiGroups.flatMap((group) =>
    resources.flatMap((resource) => names.map((name) => ({ group, resource, name, path: undefined }))),
  )
  const paths = nonResourceURLs.map((path) => ({ group: undefined, resource: undefined, name: undefined, path }))
  // Verbs of a path stay on separate lines.
  return [
    ...about.map((one) => ({ ...one, verbs: [...verbs] })),
    ...paths.flatMap((one) => verbs.map((verb) => ({ ...one, verbs: [verb] }))),
  ]
}

/** Merges rules for the same resource. */
export function compactRules(rules: readonly PolicyRule[]): Simple[] {
  const found = new Map<string, Simple>()
  for (const [at, rule] of rules.flatMap(simpleRules).entries()) {
    const { group, resource, name, path } = rule
    const key = path === undefined ? JSON.stringify([group, resource, name ?? null]) : `path ${at}`
    const known = found.get(key)
    if (known === undefined) found.set(key, { ...rule, verbs: [...new Set(rule.verbs)] })
    else known.verbs.push(...rule.verbs.filter((verb) => !known.verbs.includes(verb)))
  }
  return [...found.values()].sort((one, other) => compareUtf8(orderOf(one), orderOf(other)))
}

function one(value: string | undefined): string {
  return listText(value === undefined ? [] : [value])
}

/** Upstream sorts by the Go text of the rule. */
function orderOf({ group, resource, name, path, verbs }: Simple): string {
  const parts = [`Verbs:${listText(verbs)}`, `APIGroups:${one(group)}`, `Resources:${one(resource)}`]
  return [...parts, `ResourceNames:${one(name)}`, `NonResourceURLs:${one(path)}`].join(',')
}

function resourceText({ group = '', resource }: Simple): string {
  if (resource === undefined) return ''
  const [first = '', ...rest] = resource.split('/')
  const sub = rest.length === 0 ? '' : `/${rest.join('/')}`
  return `${first}${group === '' ? '' : `.${group}`}${sub}`
}

/** The table cells: resource, path, name and verbs. */
export function ruleCells(rule: Simple): [string, string, string, string] {
  return [resourceText(rule), one(rule.path), one(rule.name), listText(rule.verbs)]
}

export const RBAC_KINDS: DescribedKinds = {
  'Role.rbac.authorization.k8s.io': describesWithoutEvents('rbac.authorization.k8s.io/v1/roles', roleRows),
  'ClusterRole.rbac.authorization.k8s.io': describesWithoutEvents(
    'rbac.authorization.k8s.io/v1/clusterroles',
    roleRows,
  ),
  'RoleBinding.rbac.authorization.k8s.io': describesWithoutEvents(
    'rbac.authorization.k8s.io/v1/rolebindings',
    bindingRows,
  ),
  'ClusterRoleBinding.rbac.authorization.k8s.io': describesWithoutEvents(
    'rbac.authorization.k8s.io/v1/clusterrolebindings',
    bindingRows,
  ),
}

function roleRows(role: Role | ClusterRole): Part[] {
  const columns = ['Resources', 'Non-Resource URLs', 'Resource Names', 'Verbs']
  return [...clusterHead(role), ['PolicyRule', { columns, rows: compactRules(role.rules ?? []).map(ruleCells) }]]
}

function bindingRows(binding: RoleBinding | ClusterRoleBinding): Part[] {
  const { roleRef, subjects } = binding
  const rows = (subjects ?? []).map(({ kind, name, namespace }) => [kind, name, namespace])
  return [
    ...clusterHead(binding),
    [
      'Role',
      [
        ['Kind', roleRef.kind],
        ['Name', roleRef.name],
      ],
    ],
    ['Subjects', { columns: ['Kind', 'Name', 'Namespace'], rows }],
  ]
}
