/** Executes a Go template. Semantics and error texts are those of text/template. */
import { goQuote } from '#lib/go/text.ts'

import { CALLEE, FUNCTIONS, type GoFunction, type Parameter } from './functions.ts'
import { sortedKeys } from './go-value.ts'
import {
  type Branch,
  type Command,
  type Expression,
  expressionText,
  type List,
  type Node,
  nodeText,
  type Pipeline,
} from './node.ts'
import { TemplateError } from './parse.ts'
import {
  element,
  GoFloat,
  inside,
  intOf,
  isMap,
  isTrue,
  NOTHING,
  type Reference,
  referTo,
  show,
  typeName,
  typeOf,
} from './reference.ts'

export interface Execution {
  readonly name: string
  readonly source: string
  readonly trees: ReadonlyMap<string, List>
  /** A missing key of a map is an error. */
  readonly missingKeyFails: boolean
  /** Receives the output, including output before an error. */
  write(text: string): void
}

const MAX_DEPTH = 100_000
/** The depth limit for nested templates, well below the stack limit. */
const MAX_CALLS = 1_000

/** Throws TemplateError. */
export function execute(execution: Execution, data: unknown): void {
  const dot = referTo(data)
  const tree = execution.trees.get(execution.name)
  if (tree === undefined) {
    const name = execution.name
    throw new TemplateError(`template: ${name}: ${goQuote(name)} is an incomplete or empty template`)
  }
  new State(execution, execution.name, 0).run(dot, tree)
}

interface Variable {
  readonly name: string
  value: Reference
}

/** The result of the previous command in a pipeline, if there is one. */
type Final = Reference | undefined

type Leave = 'break' | 'continue' | undefined

class State {
  readonly #execution: Execution
  readonly #name: string
  readonly #depth: number
  #variables: Variable[] = []
  /** The node that messages refer to. */
  #node: { at: number; text(): string } | undefined

  constructor(execution: Execution, name: string, depth: number) {
    this.#execution = execution
    this.#name = name
    this.#depth = depth
  }

  run(dot: Reference, tree: List): void {
    this.#variables = [{ name: '$', value: dot }]
    this.#walk(dot, tree)
  }

