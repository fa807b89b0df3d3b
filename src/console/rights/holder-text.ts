/** The address of a user, a group or a service account: `User:jane`, `ServiceAccount:kube-system/default`. */
import type { Holder, SubjectKind } from './rbac.ts'

export function holderText({ kind, name, namespace }: Holder): string {
  return `${kind}:${nameText({ name, namespace })}`
}

export function nameText({
  name,
  namespace,
}: {
  readonly name: string
  readonly namespace?: string | undefined
}): string {
  return namespace === undefined ? name : `${namespace}/${name}`
}

/** Undefined for an empty name. */
export function parseHolder(text: string): Holder | undefined {
  const at = text.indexOf(':')
  const kind = kindOf(text.slice(0, at))
  const name = text.slice(at + 1).trim()
  if (at < 0 || name === '') return undefined
  if (kind !== 'ServiceAccount') return { kind, name }
  const [namespace = '', account = ''] = name.includes('/') ? name.split('/', 2) : ['default', name]
  return account === '' ? undefined : { kind, name: account, namespace }
}

function kindOf(text: string): SubjectKind {
  return text === 'Group' || text === 'ServiceAccount' ? text : 'User'
}
