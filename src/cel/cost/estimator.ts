/**
 * The static cost estimate: the minimum and maximum cost of an expression, by upstream's rules for every construct.
 * Sizes come from literals and from the limits in the types of variables.
 */
import type { CallReference, Checked } from '../checking/checked.ts'
import type { ArgumentEstimate, CallEstimate, Overload, Span } from '../library.ts'
import type { Call, Comprehension, Expression, ListLiteral, MapLiteral, Select } from '../syntax/ast.ts'
import { literalValue } from '../syntax/literals.ts'
import { codePoints } from '../syntax/source.ts'
import { childrenOf } from '../syntax/walk.ts'
import { type CelType, DYN, optionalValueOf, parametersOf, unwrap } from '../type.ts'
import { FieldPath } from './field-path.ts'
import { addSpans, fixed, MAX_UINT64, multiplySpans, unionSpans, UNKNOWN_SIZE } from './span.ts'

const FREE = fixed(0)
const ONE = fixed(1)
const LIST_COST = fixed(10)
const MAP_COST = fixed(30)
const MESSAGE_COST = fixed(40)

/** Covers nothing yet. */
const NOTHING: Span = { min: MAX_UINT64, max: 0n }

/**
 * The types of variables limit sizes. As in upstream, a value without a path from a variable, such as an element of a
 * list literal, counts as being as large as `self`.
 */
export function estimateCost(checked: Checked, variables: ReadonlyMap<string, CelType>): Span {
  const rootOf = (name: string): CelType | undefined => variables.get(name) ?? variables.get('self')
  return new Estimator(checked, rootOf).cost(checked.tree.root)
}

type RootOf = (variable: string) => CelType | undefined

/** Of the entries of a list or map. */
interface EntrySize {
  readonly container: 'list' | 'map'
  readonly key: Span
  readonly value: Span
}

/** The known properties of a macro's variable. */
interface Local {
  readonly path: FieldPath | undefined
  readonly size?: Span | undefined
  readonly entrySize?: EntrySize | undefined
}

class Estimator {
  readonly #checked: Checked
  readonly #rootOf: RootOf
  readonly #paths: (FieldPath | undefined)[] = []
  readonly #sizes: (Span | undefined)[] = []
  readonly #entrySizes: (EntrySize | undefined)[] = []
  readonly #locals = new Map<string, Local[]>()

  constructor(checked: Checked, rootOf: RootOf) {
    this.#checked = checked
    this.#rootOf = rootOf
  }

  cost(node: Expression): Span {
    switch (node.kind) {
      case 'literal':
        return FREE
      case 'identifier':
        return this.#costName(node, node.name)
      case 'select':
        return this.#costSelect(node)
      case 'call':
        return this.#costCall(node)
      case 'list':
        return this.#costList(node)
      case 'map':
        return this.#costMap(node)
      case 'message':
        return this.#sum(MESSAGE_COST, childrenOf(node))
      case 'comprehension':
        return isBind(node) ? this.#costBind(node) : this.#costFold(node)
    }
  }

