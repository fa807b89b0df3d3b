/**
 * Coverage: which of the rights that some rules give are not given by others. Rules are taken apart into single rights
 * (one verb, one group and resource, at most one name), each of which one owner's rule covers or none does.
 */
import type { PolicyRule } from '#apis/rbac/v1.ts'
import { compareText, goQuote } from '#lib/go-text.ts'

/** The rights of `wanted` that `owned` does not cover, taken apart. */
export function uncoveredRights(owned: readonly PolicyRule[], wanted: readonly PolicyRule[]): PolicyRule[] {
  return wanted.flatMap(singleRights).filter((right) => !owned.some((rule) => covers(rule, right)))
}

function singleRights({
  verbs,
  apiGroups = [],
  resources = [],
  resourceNames,
  nonResourceURLs = [],
}: PolicyRule): PolicyRule[] {
  const names = resourceNames === undefined || resourceNames.length === 0 ? [undefined] : resourceNames
  const onResources = apiGroups.flatMap((group) =>
    resources.flatMap((resource) =>
      verbs.flatMap((verb) =>
        names.map((name) => ({
          verbs: [verb],
          apiGroups: [group],
          resources: [resource],
          ...(name === undefined ? {} : { resourceNames: [name] }),
        })),
      ),
    ),
  )
  const onPaths = nonResourceURLs.flatMap((path) => verbs.map((verb) => ({ verbs: [verb], nonResourceURLs: [path] })))
  return [...onResources, ...onPaths]
}

/** `right` is a single one. */
function covers(rule: PolicyRule, right: PolicyRule): boolean {
  const { apiGroups = [], resources = [], resourceNames = [], nonResourceURLs = [] } = rule
  return (
    hasOrAny(rule.verbs, right.verbs) &&
    hasOrAny(apiGroups, right.apiGroups ?? []) &&
    coversResources(resources, right.resources ?? []) &&
    coversNames(resourceNames, right.resourceNames ?? []) &&
    (right.nonResourceURLs ?? []).every((path) => nonResourceURLs.some((owner) => coversPath(owner, path)))
  )
}

function hasOrAny(owned: readonly string[], wanted: readonly string[]): boolean {
  return owned.includes('*') || wanted.every((one) => owned.includes(one))
}

function coversResources(owned: readonly string[], wanted: readonly string[]): boolean {
  return (
    owned.includes('*') ||
    wanted.every((one) => {
      const slash = one.indexOf('/')
      return owned.includes(one) || (slash >= 0 && owned.includes(`*${one.slice(slash)}`))
    })
  )
}

function coversNames(owned: readonly string[], wanted: readonly string[]): boolean {
  if (owned.length === 0) return true
  return wanted.length > 0 && wanted.every((name) => owned.includes(name))
}

function coversPath(owner: string, path: string): boolean {
  return owner === path || (owner.endsWith('*') && path.startsWith(owner.replace(/\*+$/, '')))
}

/** Single rights on the same resource and name as one rule again, each rule as one line of text, sorted. */
export function describeRights(rights: readonly PolicyRule[]): string[] {
  const merged = new Map<string, PolicyRule>()
  for (const right of rights) {
    const { verbs, apiGroups, resources, resourceNames, nonResourceURLs } = right
    const isPath = nonResourceURLs !== undefined
    const key = JSON.stringify(isPath ? [nonResourceURLs, verbs] : [apiGroups, resources, resourceNames ?? null])
    const known = merged.get(key)
    merged.set(key, known === undefined || isPath ? right : { ...known, verbs: [...known.verbs, ...verbs] })
  }
  return [...new Set([...merged.values()].map(ruleText))].sort(compareText)
}

/** `{APIGroups:[""], Resources:["pods"], Verbs:["get" "list"]}`. */
function ruleText(rule: PolicyRule): string {
  const parts: [string, readonly string[] | undefined][] = [
    ['APIGroups', rule.apiGroups],
    ['Resources', rule.resources],
    ['NonResourceURLs', rule.nonResourceURLs],
    ['ResourceNames', rule.resourceNames],
    ['Verbs', rule.verbs],
  ]
  const texts = parts.flatMap(([name, list = []]) => (list.length === 0 ? [] : [`${name}:${quotedList(list)}`]))
  return `{${texts.join(', ')}}`
}

/** `%q` of a list of strings. */
export function quotedList(texts: readonly string[]): string {
  return `[${texts.map(goQuote).join(' ')}]`
}
