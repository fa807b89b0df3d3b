/**
 * The result of type-checking the tree of a CEL expression: the type of every node and the meaning of every name and
 * call. If several nodes form one name (`a.b.c`), only the outermost node has a type and a reference.
 */
import type { Overload } from '../library.ts'
import type { Expression, Tree } from '../syntax/ast.ts'
import type { CelType } from '../type.ts'

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
  /** All matching overloads in the order of their declaration; one, unless something is dyn. */
  readonly overloads: readonly Overload[]
  /** The evaluated arguments in order: the receiver first, unless it was only a namespace. */
  readonly args: readonly Expression[]
}