  #costName(node: Expression, name: string): Span {
    const local = this.#local(name)
    this.#paths[node.id] = local === undefined ? FieldPath.of(name) : local.path
    return ONE
  }

  #costSelect(node: Select): Span {
    const reference = this.#checked.references[node.id]
    if (reference !== undefined) return this.#costName(node, reference.kind === 'variable' ? reference.name : '')
    const cost = this.cost(node.operand)
    if (node.isTest) return cost
    this.#paths[node.id] = this.#below(node.operand, node.field)
    return isSelectable(this.#type(node.operand)) ? addSpans(cost, ONE) : cost
  }

  #costCall(node: Call): Span {
    const reference = this.#checked.references[node.id]
    if (reference?.kind !== 'call' || reference.overloads.length === 0) return FREE
    if (reference.name === 'dyn') return this.#costDyn(node, reference)
    const argCosts = node.args.map((arg) => this.cost(arg))
    const receiver = reference.args.length > node.args.length ? reference.args[0] : undefined
    const receiverCost = receiver === undefined ? FREE : this.cost(receiver)
    let cost = NOTHING
    let size: Span | undefined
    for (const overload of reference.overloads) {
      const estimate = this.#costOverload(node, overload, reference, argCosts)
      cost = unionSpans(cost, estimate.cost)
      if (estimate.resultSize !== undefined) {
        size = size === undefined ? estimate.resultSize : unionSpans(size, estimate.resultSize)
      }
      size = this.#indexed(node, overload.id, size) ?? this.#size(node)
    }
    this.#setSize(node, size)
    return addSpans(receiverCost, cost)
  }

  /** Of `l[0]` and `m['k']`, the size is that of an entry. */
  #indexed(node: Call, overloadId: string, size: Span | undefined): Span | undefined {
    const [container] = node.args
    if (container === undefined || (overloadId !== 'index_list' && overloadId !== 'index_map')) return size
    this.#paths[node.id] = this.#below(container, overloadId === 'index_list' ? '@items' : '@values')
    return this.#entrySize(container)?.value
  }

  /** It only keeps the checker from looking. */
  #costDyn(node: Call, { args }: CallReference): Span {
    const [arg] = args as [Expression]
    const cost = addSpans(ONE, this.cost(arg))
    this.#copySizes(node, arg)
    return cost
  }

  /** With the arguments, which operators that skip some count differently; without the receiver. */
  #costOverload(node: Call, overload: Overload, reference: CallReference, argCosts: readonly Span[]): CallEstimate {
    const [first, second, third] = argCosts as [Span, Span, Span]
    switch (overload.id) {
      case 'logical_and':
      case 'logical_or':
        return { cost: { min: first.min, max: addSpans(first, second).max } }
      case 'conditional': {
        const [, then, otherwise] = node.args as [Expression, Expression, Expression]
        this.#setEntrySize(node, union(this.#entrySize(then), this.#entrySize(otherwise)))
        const resultSize = unionSpans(this.#sizeOrUnknown(then), this.#sizeOrUnknown(otherwise))
        return { cost: addSpans(first, unionSpans(second, third)), resultSize }
      }
      case 'add_string':
      case 'add_bytes':
      case 'add_list': {
        const [left, right] = node.args as [Expression, Expression]
        this.#setEntrySize(node, union(this.#entrySize(left), this.#entrySize(right)))
      }
    }
    const estimate = overload.estimate?.(reference.args.map((arg) => this.#argument(arg))) ?? { cost: ONE }
    return { ...estimate, cost: addSpans(estimate.cost, ...argCosts) }
  }

  #argument(node: Expression): ArgumentEstimate {
    const type = this.#type(node)
    const items = parametersOf(type).length === 0 ? undefined : this.#path(node)?.append('@items')
    return {
      type,
      size: this.#size(node),
      elementSize: items && bound(items.maxSize(this.#rootOf)),
      literal: node.kind === 'literal' ? literalValue(node.value) : undefined,
    }
  }

  #costList(node: ListLiteral): Span {
    const cost = this.#sum(LIST_COST, node.elements)
    this.#setEntrySize(node, { container: 'list', key: ONE, value: this.#cover(node.elements) })
    return cost
  }

  #costMap(node: MapLiteral): Span {
    const keys = node.entries.map(({ key }) => key)
    const values = node.entries.map(({ value }) => value)
    const cost = this.#sum(MAP_COST, childrenOf(node))
    this.#setEntrySize(node, { container: 'map', key: this.#cover(keys), value: this.#cover(values) })
    return cost
  }

  /** One by one: a literal may have more parts than a call has room for arguments. */
  #sum(base: Span, nodes: readonly Expression[]): Span {
    return nodes.reduce((sum, node) => addSpans(sum, this.cost(node)), base)
  }

  #cover(nodes: readonly Expression[]): Span {
    return nodes.length === 0 ? FREE : nodes.map((node) => this.#sizeOrUnknown(node)).reduce(unionSpans)
  }

  #costBind(node: Comprehension): Span {
    const costs = [this.cost(node.range), this.cost(node.initial)]
    costs.push(this.#within([[node.accumulator, this.#bound(node.initial)]], () => this.cost(node.result)))
    this.#copySizes(node, node.result)
    return addSpans(...costs)
  }

  #costFold(node: Comprehension): Span {
    const costs = [this.cost(node.range), this.cost(node.initial)]
    const loop = this.#within([[node.accumulator, this.#bound(node.initial)]], () => {
      const loop = this.#within(this.#iterated(node), () => addSpans(this.cost(node.condition), this.cost(node.step)))
      costs.push(this.cost(node.result))
      return loop
    })
    const count = this.#sizeOrUnknown(node.range)
    costs.push(multiplySpans(count, loop))
    if (node.initial.kind === 'literal') this.#setSize(node, this.#size(node.initial))
    if (node.initial.kind === 'list' || node.initial.kind === 'map') {
      this.#setSize(node, count)
      this.#setEntrySize(node, this.#entrySize(node.step))
    }
    return addSpans(...costs)
  }

  #iterated({ range, variable, variable2 }: Comprehension): readonly (readonly [string, Local])[] {
    const entry = this.#entrySize(range)
    const isList = (entry?.container ?? this.#type(range).kind) === 'list'
    const local = (step: string, size: Span | undefined): Local => ({ path: this.#below(range, step), size })
    const value = (): Local => local(isList ? '@items' : '@values', entry?.value)
    if (variable2 === undefined) return [[variable, isList ? value() : local('@keys', entry?.key)]]
    const key = local(isList ? '@indices' : '@keys', entry?.key)
    return [
      [variable, key],
      [variable2, value()],
    ]
  }

  #bound(value: Expression): Local {
    return { path: this.#path(value), size: this.#size(value), entrySize: this.#entrySize(value) }
  }

  #within<T>(locals: readonly (readonly [string, Local])[], run: () => T): T {
    for (const [name, local] of locals) {
      const stack = this.#locals.get(name) ?? []
      stack.push(local)
      this.#locals.set(name, stack)
    }
    const result = run()
    for (const [name] of locals) this.#locals.get(name)?.pop()
    return result
  }

  #local(name: string): Local | undefined {
    return this.#locals.get(name)?.at(-1)
  }

  #localOf(node: Expression): Local | undefined {
    return node.kind === 'identifier' ? this.#local(node.name) : undefined
  }

  #path(node: Expression): FieldPath | undefined {
    const local = this.#localOf(node)
    return local === undefined ? this.#paths[node.id] : local.path
  }

  #below(node: Expression, step: string): FieldPath {
    return this.#path(node)?.append(step) ?? FieldPath.of(step)
  }

  #size(node: Expression): Span | undefined {
    const known = this.#sizes[node.id] ?? literalSize(node)
    if (known !== undefined) return known
    const declared = bound(this.#path(node)?.maxSize(this.#rootOf))
    if (declared !== undefined) {
      this.#sizes[node.id] = declared
      return declared
    }
    return isScalar(this.#type(node)) ? ONE : this.#localOf(node)?.size
  }

  #sizeOrUnknown(node: Expression): Span {
    return this.#size(node) ?? UNKNOWN_SIZE
  }

  #entrySize(node: Expression): EntrySize | undefined {
    return this.#entrySizes[node.id] ?? this.#localOf(node)?.entrySize
  }

  #setSize(node: Expression, size: Span | undefined): void {
    if (size !== undefined) this.#sizes[node.id] = size
  }

  #setEntrySize(node: Expression, size: EntrySize | undefined): void {
    if (size !== undefined) this.#entrySizes[node.id] = size
  }

  #copySizes(to: Expression, from: Expression): void {
    this.#setSize(to, this.#size(from))
    this.#setEntrySize(to, this.#entrySize(from))
  }

  #type(node: Expression): CelType {
    return this.#checked.types[node.id] ?? DYN
  }
}

