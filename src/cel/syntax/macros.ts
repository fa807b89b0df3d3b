/**
 * Expands CEL macros: calls that the parser rewrites. The expansion equals upstream's node by node, because cost is
 * counted by node. All added nodes have the position of the macro's parenthesis.
 */
import type { Comprehension, Expression, LiteralValue, Offset } from './ast.ts'

/** Of every comprehension that folds; cannot be written in an expression. */
export const ACCUMULATOR = '@result'

/** The former name of the accumulator, which expressions still may not use. */
const RESERVED_VARIABLE = '__result__'

/** Of comprehensions that only bind a variable. */
const UNUSED = '#unused'

export interface MacroCall {
  readonly at: Offset
  readonly target: Expression | undefined
  readonly args: readonly Expression[]
  /** The next free id. */
  readonly newId: () => number
  /** Whether `cel.bind` is one. */
  readonly hasBind?: boolean
}

/** Of macro arguments that have not the right form. */
export class MacroError extends Error {
  readonly at: Offset
  constructor(at: Offset, message: string) {
    super(message)
    this.at = at
  }
}

type Expand = (build: Builder, args: readonly Expression[], target: Expression) => Expression

/** The macro that a call is, if it is one; throws MacroError. */
export function expandMacro(name: string, call: MacroCall): Expression | undefined {
  const table = call.target === undefined ? GLOBAL_MACROS : MEMBER_MACROS
  const isBind =
    call.hasBind === true && name === 'bind' && call.target?.kind === 'identifier' && call.target.name === 'cel'
  const expand = isBind && call.args.length === 3 ? bind : table[`${name}/${call.args.length}`]
  if (expand === undefined) return undefined
  // Global macros never look at the target.
  return expand(new Builder(call), call.args, call.target as Expression)
}

const GLOBAL_MACROS: Readonly<Record<string, Expand>> = {
  'has/1': (build, args) => {
    const [selection] = args as [Expression]
    if (selection.kind !== 'select') throw new MacroError(selection.at, 'invalid argument to has() macro')
    return { ...build.node(), kind: 'select', operand: selection.operand, field: selection.field, isTest: true }
  },
}

const MEMBER_MACROS: Readonly<Record<string, Expand>> = {
  'all/2': one('simple', all),
  'all/3': two(all),
  'exists/2': one('simple', exists),
  'exists/3': two(exists),
  'exists_one/2': one('simple', existsOne),
  'exists_one/3': two(existsOne),
  'existsOne/3': two(existsOne),
  'map/2': one('identifier', collect),
  'map/3': one('identifier', collect),
  'filter/2': one('identifier', filter),
  'transformList/3': two(collect),
  'transformList/4': two(collect),
  'transformMap/3': two(insertValue),
  'transformMap/4': two(insertValue),
  'transformMapEntry/3': two(insertEntry),
  'transformMapEntry/4': two(insertEntry),
  'optMap/2': (build, args, target) =>
    ifPresent(build, target, build.call('optional.of', bindValue(build, 'optMap', args, target))),
  'optFlatMap/2': (build, args, target) => ifPresent(build, target, bindValue(build, 'optFlatMap', args, target)),
  'sortBy/2': sortBy,
}

/** `cel.bind(name, value, result)`. */
function bind(build: Builder, args: readonly Expression[]): Expression {
  const [variable, value, result] = args as [Expression, Expression, Expression]
  return build.bind(nameOf(variable, 'cel.bind() variable names must be simple identifiers'), value, result)
}

/** The parts of a comprehension that differ between macros; the range and the variables are the same in all. */
type Fold = Pick<Comprehension, 'initial' | 'condition' | 'step' | 'result'>

type MakeFold = (build: Builder, args: readonly Expression[], variables: readonly Expression[]) => Fold

