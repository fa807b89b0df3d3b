/**
 * Decides which of its requested names a CustomResourceDefinition gets. Resource names (plural, singular, short) and
 * kinds are unique within a group. The first definition keeps a name, and others get it when it becomes free.
 */
import type { CustomResourceDefinition, CustomResourceDefinitionNames } from '#apis/apiextensions/v1.ts'
import { goQuote } from '#lib/go/text.ts'

import type { Condition } from './definition.ts'

/** The taken names of a group. */
export interface TakenNames {
  readonly resources: ReadonlySet<string>
  readonly kinds: ReadonlySet<string>
}

/** The accepted names of all definitions of the group, including this one. */
export function takenNames(given: Iterable<CustomResourceDefinitionNames>): TakenNames {
  const resources = new Set<string>()
  const kinds = new Set<string>()
  for (const { plural, singular = '', shortNames = [], kind, listKind = '' } of given) {
    for (const name of [plural, singular, ...shortNames]) if (name !== '') resources.add(name)
    for (const name of [kind, listKind]) if (name !== '') kinds.add(name)
  }
  return { resources, kinds }
}

export interface NamePlan {
  readonly accepted: CustomResourceDefinitionNames
  readonly condition: Condition
}

/** The last of several conflicts is reported. */
export function planNames({ spec, status }: CustomResourceDefinition, taken: TakenNames): NamePlan {
  const { names: requested } = spec
  const { acceptedNames: current } = status
  const accepted: CustomResourceDefinitionNames = { ...current }
  let condition: Condition | undefined
  const clash = (reason: string, messages: readonly string[]): void => {
    const message = messages.length === 1 ? messages[0] : `[${messages.join(', ')}]`
    condition = { type: 'NamesAccepted', status: 'False', reason, ...(message !== undefined && { message }) }
  }
  const take = (name: 'plural' | 'singular' | 'kind' | 'listKind', used: ReadonlySet<string>, reason: string): void => {
    const wanted = requested[name] ?? ''
    if (wanted !== (current[name] ?? '') && used.has(wanted)) clash(reason, [inUse(wanted)])
    else accepted[name] = wanted
  }
  take('plural', taken.resources, 'PluralConflict')
  take('singular', taken.resources, 'SingularConflict')
  const others = (requested.shortNames ?? []).filter((name) => !(current.shortNames ?? []).includes(name))
  const clashing = others.filter((name) => taken.resources.has(name))
  if (clashing.length > 0) clash('ShortNamesConflict', clashing.map(inUse))
  else setOrDelete(accepted, 'shortNames', requested.shortNames)
  take('kind', taken.kinds, 'KindConflict')
  take('listKind', taken.kinds, 'ListKindConflict')
  setOrDelete(accepted, 'categories', requested.categories)
  return { accepted: tidy(accepted), condition: condition ?? NO_CONFLICTS }
}

const NO_CONFLICTS: Condition = {
  type: 'NamesAccepted',
  status: 'True',
  reason: 'NoConflicts',
  message: 'no conflicts found',
}

function inUse(name: string): string {
  return `${goQuote(name)} is already in use`
}

function setOrDelete(
  names: CustomResourceDefinitionNames,
  name: 'shortNames' | 'categories',
  value: string[] | undefined,
): void {
  if (value === undefined) delete names[name]
  else names[name] = value
}

/** In canonical order, without empty values. */
function tidy(names: CustomResourceDefinitionNames): CustomResourceDefinitionNames {
  const { plural, singular = '', shortNames = [], kind, listKind = '', categories = [] } = names
  return {
    plural,
    ...(singular !== '' && { singular }),
    ...(shortNames.length > 0 && { shortNames }),
    kind,
    ...(listKind !== '' && { listKind }),
    ...(categories.length > 0 && { categories }),
  }
}
