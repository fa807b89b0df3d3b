/** Roles and who has them. Rules are shown by resource, with all that may be done to it. */
import type { ClusterRole, ClusterRoleBinding, PolicyRule, Role, RoleBinding } from '#apis/rbac/v1.ts'
import { compareUtf8 } from '#lib/json-write.ts'

import { Page } from './page.ts'
import { listText, putClusterHead } from './sections.ts'

/** A rule about one thing: a resource, perhaps by name, or a path. */
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
  // Verbs of a path stay apart, each with its own line.
  return [
    ...about.map((one) => ({ ...one, verbs: [...verbs] })),
    ...paths.flatMap((one) => verbs.map((verb) => ({ ...one, verbs: [verb] }))),
  ]
}

/** Those about the same resource are one. */
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

/** Upstream sorts by what its types print. */
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

/** Resource, path, name and verbs, as tables show them. */
export function ruleCells(rule: Simple): [string, string, string, string] {
  return [resourceText(rule), one(rule.path), one(rule.name), listText(rule.verbs)]
}

export function describeRole(role: Role | ClusterRole): Promise<string> {
  const page = new Page()
  putClusterHead(page, role)
  page.put(0, 'PolicyRule:\n')
  page.table(
    1,
    ['Resources', 'Non-Resource URLs', 'Resource Names', 'Verbs'],
    compactRules(role.rules ?? []).map(ruleCells),
  )
  return Promise.resolve(page.text())
}

export function describeRoleBinding(binding: RoleBinding | ClusterRoleBinding): Promise<string> {
  const page = new Page()
  putClusterHead(page, binding)
  page.put(0, 'Role:\n')
  page.rows(1, [
    ['Kind', binding.roleRef.kind],
    ['Name', binding.roleRef.name],
  ])
  page.put(0, 'Subjects:\n')
  page.table(
    1,
    ['Kind', 'Name', 'Namespace'],
    (binding.subjects ?? []).map(({ kind, name, namespace }) => [kind, name, namespace]),
  )
  return Promise.resolve(page.text())
}
