/**
 * The tree of a CEL expression after macro expansion. Nodes are numbered, so that the checker and the estimator can
 * store their results outside of the tree.
 */

/** Code points from the start of the source; messages turn it into a line and a column. */
export type Offset = number

interface Node {
  readonly id: number
  readonly at: Offset
}

export interface Literal extends Node {
  readonly kind: 'literal'
  readonly value: LiteralValue
}

/** By type, because `1`, `1u` and `1.0` are different things. */
export type LiteralValue =
  | { readonly type: 'null' }
  | { readonly type: 'bool'; readonly value: boolean }
  | { readonly type: 'int'; readonly value: bigint }
  | { readonly type: 'uint'; readonly value: bigint }
  | { readonly type: 'double'; readonly value: number }
  | { readonly type: 'string'; readonly value: string }
  | { readonly type: 'bytes'; readonly value: Uint8Array }

/** A variable; with a leading dot when it was written so. After checking also a whole qualified name (`a.b.c`). */
export interface Identifier extends Node {
  readonly kind: 'identifier'
  readonly name: string
}

export interface Select extends Node {
  readonly kind: 'select'
  readonly operand: Expression
  readonly field: string
  /** `has(operand.field)`. */
  readonly isTest: boolean
}

/** Also operators, by upstream's names: `_+_`, `_&&_`, `!_`, `_?_:_`, `_[_]`, `_?._`, `_[?_]`, `@in`. */
export interface Call extends Node {
  readonly kind: 'call'
  readonly function: string
  readonly target: Expression | undefined
  readonly args: readonly Expression[]
}

export interface ListLiteral extends Node {
  readonly kind: 'list'
  readonly elements: readonly Expression[]
  /** The indexes of elements written `?e`. */
  readonly optional: ReadonlySet<number>
}

export interface MapEntry extends Node {
  readonly key: Expression
  readonly value: Expression
  /** `?key: value`. */
  readonly isOptional: boolean
}

export interface MapLiteral extends Node {
  readonly kind: 'map'
  readonly entries: readonly MapEntry[]
}

export interface MessageField extends Node {
  readonly field: string
  readonly value: Expression
  readonly isOptional: boolean
}

export interface MessageLiteral extends Node {
  readonly kind: 'message'
  readonly typeName: string
  readonly fields: readonly MessageField[]
}

/** The form of every macro over lists and maps: a fold. */
export interface Comprehension extends Node {
  readonly kind: 'comprehension'
  readonly range: Expression
  readonly variable: string
  /** Of two-variable comprehensions: `variable` is then the index or key. */
  readonly variable2: string | undefined
  readonly accumulator: string
  readonly initial: Expression
  readonly condition: Expression
  readonly step: Expression
  readonly result: Expression
}

export type Expression =
  | Literal
  | Identifier
  | Select
  | Call
  | ListLiteral
  | MapLiteral
  | MessageLiteral
  | Comprehension

/** A parsed expression, with the data for positions in its source. */
export interface Tree {
  readonly source: string
  readonly root: Expression
  /** One more than the largest id in use. */
  readonly nextId: number
}
