/** Reads what a user types for a kind or a path: `pods`, `po`, `pods/exec`, `deployments.apps`, `/metrics`. */
import type { RuleAccess } from '#model/rule-table.ts'

import type { Kind } from '../api/kinds.ts'

export type Target = Omit<RuleAccess, 'verb' | 'name'>

/** Undefined for an empty text. A kind that the cluster does not list is taken as it was typed. */
export function targetOf(text: string, kinds: readonly Kind[]): Target | undefined {
  const typed = text.trim()
  if (typed === '') return undefined
  if (typed.startsWith('/')) return { isResource: false, path: typed, group: '', resource: '', subresource: '' }
  const [name = '', subresource = ''] = typed.split('/', 2)
  const [resource = '', ...groups] = name.split('.')
  const wanted = groups.length === 0 ? undefined : groups.join('.')
  const kind = kinds.find((one) => isNamed(one, resource) && (wanted === undefined || one.group === wanted))
  const found = kind ?? { plural: resource, group: wanted ?? '' }
  return { isResource: true, path: '', group: found.group, resource: found.plural, subresource }
}

function isNamed({ plural, singular, shortNames, kind }: Kind, typed: string): boolean {
  const name = typed.toLowerCase()
  return plural === name || singular === name || kind.toLowerCase() === name || shortNames.includes(name)
}

/**
 * The namespace in which a request for the target is authorized. Empty: that of the whole cluster. Undefined: any, because
 * the user chose none.
 */
export function namespaceOf(
  { isResource, group, resource }: Target,
  kinds: readonly Kind[],
  { namespace, name }: { readonly namespace: string; readonly name: string },
): string | undefined {
  // Requests for a namespace are authorized in it.
  if (isResource && group === '' && resource === 'namespaces') return name === '' ? undefined : name
  const kind = kinds.find((one) => one.plural === resource && one.group === group)
  if (!isResource || kind?.isNamespaced === false) return ''
  return namespace === '' ? undefined : namespace
}
