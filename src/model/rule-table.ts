/**
 * Indexes the rules of one RBAC role by group and resource. So a check needs only a few look-ups, independent of the
 * number of rules.
 */
import type { PolicyRule } from '#apis/rbac/v1.ts'
import { trimEndOf } from '#lib/trim.ts'

/** The verb and the resource, or the path, of a request. */
export interface RuleAccess {
  readonly verb: string
  readonly isResource: boolean
  /** Of a request for no resource. */
  readonly path: string
  readonly group: string
  readonly resource: string
  readonly subresource: string
  /** Empty: no named object. */
  readonly name: string
}

/** A request in the form that rules match on, computed once for many tables. */
export interface RuleRequest {
  readonly verb: string
  readonly isResource: boolean
  readonly path: string
  readonly group: string
  /** `pods` or `pods/log`. */
  readonly resource: string
  /** The wildcard for the subresource: `*` + `/log`. Empty if there is none. */
  readonly anyParent: string
  readonly name: string
}

export function ruleRequestOf({ verb, isResource, path, group, resource, subresource, name }: RuleAccess): RuleRequest {
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

/** The remaining conditions of a rule after group and resource, or the path, match. */
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

  allows(request: RuleRequest): boolean {
    if (!request.isResource) return this.#allowsPath(request)
    const { group } = request
    return allowsIn(this.#byGroup.get(group), request) || (group !== ANY && allowsIn(this.#byGroup.get(ANY), request))
  }

  #allowsPath({ path, verb }: RuleRequest): boolean {
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

function allowsIn(byResource: ReadonlyMap<string, readonly Terms[]> | undefined, request: RuleRequest): boolean {
  if (byResource === undefined) return false
  const { resource, anyParent } = request
  return (
    fits(byResource.get(resource), request) ||
    fits(byResource.get(ANY), request) ||
    (anyParent !== '' && fits(byResource.get(anyParent), request))
  )
}

function fits(list: readonly Terms[] | undefined, { verb, name }: RuleRequest): boolean {
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
