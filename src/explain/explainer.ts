/** The interface of an explainer: it answers one kind of question about an object. */
import type { Kind } from '#apis/kinds.ts'
import type { KubeObject } from '#meta/object.ts'

import type { Finding } from './explanation.ts'
import type { Reader } from './reader.ts'

/** The object of a question. */
export interface Target<T extends KubeObject = KubeObject> {
  readonly kind: Kind<T>
  readonly object: T
}

export interface Explainer {
  /** The question that it answers: `scheduling`. */
  readonly name: string
  /** Whether the object has the state that it explains. The first explainer of the list that says so explains it. */
  applies(target: Target): boolean
  explain(target: Target, reader: Reader): Promise<Finding>
}

/** `pods`, `deployments.apps`: whether the object is of this kind, in any version. */
export function isOf<T extends KubeObject>({ kind }: Target, { group, plural }: Kind<T>): boolean {
  return kind.group === group && kind.plural === plural
}
