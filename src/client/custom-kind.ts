/** Creates kind descriptors for custom resources, so that the client can use them like built-in kinds. */
import type { Kind } from '#apis/kinds.ts'
import type { GroupVersionKind } from '#meta/kind.ts'
import type { KubeObject } from '#meta/object.ts'

export interface KindNames extends GroupVersionKind {
  /** The resource name: lower-case and plural. */
  readonly plural: string
  /** Default: true. */
  readonly namespaced?: boolean
}

/** `T` is the type of the objects, including status. The function does not check that the server has the kind. */
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