  #at(node: Expression | Command): void {
    this.#node = { at: node.at, text: () => expressionText(node) }
  }

  #fail(message: string): never {
    const node = this.#node
    if (node === undefined) throw new TemplateError(`template: ${this.#name}: ${message}`)
    const before = this.#execution.source.slice(0, node.at)
    const line = before.split('\n').length
    const column = Buffer.byteLength(before.slice(before.lastIndexOf('\n') + 1))
    const position = `${this.#execution.name}:${line}:${column}`
    throw new TemplateError(`template: ${position}: executing ${goQuote(this.#name)} at <${node.text()}>: ${message}`)
  }

  #walk(dot: Reference, node: Node): Leave {
    this.#node = { at: node.at, text: () => nodeText(node) }
    switch (node.type) {
      case 'text':
        this.#execution.write(node.text)
        return undefined
      case 'action': {
        const value = this.#pipeline(dot, node.pipe)
        if (node.pipe.variables.length === 0) this.#execution.write(printed(value))
        return undefined
      }
      case 'list':
        return this.#walkList(dot, node)
      case 'if':
      case 'with':
        return this.#walkChoice(dot, node)
      case 'range':
        return this.#walkRange(dot, node)
      case 'template':
        return this.#walkTemplate(dot, node)
      default:
        return node.type
    }
  }

  #walkList(dot: Reference, { nodes }: List): Leave {
    for (const node of nodes) {
      const leave = this.#walk(dot, node)
      if (leave !== undefined) return leave
    }
    return undefined
  }

  #walkChoice(dot: Reference, { type, pipe, list, otherwise }: Branch): Leave {
    const mark = this.#variables.length
    const value = this.#pipeline(dot, pipe)
    const chosen = isTrue(value.value) ? list : otherwise
    const inner = chosen === list && type === 'with' ? value : dot
    const leave = chosen === undefined ? undefined : this.#walk(inner, chosen)
    this.#variables.length = mark
    return leave
  }

  #walkRange(dot: Reference, node: Branch): Leave {
    const outer = this.#variables.length
    const value = this.#pipeline(dot, node.pipe)
    const rounds = this.#roundsOf(value, node.pipe)
    const mark = this.#variables.length
    for (const { index, item } of rounds) {
      this.#setRangeVariables(node.pipe, index, item)
      const leave = this.#walk(item, node.list)
      this.#variables.length = mark
      if (leave === 'break') break
    }
    const leave = rounds.length === 0 && node.otherwise !== undefined ? this.#walk(dot, node.otherwise) : undefined
    this.#variables.length = outer
    return leave
  }

  #roundsOf({ value }: Reference, pipe: Pipeline): { index: Reference; item: Reference }[] {
    if (value === null || value === undefined) return []
    if (Array.isArray(value)) {
      return value.map((item: unknown, at) => ({ index: referTo(BigInt(at)), item: element(item) }))
    }
    if (isMap(value)) {
      return sortedKeys(value).map((key) => ({ index: referTo(key), item: element(value[key]) }))
    }
    const count = intOf(value)
    if (count === undefined) return this.#fail(`range can't iterate over ${show(value)}`)
    if (pipe.variables.length > 1) this.#fail(`can't use ${show(value)} to iterate over more than one variable`)
    return Array.from({ length: Number(count < 0n ? 0n : count) }, (_, at) => ({
      index: NOTHING,
      item: referTo(BigInt(at)),
    }))
  }

  #setRangeVariables({ variables, isAssign }: Pipeline, index: Reference, item: Reference): void {
    const values = variables.length > 1 ? [index, item] : [item]
    for (const [at, name] of variables.entries()) {
      const value = values[at] as Reference
      if (isAssign) this.#assign(name, value)
      else (this.#variables[this.#variables.length - variables.length + at] as Variable).value = value
    }
  }

  #walkTemplate(dot: Reference, node: Extract<Node, { type: 'template' }>): undefined {
    const tree = this.#execution.trees.get(node.name)
    if (tree === undefined) this.#fail(`template ${goQuote(node.name)} not defined`)
    if (this.#depth >= MAX_CALLS) this.#fail(`exceeded maximum template depth (${MAX_DEPTH})`)
    const inner = node.pipe === undefined ? NOTHING : this.#pipeline(dot, node.pipe)
    new State(this.#execution, node.name, this.#depth + 1).run(inner, tree)
    return undefined
  }

  #assign(name: string, value: Reference): void {
    const variable = this.#variables.findLast((each) => each.name === name)
    if (variable === undefined) this.#fail(`undefined variable: ${name}`)
    variable.value = value
  }

  #pipeline(dot: Reference, pipe: Pipeline): Reference {
    this.#at(pipe)
    let value: Final
    for (const command of pipe.commands) value = inside(this.#command(dot, command, value))
    const result = value ?? NOTHING
    for (const name of pipe.variables) {
      if (pipe.isAssign) this.#assign(name, result)
      else this.#variables.push({ name, value: result })
    }
    return result
  }

  #command(dot: Reference, command: Command, final: Final): Reference {
    const first = command.args[0] as Expression
    switch (first.type) {
      case 'field':
      case 'chain':
      case 'variable':
        return this.#path(dot, first, { args: command.args, final })
      case 'identifier':
        this.#at(first)
        return this.#call(dot, first, { node: command, args: command.args.slice(1), final })
      case 'pipe':
        this.#refuseArguments(command.args, final)
        return this.#pipeline(dot, first)
      default:
        this.#at(first)
        this.#refuseArguments(command.args, final)
        if (first.type === 'nil') this.#fail('nil is not a command')
        return first.type === 'dot' ? dot : literal(first)
    }
  }

  #refuseArguments(args: readonly Expression[], final: Final): void {
    if (args.length > 1 || final !== undefined) {
      this.#fail(`can't give argument to non-function ${expressionText(args[0] as Expression)}`)
    }
  }

  #path(dot: Reference, node: Extract<Expression, { names: readonly string[] }>, given: CallArguments): Reference {
    this.#at(node)
    const { args = [], final } = given
    if (node.type === 'variable') {
      const value = this.#variables.findLast(({ name }) => name === node.names[0])?.value
      if (value === undefined) return this.#fail(`undefined variable: ${node.names[0]}`)
      if (node.names.length === 1) {
        this.#refuseArguments(args.length === 0 ? [node] : args, final)
        return value
      }
      return this.#fields(value, node.names.slice(1), args.length > 1 || final !== undefined)
    }
    const start = node.type === 'field' ? dot : this.#chainStart(dot, node)
    return this.#fields(start, node.names, args.length > 1 || final !== undefined)
  }

  #chainStart(dot: Reference, chain: Extract<Expression, { type: 'chain' }>): Reference {
    if (chain.node.type === 'nil') this.#fail(`indirection through explicit nil in ${expressionText(chain)}`)
    return this.#argument(dot, 'anything', chain.node)
  }

  #fields(start: Reference, names: readonly string[], hasArguments: boolean): Reference {
    let value = start
    for (const [at, name] of names.entries()) {
      value = this.#field(value, name, hasArguments && at === names.length - 1)
    }
    return value
  }

  #field(receiver: Reference, name: string, hasArguments: boolean): Reference {
    const { value } = receiver
    const fails = this.#execution.missingKeyFails
    if (value === undefined) {
      if (fails) this.#fail(`nil data; no entry for key ${goQuote(name)}`)
      return NOTHING
    }
    if (value === null) this.#fail(`nil pointer evaluating ${typeOf(receiver)}.${name}`)
    if (!isMap(value)) {
      return this.#fail(`can't evaluate field ${name} in type ${typeOf(receiver)}`)
    }
    if (hasArguments) this.#fail(`${name} is not a method but has arguments`)
    if (Object.hasOwn(value, name)) return element(value[name])
    if (fails) this.#fail(`map has no entry for key ${goQuote(name)}`)
    return NOTHING
  }

  #call(
    dot: Reference,
    { name }: { readonly name: string },
    given: CallArguments & { node: Expression | Command },
  ): Reference {
    const fun = FUNCTIONS.get(name)
    if (fun === undefined) return this.#fail(`${goQuote(name)} is not a defined function`)
    const { args = [], final, node } = given
    this.#checkCount(name, fun, args.length, final)
    if (name === 'and' || name === 'or') return this.#shortCircuit(dot, name, given)
    const values = args.map((arg, at) => this.#argument(dot, parameterAt(fun, at), arg))
    if (final !== undefined) values.push(this.#validated(final, parameterAt(fun, args.length)))
    try {
      return fun.call(values)
    } catch (error) {
      if (error instanceof TemplateError) throw error
      this.#at(node)
      const callee = args[0] === undefined ? show(final?.value) : expressionText(args[0])
      return this.#fail(`error calling ${name}: ${(error as Error).message.replace(CALLEE, () => callee)}`)
    }
  }

  #checkCount(name: string, { fixed, rest }: GoFunction, given: number, final: Final): void {
    const count = given + (final === undefined ? 0 : 1)
    if (rest !== undefined && count < fixed.length) {
      this.#fail(`wrong number of args for ${name}: want at least ${fixed.length} got ${given}`)
    }
    if (rest === undefined && count !== fixed.length) {
      this.#fail(`wrong number of args for ${name}: want ${fixed.length} got ${count}`)
    }
  }

  #shortCircuit(dot: Reference, name: 'and' | 'or', { args = [], final }: CallArguments): Reference {
    let value = NOTHING
    for (const arg of args) {
      value = this.#argument(dot, 'value', arg)
      if (isTrue(value.value) === (name === 'or')) return value
    }
    return final === undefined ? value : this.#validated(final, 'value')
  }

  #argument(dot: Reference, parameter: Parameter, node: Expression): Reference {
    this.#at(node)
    switch (node.type) {
      case 'dot':
        return this.#validated(dot, parameter)
      case 'nil':
        if (parameter === 'string') this.#fail('cannot assign nil to string')
        return parameter === 'value' ? NOTHING : element(null)
      case 'field':
      case 'variable':
      case 'chain':
        return this.#validated(this.#path(dot, node, {}), parameter)
      case 'pipe':
        return this.#validated(this.#pipeline(dot, node), parameter)
      case 'identifier':
        return this.#validated(this.#call(dot, node, { node }), parameter)
      default:
        if (parameter === 'string' && node.type !== 'string') {
          this.#fail(`expected string; found ${expressionText(node)}`)
        }
        return literal(node)
    }
  }

  #validated(reference: Reference, parameter: Parameter): Reference {
    if (reference.value === undefined) {
      if (parameter === 'string') this.#fail('invalid value; expected string')
      return parameter === 'any' ? element(null) : NOTHING
    }
    if (parameter !== 'string' || typeof reference.value === 'string') return reference
    const type = reference.value === null ? typeOf(reference) : typeName(reference.value)
    return this.#fail(`wrong type for value; expected string; got ${type}`)
  }
}

interface CallArguments {
  readonly args?: readonly Expression[]
  readonly final?: Final
}

function literal(node: Extract<Expression, { type: 'bool' | 'number' | 'string' }>): Reference {
  return referTo(typeof node.value === 'number' ? new GoFloat(node.value) : node.value)
}

function parameterAt({ fixed, rest }: GoFunction, at: number): Parameter {
  return fixed[at] ?? rest ?? 'any'
}

function printed({ value }: Reference): string {
  return value === undefined || value === null ? '<no value>' : show(value)
}
