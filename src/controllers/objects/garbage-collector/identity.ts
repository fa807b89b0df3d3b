/** The identity of an object as in owner references, with its namespace. */
import type { Kind } from '#apis/kinds.ts'
import { apiVersionOf } from '#meta/kind.ts'
import type { KubeObject, OwnerReference } from '#meta/object.ts'

export interface Identity {
  readonly apiVersion: string
  readonly kind: string
  readonly namespace: string
  readonly name: string
  readonly uid: string
}

export function identityOf(kind: Kind, { metadata: { namespace = '', name = '', uid = '' } }: KubeObject): Identity {
  return { apiVersion: apiVersionOf(kind), kind: kind.kind, namespace, name, uid }
}

export function identityIn(namespace: string, { apiVersion, kind, name, uid }: OwnerReference): Identity {
  return { apiVersion, kind, namespace, name, uid }
}

/** `[v1/ConfigMap, namespace: a, name: b, uid: c]`. */
export function identityText({ apiVersion, kind, namespace, name, uid }: Identity): string {
  return `[${apiVersion}/${kind}, namespace: ${namespace}, name: ${name}, uid: ${uid}]`
}

export function sameIdentity(one: Identity, other: Identity): boolean {
  return sameReference(one, other) && one.namespace === other.namespace
}

export function sameReference(one: Omit<Identity, 'namespace'>, other: Omit<Identity, 'namespace'>): boolean {
  const isSameKind = one.apiVersion === other.apiVersion && one.kind === other.kind
  return isSameKind && one.name === other.name && one.uid === other.uid
}
