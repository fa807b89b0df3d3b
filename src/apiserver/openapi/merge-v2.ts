/**
 * Merges the OpenAPI documents of aggregated servers into ours. Our paths take precedence; a different definition with
 * the same name is renamed.
 */
import { isJsonObject } from '#lib/json/value.ts'
import { semanticEqual } from '#meta/object.ts'

import type { Swagger } from '../aggregated.ts'
import type { Definition } from '../registry/openapi-definition.ts'
import { V2 } from './definitions.ts'

type ByNameMap = Record<string, unknown>

const KINDS = 'x-kubernetes-group-version-kind'

/** A new document; the inputs are not modified. */
export function mergeSwaggers(own: Definition, others: readonly Swagger[]): Definition {
  if (others.length === 0) return own
  const paths: ByNameMap = { ...(own['paths'] as ByNameMap) }
  const definitions: ByNameMap = { ...(own['definitions'] as ByNameMap) }
  for (const other of others) {
    const theirs = membersOf(other['definitions'])
    const names = planNames(definitions, theirs)
    const follow = (value: unknown): unknown => (names.size === 0 ? value : withNames(value, names))
    for (const [name, definition] of Object.entries(theirs)) {
      const as = names.get(name) ?? name
      definitions[as] = withKindsOf(follow(definition), definitions[as])
    }
    for (const [path, item] of Object.entries(membersOf(other['paths']))) paths[path] ??= follow(item)
  }
  const sorted = Object.entries(definitions).sort(([one], [another]) => (one < another ? -1 : 1))
  return { ...own, paths, definitions: Object.fromEntries(sorted) }
}

function membersOf(value: unknown): ByNameMap {
  return isJsonObject(value) ? value : {}
}

/** Their definitions that need another name, with that name. */
function planNames(ours: ByNameMap, theirs: ByNameMap): Map<string, string> {
  const names = new Map<string, string>()
  const isShared = (name: string, as: string): boolean =>
    Object.hasOwn(ours, as) && isSame(withNames(theirs[name], names), ours[as])
  // A definition that references a renamed one differs from ours, and needs a new name as well.
  for (let isSettled = false; !isSettled;) {
    isSettled = true
    for (const name of Object.keys(theirs)) {
      if (names.has(name) || !Object.hasOwn(ours, name) || isShared(name, name)) continue
      let release = 2
      while (Object.hasOwn(ours, `${name}_v${release}`) && !isShared(name, `${name}_v${release}`)) release++
      names.set(name, `${name}_v${release}`)
      isSettled = false
    }
  }
  return names
}

/** The kinds of a definition depend on the server. */
function isSame(theirs: unknown, ours: unknown): boolean {
  const { [KINDS]: _their, ...one } = membersOf(theirs)
  const { [KINDS]: _our, ...other } = membersOf(ours)
  return semanticEqual(one, other)
}

function withKindsOf(definition: unknown, known: unknown): unknown {
  if (known === undefined) return definition
  const { [KINDS]: ours = [] } = membersOf(known)
  const { [KINDS]: theirs = [] } = membersOf(definition)
  if (!Array.isArray(ours) || !Array.isArray(theirs)) return known
  const added = theirs.filter((kind) => !ours.some((one) => semanticEqual(one, kind)))
  return added.length === 0 ? known : { ...membersOf(known), [KINDS]: [...ours, ...added] }
}

/** The same value with its references renamed. */
function withNames(value: unknown, names: ReadonlyMap<string, string>): unknown {
  if (names.size === 0 || typeof value !== 'object' || value === null) return value
  if (Array.isArray(value)) return value.map((item) => withNames(item, names))
  return Object.fromEntries(
    Object.entries(value).map(([key, item]) => {
      const name = key === '$ref' && typeof item === 'string' ? names.get(item.slice(V2.refPrefix.length)) : undefined
      return [key, name === undefined ? withNames(item, names) : V2.refPrefix + name]
    }),
  )
}