/** A fold over nothing, which is how a macro has a variable. */
function isBind({ range, condition }: Comprehension): boolean {
  const isNever = condition.kind === 'literal' && condition.value.type === 'bool' && !condition.value.value
  return isNever && range.kind === 'list' && range.elements.length === 0
}

function union(a: EntrySize | undefined, b: EntrySize | undefined): EntrySize | undefined {
  if (a === undefined || b === undefined) return undefined
  return { container: a.container, key: unionSpans(a.key, b.key), value: unionSpans(a.value, b.value) }
}

function bound(maxSize: number | undefined): Span | undefined {
  return maxSize === undefined ? undefined : { min: 0n, max: BigInt(maxSize) }
}

function literalSize(node: Expression): Span | undefined {
  switch (node.kind) {
    case 'list':
      return fixed(node.elements.length)
    case 'map':
      return fixed(node.entries.length)
    case 'literal':
      if (node.value.type === 'string') return fixed(codePoints(node.value.value))
      return node.value.type === 'bytes' ? fixed(node.value.value.length) : ONE
    default:
      return undefined
  }
}

const SCALARS: ReadonlySet<CelType['kind']> = new Set(['bool', 'double', 'duration', 'int', 'timestamp', 'uint'])

function isScalar(type: CelType): boolean {
  const value = optionalValueOf(type)
  return value === undefined ? SCALARS.has(unwrap(type).kind) : isScalar(value)
}

/** Of everything else a field costs nothing. */
function isSelectable({ kind }: CelType): boolean {
  return kind === 'map' || kind === 'object' || kind === 'parameter'
}
