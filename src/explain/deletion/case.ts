/** A deletion to explain, and what the explanation of one cause consists of. */
import type { Kind } from '#apis/kinds.ts'
import type { KubeObject } from '#meta/object.ts'

import type { Finding } from '../explanation.ts'
import type { Reader } from '../reader.ts'
import type { Transition } from './changes.ts'

export interface DeletionCase {
  readonly kind: Kind
  /** The last state. */
  readonly object: KubeObject
  /** The change that began the deletion. */
  readonly decision: Transition
  readonly reader: Reader
  /** Explains the deletion of another object, such as an owner. */
  readonly whyDeleted: (kind: Kind, where: { readonly namespace?: string; readonly name: string }) => Promise<Finding>
}

/** Why, as the end of a sentence with "because", and the steps behind it. */
export interface DeletionCause {
  readonly because: string
  readonly steps: Finding['steps']
}
