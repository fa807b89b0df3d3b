/** Builds and parses the user names of service accounts and nodes. */
import { nameIsLabel, nameIsSubdomain } from '#meta/validation/names.ts'

import type { User } from '../user.ts'

const SERVICE_ACCOUNT = 'system:serviceaccount:'
const NODE = 'system:node:'

export interface ServiceAccountName {
  readonly namespace: string
  readonly name: string
}

export function serviceAccountUser({ namespace, name }: ServiceAccountName): string {
  return `${SERVICE_ACCOUNT}${namespace}:${name}`
}

export function serviceAccountGroups(namespace: string): string[] {
  return ['system:serviceaccounts', `system:serviceaccounts:${namespace}`]
}

/** Undefined for other users and for names that no service account can have. */
export function parseServiceAccountUser(user: string): ServiceAccountName | undefined {
  if (!user.startsWith(SERVICE_ACCOUNT)) return undefined
  const [namespace = '', name = '', ...rest] = user.slice(SERVICE_ACCOUNT.length).split(':')
  const isValid = rest.length === 0 && nameIsLabel(namespace, false).length + nameIsSubdomain(name, false).length === 0
  return isValid ? { namespace, name } : undefined
}

/** The user name of a node. */
export function parseNodeUser(user: string): string | undefined {
  const name = user.startsWith(NODE) ? user.slice(NODE.length) : ''
  return name !== '' && nameIsSubdomain(name, false).length === 0 ? name : undefined
}

/** Keys of a user's `extra` that name the objects to which its token is bound. */
export const EXTRA = {
  credentialId: 'authentication.kubernetes.io/credential-id',
  podName: 'authentication.kubernetes.io/pod-name',
  podUid: 'authentication.kubernetes.io/pod-uid',
  nodeName: 'authentication.kubernetes.io/node-name',
  nodeUid: 'authentication.kubernetes.io/node-uid',
} as const

/** The single value of an extra key; undefined if there is none or more than one. */
export function extraValue({ extra }: User, key: string): string | undefined {
  const values = Object.hasOwn(extra, key) ? (extra[key] ?? []) : []
  return values.length === 1 ? values[0] : undefined
}
