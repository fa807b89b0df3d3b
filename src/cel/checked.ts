/**
 * What checking makes of a tree: the type of every node and what every name and call means. The tree itself stays as it
 * was parsed; where names of several parts were found to be one (`a.b.c` a variable, `strings.quote` a function), the
 * reference of the outer node says so, and the nodes below it have neither type nor reference.
 */
import type { Expression, Tree } from './ast.ts'
import type { Overload } from './library.ts'
import type { CelType } from './type.ts'

export interface Checked {
  readonly tree: Tree
  /** By the id of the node. */
  readonly types: readonly (CelType | undefined)[]
  /** By the id of the node: of identifiers, of selections that are qualified names, and of calls. */
  readonly references: readonly (Reference | undefined)[]
}

export type Reference = VariableReference | TypeReference | CallReference

/** A variable of the environment or of a macro around it; of a selection, the whole qualified name. */
export interface VariableReference {
  readonly kind: 'variable'
  readonly name: string
}

/** A type written by its name: `int`, `google.protobuf.Timestamp`. */
export interface TypeReference {
  readonly kind: 'type'
  readonly type: CelType
}

export interface CallReference {
  readonly kind: 'call'
  /** The name of the function, with its namespace if it has one: `strings.quote`. */
  readonly name: string
  /** All that fit what is known of the arguments, in the order of their declaration; one, unless something is dyn. */
  readonly overloads: readonly Overload[]
  /** What is evaluated and passed, in order: the receiver first, unless it was only a namespace. */
  readonly args: readonly Expression[]
}