/** Of macros with one variable; the two wordings of the same complaint are upstream's. */
function one(wording: 'simple' | 'identifier', fold: MakeFold): Expand {
  const complaint = wording === 'simple' ? 'argument must be a simple name' : 'argument is not an identifier'
  return (build, args, target) => {
    const [variable] = args as [Expression]
    const name = nameOf(variable, complaint)
    refuseAccumulator(variable, name)
    return build.comprehension(target, [name], fold(build, args.slice(1), [variable]))
  }
}

function two(fold: MakeFold): Expand {
  return (build, args, target) => {
    const [first, second] = args as [Expression, Expression]
    const names = [first, second].map((variable) => nameOf(variable, 'argument must be a simple name'))
    const [key, value] = names as [string, string]
    if (key === value) throw new MacroError(second.at, `duplicate variable name: ${key}`)
    refuseAccumulator(first, key)
    refuseAccumulator(second, value)
    return build.comprehension(target, names, fold(build, args.slice(2), [first, second]))
  }
}

function nameOf(variable: Expression, complaint: string): string {
  if (variable.kind !== 'identifier') throw new MacroError(variable.at, complaint)
  return variable.name
}

function refuseAccumulator(variable: Expression, name: string): void {
  if (name === RESERVED_VARIABLE || name === ACCUMULATOR) {
    throw new MacroError(variable.at, 'iteration variable overwrites accumulator variable')
  }
}

function all(build: Builder, [predicate]: readonly Expression[]): Fold {
  return {
    initial: build.literal({ type: 'bool', value: true }),
    condition: build.call('@not_strictly_false', build.accumulated()),
    step: build.call('_&&_', build.accumulated(), predicate as Expression),
    result: build.accumulated(),
  }
}

function exists(build: Builder, [predicate]: readonly Expression[]): Fold {
  return {
    initial: build.literal({ type: 'bool', value: false }),
    condition: build.call('@not_strictly_false', build.call('!_', build.accumulated())),
    step: build.call('_||_', build.accumulated(), predicate as Expression),
    result: build.accumulated(),
  }
}

function existsOne(build: Builder, [predicate]: readonly Expression[]): Fold {
  const more = build.call('_+_', build.accumulated(), build.literal({ type: 'int', value: 1n }))
  return {
    initial: build.literal({ type: 'int', value: 0n }),
    condition: build.literal({ type: 'bool', value: true }),
    step: build.call('_?_:_', predicate as Expression, more, build.accumulated()),
    result: build.call('_==_', build.accumulated(), build.literal({ type: 'int', value: 1n })),
  }
}

/** `[transform]`, or `[predicate, transform]`. */
function collect(build: Builder, args: readonly Expression[]): Fold {
  return gather(build, args, (element) => build.call('_+_', build.accumulated(), build.list([element])))
}

function filter(build: Builder, args: readonly Expression[], variables: readonly Expression[]): Fold {
  return collect(build, [...args, ...variables])
}

function insertValue(build: Builder, args: readonly Expression[], [key]: readonly Expression[]): Fold {
  const name = nameOf(key as Expression, '')
  const fold = gather(build, args, (value) =>
    build.call('cel.@mapInsert', build.accumulated(), build.identifier(name), value),
  )
  return { ...fold, initial: build.map() }
}

function insertEntry(build: Builder, args: readonly Expression[]): Fold {
  const fold = gather(build, args, (entry) => build.call('cel.@mapInsert', build.accumulated(), entry))
  return { ...fold, initial: build.map() }
}

function gather(build: Builder, args: readonly Expression[], add: (element: Expression) => Expression): Fold {
  const added = add(args.at(-1) as Expression)
  const isFiltered = args.length === 2
  return {
    initial: build.list([]),
    condition: build.literal({ type: 'bool', value: true }),
    step: isFiltered ? build.call('_?_:_', args[0] as Expression, added, build.accumulated()) : added,
    result: build.accumulated(),
  }
}

/** The target is evaluated twice, as upstream does: once to ask, once for the value. */
function ifPresent(build: Builder, target: Expression, present: Expression): Expression {
  return build.call('_?_:_', build.memberCall('hasValue', target), present, build.call('optional.none'))
}

