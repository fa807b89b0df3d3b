/**
 * Rule table: the rules of one role, arranged for looking up. A request is asked about by its group, then its resource;
 * wildcards have places of their own, so a role of any length costs a handful of look-ups.
 */
import type { PolicyRule } from '#apis/rbac/v1.ts'
import { trimEndOf } from '#lib/trim.ts'

import type { Access } from '../authorizer.ts'

/** A request as rules see it. Made once, asked of many tables. */
export interface Question {
  readonly verb: string
  readonly isResource: boolean
  readonly path: string
  readonly group: string
  /** `pods` or `pods/log`. */
  readonly resource: string
  /** Which wildcard fits the subresource: `*` + `/log`. Empty when there is none. */
  readonly anyParent: string
  readonly name: string
}

export function questionOf({ verb, isResource, path, group, resource, subresource, name }: Access): Question {
  const isWhole = subresource === ''
  return {
    verb,
    isResource,
    path,
    group,
    resource: isWhole ? resource : `${resource}/${subresource}`,
    anyParent: isWhole ? '' : `*/${subresource}`,
    name,
  }
}

/** What remains to be checked of a rule once group and resource, or the path, fit. */
interface Terms {
  /** Undefined: every verb. */
  readonly verbs: ReadonlySet<string> | undefined
  /** Undefined: every name, and none. */
  readonly names: ReadonlySet<string> | undefined
}

const ANY = '*'

export class RuleTable {
  readonly #byGroup = new Map<string, Map<string, Terms[]>>()
  readonly #byPath = new Map<string, Terms[]>()
  readonly #byPrefix: { readonly prefix: string; readonly terms: Terms }[] = []

  constructor(rules: readonly PolicyRule[]) {
    for (const rule of rules) this.#add(rule)
  }

  allows(question: Question): boolean {
    if (!question.isResource) return this.#allowsPath(question)
    const { group } = question
    return allowsIn(this.#byGroup.get(group), question) || (group !== ANY && allowsIn(this.#byGroup.get(ANY), question))
  }

  #allowsPath({ path, verb }: Question): boolean {
    const exact = this.#byPath.get(path)
    if (exact !== undefined && exact.some((terms) => hasVerb(terms, verb))) return true
    return this.#byPrefix.some(({ prefix, terms }) => path.startsWith(prefix) && hasVerb(terms, verb))
  }

  #add(rule: PolicyRule): void {
    const { apiGroups = [], resources = [], resourceNames = [], nonResourceURLs = [] } = rule
    const verbs = (rule.verbs ?? []).includes(ANY) ? undefined : new Set(rule.verbs)
    const terms: Terms = { verbs, names: resourceNames.length === 0 ? undefined : new Set(resourceNames) }
    for (const group of apiGroups) {
      const byResource = this.#byGroup.get(group) ?? new Map<string, Terms[]>()
      this.#byGroup.set(group, byResource)
      for (const resource of resources) push(byResource, resource, terms)
    }
    for (const path of nonResourceURLs) {
      push(this.#byPath, path, terms)
      if (path.endsWith(ANY)) this.#byPrefix.push({ prefix: trimEndOf(path, '*'), terms })
    }
  }
}

function allowsIn(byResource: ReadonlyMap<string, readonly Terms[]> | undefined, question: Question): boolean {
  if (byResource === undefined) return false
  const { resource, anyParent } = question
  return (
    fits(byResource.get(resource), question) ||
    fits(byResource.get(ANY), question) ||
    (anyParent !== '' && fits(byResource.get(anyParent), question))
  )
}

function fits(list: readonly Terms[] | undefined, { verb, name }: Question): boolean {
  if (list === undefined) return false
  for (const terms of list) {
    if (hasVerb(terms, verb) && (terms.names === undefined || terms.names.has(name))) return true
  }
  return false
}

function hasVerb({ verbs }: Terms, verb: string): boolean {
  return verbs === undefined || verbs.has(verb)
}

function push(map: Map<string, Terms[]>, key: string, terms: Terms): void {
  const list = map.get(key)
  if (list === undefined) map.set(key, [terms])
  else list.push(terms)
}
