/**
 * Type-checks the tree of a CEL expression by cel-go's rules: finds the type of every node and the meaning of every
 * name and call. For a call the checker tries all overloads; an argument of type dyn matches every overload.
 */
import type { Overload } from '../library.ts'
import type {
  Call,
  Comprehension,
  Expression,
  ListLiteral,
  MapLiteral,
  MessageLiteral,
  Select,
  Tree,
} from '../syntax/ast.ts'
import type { Finding } from '../syntax/source.ts'
import {
  BOOL,
  BYTES,
  type CelType,
  describeType,
  DOUBLE,
  DYN,
  ERROR,
  formatType,
  INT,
  isSameType,
  listOf,
  mapOf,
  NULL,
  optionalOf,
  optionalValueOf,
  parameter,
  STRING,
  typeOf,
  UINT,
  withParameters,
} from '../type.ts'
import type { Checked, Reference } from './checked.ts'
import { type Declarations, type DeclaredFunction, type DeclaredOverload, messageFields } from './declarations.ts'
import { moreGeneral, Substitution } from './substitution.ts'

export interface CheckResult {
  readonly checked: Checked
  readonly findings: readonly Finding[]
}

export function check(tree: Tree, declarations: Declarations): CheckResult {
  const checker = new Checker(tree, declarations)
  checker.check(tree.root)
  const types = checker.types.map((type) => type && checker.substitution.apply(type, 'dyn'))
  return { checked: { tree, types, references: checker.references }, findings: checker.findings }
}

const LITERAL_TYPES = { null: NULL, bool: BOOL, int: INT, uint: UINT, double: DOUBLE, string: STRING, bytes: BYTES }

/** The variables that macros declare in addition to those of the environment, innermost first. */
interface Scope {
  readonly name: string
  readonly type: CelType
  readonly outer: Scope | undefined
}

class Checker {
  readonly types: (CelType | undefined)[]
  readonly references: (Reference | undefined)[]
  readonly findings: Finding[] = []
  readonly substitution = new Substitution()
  readonly #declarations: Declarations
  #scope: Scope | undefined
  #freshParameters = 0

  constructor({ nextId }: Tree, declarations: Declarations) {
    this.types = Array<CelType | undefined>(nextId).fill(undefined)
    this.references = Array<Reference | undefined>(nextId).fill(undefined)
    this.#declarations = declarations
  }

  check(node: Expression): CelType {
    const type = this.#typeOf(node)
    this.types[node.id] = type
    return type
  }

