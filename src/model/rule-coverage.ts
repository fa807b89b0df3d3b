/**
 * Checks whether RBAC rules cover other rules, and lists the missing permissions. A permission is one verb, one group
 * and resource, and at most one name. The list is bounded.
 */
import type { PolicyRule } from '#apis/rbac/v1.ts'
import { compareText, goQuote } from '#lib/go/text.ts'
import { trimEndOf } from '#lib/trim.ts'

/** The maximum number of listed rights. */
const MAX_RIGHTS = 1000
/** The maximum number of checked combinations per rule. Real rules have some hundred. */
const MAX_STEPS = 200_000

/**
 * The rights of `wanted` that `owned` does not cover, up to a limit. Empty if all are covered. A rule with too many
 * combinations counts as not covered.
 */
export function uncoveredRights(owned: readonly PolicyRule[], wanted: readonly PolicyRule[]): PolicyRule[] {
  const found: PolicyRule[] = []
  const index = new OwnedIndex(owned)
  for (const rule of wanted) {
    if (found.length >= MAX_RIGHTS) break
    found.push(...uncoveredResources(index, rule), ...uncoveredPaths(index, rule))
  }
  return found.slice(0, MAX_RIGHTS)
}

/** Indexes of owned rules, ascending. */
type RuleNumbers = readonly number[]

/** For one dimension of a rule: the owned rules that name a value, and those that match every value. */
class Dimension {
  readonly #byValue = new Map<string, number[]>()
  readonly any: number[] = []

  add(rule: number, values: readonly string[], matchesAny = values.includes('*')): void {
    if (matchesAny) {
      this.any.push(rule)
      return
    }
    for (const value of new Set(values)) {
      const known = this.#byValue.get(value)
      if (known === undefined) this.#byValue.set(value, [rule])
      else known.push(rule)
    }
  }

  rulesFor(value: string): RuleNumbers {
    return this.#byValue.get(value) ?? []
  }
}

class OwnedIndex {
  readonly #verbs = new Dimension()
  readonly #groups = new Dimension()
  readonly #resources = new Dimension()
  readonly #names = new Dimension()
  readonly #paths = new Dimension()
  readonly #prefixes: { readonly prefix: string; readonly rule: number }[] = []

  constructor(owned: readonly PolicyRule[]) {
    for (const [number, { verbs, apiGroups, resources, resourceNames = [], nonResourceURLs }] of owned.entries()) {
      this.#verbs.add(number, verbs)
      this.#groups.add(number, apiGroups ?? [])
      this.#resources.add(number, resources ?? [])
      this.#names.add(number, resourceNames, resourceNames.length === 0)
      this.#paths.add(number, nonResourceURLs ?? [], false)
      for (const url of nonResourceURLs ?? []) {
        if (url.endsWith('*')) this.#prefixes.push({ prefix: trimEndOf(url, '*'), rule: number })
      }
    }
  }