function bindValue(build: Builder, macro: string, args: readonly Expression[], target: Expression): Expression {
  const [variable, body] = args as [Expression, Expression]
  const name = nameOf(variable, `${macro}() variable name must be a simple identifier`)
  return build.bind(name, build.memberCall('value', build.copy(target)), body)
}

const SORTABLE: ReadonlySet<Expression['kind']> = new Set(['list', 'select', 'identifier', 'comprehension', 'call'])

function sortBy(build: Builder, args: readonly Expression[], target: Expression): Expression {
  if (!SORTABLE.has(target.kind)) {
    const message = 'sortBy can only be applied to a list, identifier, comprehension, call or select expression'
    throw new MacroError(target.at, message)
  }
  const input = '@__sortBy_input__'
  const keys = one('identifier', collect)(build, args, build.identifier(input))
  return build.bind(input, target, build.memberCall('@sortByAssociatedKeys', build.identifier(input), keys))
}

/** Makes the nodes of one expansion. */
class Builder {
  readonly #call: MacroCall

  constructor(call: MacroCall) {
    this.#call = call
  }

  node(): { id: number; at: Offset } {
    return { id: this.#call.newId(), at: this.#call.at }
  }

  literal(value: LiteralValue): Expression {
    return { ...this.node(), kind: 'literal', value }
  }

  identifier(name: string): Expression {
    return { ...this.node(), kind: 'identifier', name }
  }

  accumulated(): Expression {
    return this.identifier(ACCUMULATOR)
  }

  call(name: string, ...args: Expression[]): Expression {
    return { ...this.node(), kind: 'call', function: name, target: undefined, args }
  }

  memberCall(name: string, target: Expression, ...args: Expression[]): Expression {
    return { ...this.node(), kind: 'call', function: name, target, args }
  }

  list(elements: readonly Expression[]): Expression {
    return { ...this.node(), kind: 'list', elements, optional: new Set() }
  }

  map(): Expression {
    return { ...this.node(), kind: 'map', entries: [] }
  }

  comprehension(range: Expression, [variable, variable2]: readonly string[], fold: Fold): Expression {
    const variables = { variable: variable as string, variable2, accumulator: ACCUMULATOR }
    return { ...this.node(), kind: 'comprehension', range, ...variables, ...fold }
  }

  /** `result` with a variable: a fold over nothing whose accumulator it is. */
  bind(name: string, value: Expression, result: Expression): Expression {
    const none = { range: this.list([]), variable: UNUSED, variable2: undefined }
    const condition = this.literal({ type: 'bool', value: false })
    const fold = { accumulator: name, initial: value, condition, step: this.identifier(name), result }
    return { ...this.node(), kind: 'comprehension', ...none, ...fold }
  }

  /** With new ids. */
  copy(expression: Expression): Expression {
    const id = this.#call.newId()
    switch (expression.kind) {
      case 'literal':
      case 'identifier':
        return { ...expression, id }
      case 'select':
        return { ...expression, id, operand: this.copy(expression.operand) }
      case 'call':
        return {
          ...expression,
          id,
          target: expression.target && this.copy(expression.target),
          args: expression.args.map((arg) => this.copy(arg)),
        }
      case 'list':
        return { ...expression, id, elements: expression.elements.map((element) => this.copy(element)) }
      case 'map':
        return {
          ...expression,
          id,
          entries: expression.entries.map((entry) => ({
            ...entry,
            id: this.#call.newId(),
            key: this.copy(entry.key),
            value: this.copy(entry.value),
          })),
        }
      case 'message':
        return {
          ...expression,
          id,
          fields: expression.fields.map((field) => ({
            ...field,
            id: this.#call.newId(),
            value: this.copy(field.value),
          })),
        }
      case 'comprehension':
        return {
          ...expression,
          id,
          range: this.copy(expression.range),
          initial: this.copy(expression.initial),
          condition: this.copy(expression.condition),
          step: this.copy(expression.step),
          result: this.copy(expression.result),
        }
    }
  }
}
