/** Kinds that are not built in: what a client has to know of one to speak of it. */
import type { Kind } from '#apis/kinds.ts'
import type { GroupVersionKind } from '#meta/kind.ts'
import type { KubeObject } from '#meta/object.ts'

export interface KindNames extends GroupVersionKind {
  /** The resource: lower-case and plural. */
  readonly plural: string
  /** Whether its objects are in namespaces. Default: they are. */
  readonly namespaced?: boolean
}

/** `T` is the type of its objects, status and all. Nobody checks that the server has such a kind. */
export function defineKind<T extends KubeObject = KubeObject>({ namespaced = true, ...names }: KindNames): Kind<T> {
  return {
    ...names,
    namespaced,
    singular: names.kind.toLowerCase(),
    listKind: `${names.kind}List`,
    shortNames: [],
    categories: [],
    verbs: [],
    subresources: [],
  }
}