  #typeOf(node: Expression): CelType {
    switch (node.kind) {
      case 'literal':
        return LITERAL_TYPES[node.value.type]
      case 'identifier':
        return this.#resolve(node, node.name) ?? this.#undeclared(node, node.name)
      case 'select':
        return this.#select(node)
      case 'call':
        return this.#call(node)
      case 'list':
        return this.#list(node)
      case 'map':
        return this.#map(node)
      case 'message':
        return this.#message(node)
      case 'comprehension':
        return this.#comprehension(node)
    }
  }

  /** The type of a name, recorded as the meaning of the node; undefined if the name is unknown. */
  #resolve(node: Expression, written: string): CelType | undefined {
    const name = withoutDot(written)
    const variable = this.#variable(name)
    const type = variable === undefined ? this.#declarations.typeNamed(name) : undefined
    if (variable !== undefined) this.references[node.id] = { kind: 'variable', name }
    if (type !== undefined) this.references[node.id] = { kind: 'type', type }
    return variable ?? (type && typeOf(type))
  }

  #variable(name: string): CelType | undefined {
    for (let scope = this.#scope; scope !== undefined; scope = scope.outer) if (scope.name === name) return scope.type
    return this.#declarations.variables.get(name)
  }

  #undeclared(node: Expression, name: string): CelType {
    return this.#fail(node, `undeclared reference to '${name}' (in container '')`)
  }

  #select(node: Select): CelType {
    const name = node.isTest ? undefined : this.#qualifiedName(node)
    const resolved = name === undefined ? undefined : this.#resolve(node, name)
    if (resolved !== undefined) return resolved
    const type = this.#field(node, node.operand, node.field)
    return node.isTest ? BOOL : this.substitution.apply(type)
  }

  /** `a.b.c` of selections that may be one name. */
  #qualifiedName(node: Expression): string | undefined {
    const fields: string[] = []
    let head = node
    while (head.kind === 'select' && !head.isTest) {
      fields.push(head.field)
      head = head.operand
    }
    if (head.kind !== 'identifier' || !this.#declarations.isNamespace(withoutDot(head.name))) return undefined
    return [head.name, ...fields.reverse()].join('.')
  }

  /** Of an optional, the field is optional too. */
  #field(node: Expression, operand: Expression, field: string, isOptional = false): CelType {
    const type = this.substitution.apply(this.check(operand))
    const value = optionalValueOf(type)
    const result = this.#fieldOf(node, value ?? type, field)
    return isOptional || value !== undefined ? optionalOf(result) : result
  }

  #fieldOf(node: Expression, type: CelType, field: string): CelType {
    switch (type.kind) {
      case 'map':
        return type.value
      case 'object':
        return type.field(field)?.type ?? this.#fail(node, `undefined field '${field}'`)
      case 'parameter':
        // So that it is not bound to something else later.
        this.substitution.isAssignable(DYN, type)
        return DYN
      case 'dyn':
      case 'error':
        return DYN
      default:
        // Kubernetes' own types are messages to upstream, but unknown ones.
        if (type.kind === 'opaque' && type.name.startsWith('kubernetes.')) {
          return this.#fail(node, `unexpected failed resolution of '${type.name}'`)
        }
        this.#fail(node, `type '${formatType(type)}' does not support field selection`)
        return DYN
    }
  }

  #call(node: Call): CelType {
    if (node.function === '_?._') return this.#optionalSelect(node)
    for (const arg of node.args) this.check(arg)
    if (node.target === undefined) return this.#callFunction(node, node.function, node.args)
    const prefix = this.#qualifiedName(node.target)
    const qualified = prefix === undefined ? undefined : `${prefix}.${node.function}`
    if (qualified !== undefined && this.#function(qualified) !== undefined) {
      return this.#callFunction(node, qualified, node.args)
    }
    this.check(node.target)
    return this.#callFunction(node, node.function, [node.target, ...node.args])
  }

  #function(name: string): DeclaredFunction | undefined {
    return this.#declarations.functions.get(withoutDot(name))
  }

  #callFunction(node: Call, name: string, args: readonly Expression[]): CelType {
    const declared = this.#function(name)
    if (declared === undefined) return this.#undeclared(node, name)
    const isMember = args.length > node.args.length
    const matching = declared.overloads.filter(({ overload }) => overload.isMember === isMember)
    if (name === '_&&_' || name === '_||_') return this.#logic(node, matching)
    const types = args.map((arg) => this.#known(arg))
    const overloads: Overload[] = []
    let result: CelType | undefined
    for (const candidate of matching) {
      const type = this.#try(candidate, types)
      if (type === undefined) continue
      overloads.push(candidate.overload)
      if (result === undefined) result = type
      else if (result.kind !== 'dyn' && !isSameType(type, result)) result = DYN
    }
    if (result === undefined) return this.#noOverload(node, declared.name, isMember, types)
    this.references[node.id] = { kind: 'call', name: declared.name, overloads, args }
    return result
  }

  /** Also of a chain of many; each argument that is not a bool is named. */
  #logic(node: Call, [candidate]: readonly DeclaredOverload[]): CelType {
    const wrong = node.args.filter((arg) => !this.substitution.isAssignable(this.#known(arg), BOOL))
    for (const arg of wrong) this.#mismatch(arg, BOOL, this.#known(arg))
    if (wrong.length > 0 || candidate === undefined) return ERROR
    const { overload } = candidate
    this.references[node.id] = { kind: 'call', name: node.function, overloads: [overload], args: node.args }
    return BOOL
  }

  /** The result of the overload, if the arguments fit; its parameters are new ones in every call. */
  #try({ overload, parameters }: DeclaredOverload, types: readonly CelType[]): CelType | undefined {
    if (overload.args.length !== types.length) return undefined
    if (parameters.length === 0)
      return this.substitution.areAssignable(types, overload.args) ? overload.result : undefined
    const fresh = new Map(parameters.map((name) => [name, this.#freshParameter()]))
    const instantiate = (type: CelType): CelType =>
      type.kind === 'parameter' ? (fresh.get(type.name) ?? type) : withParameters(type, instantiate)
    if (!this.substitution.areAssignable(types, overload.args.map(instantiate))) return undefined
    return this.substitution.apply(instantiate(overload.result))
  }

  #noOverload(node: Call, name: string, isMember: boolean, types: readonly CelType[]): CelType {
    const texts = types.map((type) => formatType(this.substitution.apply(type, 'dyn')))
    const receiver = isMember ? `${texts.shift()}.` : ''
    const signature = `${receiver}(${texts.join(', ')})`
    return this.#fail(node, `found no matching overload for '${name}' applied to '${signature}'`)
  }

  #optionalSelect(node: Call): CelType {
    const [operand, field] = node.args as [Expression, Expression]
    const name = field.kind === 'literal' && field.value.type === 'string' ? field.value.value : ''
    const type = this.#field(node, operand, name, true)
    const overloads = this.#function(node.function)?.overloads.map(({ overload }) => overload) ?? []
    this.references[node.id] = { kind: 'call', name: node.function, overloads, args: node.args }
    this.types[field.id] = STRING
    return this.substitution.apply(type)
  }

  #list(node: ListLiteral): CelType {
    let element: CelType | undefined
    node.elements.forEach((child, i) => {
      const type = this.check(child)
      element = join(this.substitution, element, node.optional.has(i) ? this.#optionalValue(child, type) : type)
    })
    return listOf(element ?? this.#freshParameter())
  }

  #map(node: MapLiteral): CelType {
    let key: CelType | undefined
    let value: CelType | undefined
    for (const entry of node.entries) {
      key = join(this.substitution, key, this.check(entry.key))
      const type = this.check(entry.value)
      value = join(this.substitution, value, entry.isOptional ? this.#optionalValue(entry.value, type) : type)
    }
    return mapOf(key ?? this.#freshParameter(), value ?? this.#freshParameter())
  }

  /** Of what is written `?e`. */
  #optionalValue(node: Expression, type: CelType): CelType {
    const value = optionalValueOf(type)
    if (value !== undefined) return value
    if (type.kind !== 'dyn') this.#mismatch(node, optionalOf(type), type)
    return type
  }

  #message(node: MessageLiteral): CelType {
    const name = withoutDot(node.typeName)
    const variable = this.#variable(name)
    const type = variable === undefined ? this.#declarations.typeNamed(name) : ERROR
    if (type === undefined) return this.#undeclared(node, node.typeName)
    const fields = messageFields(name, type)
    if (variable !== undefined) this.#fail(node, `'${describeType(variable)}' is not a type`)
    else if (fields === undefined) this.#fail(node, `'${describeType(type)}' is not a message type`)
    for (const field of node.fields) {
      const problem = fields ? `undefined field '${field.field}'` : `unexpected failed resolution of '${name}'`
      const expected = fields?.(field.field) ?? this.#fail(field, problem)
      const given = this.check(field.value)
      const value = field.isOptional ? this.#optionalValue(field.value, given) : given
      if (!this.substitution.isAssignable(expected, value)) {
        const [wanted, found] = [formatType(expected), formatType(value)]
        this.#fail(field, `expected type of field '${field.field}' is '${wanted}' but provided type is '${found}'`)
      }
    }
    return fields === undefined ? ERROR : type
  }

  #comprehension(node: Comprehension): CelType {
    const range = this.substitution.apply(this.check(node.range))
    const accumulated = this.check(node.initial)
    const [first, second] = this.#iterated(node, range)
    const outer = this.#scope
    const around = { name: node.accumulator, type: accumulated, outer }
    this.#scope = { name: node.variable, type: first, outer: around }
    if (node.variable2 !== undefined) this.#scope = { name: node.variable2, type: second, outer: this.#scope }
    this.#expect(node.condition, BOOL)
    this.#expect(node.step, accumulated)
    this.#scope = around
    const result = this.check(node.result)
    this.#scope = outer
    return this.substitution.apply(result)
  }

  /** The types of the variables: with one, the elements or the keys; with two, also the values. */
  #iterated({ range: node, variable2 }: Comprehension, range: CelType): readonly [CelType, CelType] {
    switch (range.kind) {
      case 'list':
        return variable2 === undefined ? [range.element, ERROR] : [INT, range.element]
      case 'map':
        return [range.key, range.value]
      case 'dyn':
      case 'error':
      case 'parameter':
        this.substitution.isAssignable(DYN, range)
        return [DYN, DYN]
      default: {
        const type = formatType(range)
        const message = `expression of type '${type}' cannot be range of a comprehension (must be list, map, or dynamic)`
        return [this.#fail(node, message), ERROR]
      }
    }
  }

  #expect(node: Expression, expected: CelType): void {
    const found = this.check(node)
    if (!this.substitution.isAssignable(expected, found)) this.#mismatch(node, expected, found)
  }

  #mismatch(node: Expression, expected: CelType, found: CelType): void {
    this.#fail(node, `expected type '${formatType(expected)}' but found '${formatType(found)}'`)
  }

  /** As found out so far, of a node already checked. */
  #known(node: Expression): CelType {
    return this.types[node.id] ?? ERROR
  }

  #freshParameter(): CelType {
    return parameter(`_var${this.#freshParameters++}`)
  }

  #fail({ at }: { readonly at: number }, message: string): CelType {
    this.findings.push({ at, message })
    return ERROR
  }
}

/** Elements of a literal may differ here: a later validation checks them, except for arguments of `format`. */
function join(substitution: Substitution, previous: CelType | undefined, current: CelType): CelType {
  if (previous === undefined) return current
  return substitution.isAssignable(previous, current) ? moreGeneral(previous, current) : DYN
}

/** A leading dot says that the name is whole; there are no containers here that would complete it. */
function withoutDot(name: string): string {
  return name.startsWith('.') ? name.slice(1) : name
}