  verb(verb: string): RuleNumbers {
    return union(this.#verbs.any, this.#verbs.rulesFor(verb))
  }

  group(group: string): RuleNumbers {
    return union(this.#groups.any, this.#groups.rulesFor(group))
  }

  resource(resource: string): RuleNumbers {
    const slash = resource.indexOf('/')
    const exact = union(this.#resources.any, this.#resources.rulesFor(resource))
    return slash < 0 ? exact : union(exact, this.#resources.rulesFor(`*${resource.slice(slash)}`))
  }

  name(name: string | undefined): RuleNumbers {
    return name === undefined ? this.#names.any : union(this.#names.any, this.#names.rulesFor(name))
  }

  path(path: string): RuleNumbers {
    const matching = this.#prefixes.filter(({ prefix }) => path.startsWith(prefix)).map(({ rule }) => rule)
    return union(this.#paths.rulesFor(path), matching)
  }
}

function union(a: RuleNumbers, b: RuleNumbers): RuleNumbers {
  if (a.length === 0) return b
  return b.length === 0 ? a : [...new Set([...a, ...b])].sort((left, right) => left - right)
}

function intersect(a: RuleNumbers, b: RuleNumbers): RuleNumbers {
  if (a.length > b.length) return intersect(b, a)
  const others = new Set(b)
  return a.filter((rule) => others.has(rule))
}

/** The values of one dimension with the number of their class: values of one class are matched by the same rules. */
interface Classes<T> {
  readonly values: readonly { readonly value: T; readonly id: number }[]
  readonly rules: readonly RuleNumbers[]
}

function classify<T>(values: readonly T[], rulesFor: (value: T) => RuleNumbers): Classes<T> {
  const ids = new Map<string, number>()
  const rules: RuleNumbers[] = []
  const classified = values.map((value) => {
    const matching = rulesFor(value)
    const key = matching.join(',')
    const id = ids.get(key) ?? rules.push(matching) - 1
    ids.set(key, id)
    return { value, id }
  })
  return { values: classified, rules }
}

function uncoveredResources(index: OwnedIndex, rule: PolicyRule): PolicyRule[] {
  const { verbs, apiGroups = [], resources = [], resourceNames = [] } = rule
  const names = resourceNames.length === 0 ? [undefined] : resourceNames
  const dimensions = [
    classify<string | undefined>(apiGroups, (group) => index.group(group ?? '')),
    classify<string | undefined>(resources, (resource) => index.resource(resource ?? '')),
    classify<string | undefined>(verbs, (verb) => index.verb(verb ?? '')),
    classify<string | undefined>(names, (name) => index.name(name)),
  ]
  return uncoveredCombinations(dimensions).map(([group = '', resource = '', verb = '', name]) => ({
    verbs: [verb],
    apiGroups: [group],
    resources: [resource],
    ...(name === undefined ? {} : { resourceNames: [name] }),
  }))
}

function uncoveredPaths(index: OwnedIndex, { verbs, nonResourceURLs = [] }: PolicyRule): PolicyRule[] {
  const dimensions = [
    classify<string | undefined>(nonResourceURLs, (path) => index.path(path ?? '')),
    classify<string | undefined>(verbs, (verb) => index.verb(verb ?? '')),
  ]
  return uncoveredCombinations(dimensions).map(([path = '', verb = '']) => ({ verbs: [verb], nonResourceURLs: [path] }))
}

type Combination = readonly (string | undefined)[]

/** The combinations of values that no rule matches, with the last dimension changing fastest. */
function uncoveredCombinations(dimensions: readonly Classes<string | undefined>[]): Combination[] {
  if (dimensions.some(({ values }) => values.length === 0)) return []
  const search = new UncoveredSearch(dimensions)
  if (!search.hasUncovered()) return []
  return search.list()
}

class UncoveredSearch {
  readonly #dimensions: readonly Classes<string | undefined>[]
  /** By the chosen class numbers: true if some combination with this prefix is uncovered. */
  readonly #isUncovered = new Map<string, boolean>()
  #steps = 0

  constructor(dimensions: readonly Classes<string | undefined>[]) {
    this.#dimensions = dimensions
  }

  hasUncovered(chosen = '', rules?: RuleNumbers): boolean {
    const known = this.#isUncovered.get(chosen)
    if (known !== undefined) return known
    const at = chosen === '' ? 0 : chosen.split(' ').length - 1
    const dimension = this.#dimensions[at]
    let result = rules !== undefined && rules.length === 0
    if (!result && dimension !== undefined) {
      const ids = dimension.rules.keys()
      // Not only `some`, because the listing uses every class later.
      for (const id of ids) {
        const matching = dimension.rules[id] as RuleNumbers
        const left = rules === undefined ? matching : intersect(rules, matching)
        this.#steps += 1 + left.length
        if (this.#steps > MAX_STEPS || this.hasUncovered(`${chosen}${id} `, left)) result = true
        if (this.#steps > MAX_STEPS) break
      }
    }
    this.#isUncovered.set(chosen, result)
    return result
  }

  /** Up to the limits, at least one. */
  list(): Combination[] {
    const found: Combination[] = []
    let steps = 0
    const visit = (at: number, chosen: string, values: Combination): void => {
      const dimension = this.#dimensions[at]
      if (dimension === undefined) return void found.push(values)
      for (const { value, id } of dimension.values) {
        if (found.length >= MAX_RIGHTS || (++steps > MAX_STEPS && found.length > 0)) return
        // Unchecked combinations, below a class without rules or beyond the limit, are not covered.
        const next = `${chosen}${id} `
        if (this.#isUncovered.get(next) ?? true) visit(at + 1, next, [...values, value])
      }
    }
    visit(0, '', [])
    return found
  }
}

/** Groups rights with the same resource and name into rules again, as sorted lines of text. */
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

/** Go's `%q` of a list of strings. */
export function quotedList(texts: readonly string[]): string {
  return `[${texts.map(goQuote).join(' ')}]`
}
