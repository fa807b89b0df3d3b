/**
 * Compiles the checked tree of a CEL expression to a program: each node becomes a closure that is specialized for the
 * types of its operands. Constants are evaluated while planning, as upstream does.
 */
import type { CallReference, Checked, Reference } from '../checking/checked.ts'
import { beginEffort, endEffort } from '../effort.ts'
import type { Budget, Program, Variables } from '../program.ts'
import type { Comprehension, Expression, Select } from '../syntax/ast.ts'
import { literalValue } from '../syntax/literals.ts'
import type { CelType } from '../type.ts'
import { CelBudgetError, CelError, Failure, type Result, type Value } from '../value.ts'
import { adapterOf } from '../values/typed.ts'
import { attributeOf, isKey, unusable } from './attribute.ts'
import { planBuiltIn } from './built-in.ts'
import {
  attributePlan,
  constantPlan,
  type Attribute,
  OVER_LIMIT,
  type Evaluate,
  type Frame,
  type Plan,
  type Step,
} from './frame.ts'
import { listLiteral, mapLiteral, messageLiteral } from './literal.ts'
import { foldPlan, quantifierOf, quantifierPlan, readAccumulator } from './macro.ts'
import { typeValueOf } from './type-value.ts'

/** Throws CelError with upstream's text where constant parts already fail. */
export function plan(checked: Checked): Program {
  const planner = new Planner(checked)
  const { evaluate } = planner.plan(checked.tree.root)
  const slots = planner.slotCount
  return {
    evaluate(variables: Variables, budget: Budget): Value {
      const frame: Frame = { variables, slots: Array<Result>(slots), cost: 0, limit: budget.limit }
      beginEffort()
      try {
        const result = evaluate(frame)
        if (result instanceof Failure) throw new CelError(result.message)
        return result
      } catch (error) {
        // Values nested so deep that looking at them fills the stack.
        throw error instanceof RangeError ? new CelBudgetError(OVER_LIMIT, { cause: error }) : error
      } finally {
        endEffort()
        budget.spent = frame.cost
      }
    },
  }
}

/** The variables of the macros around a node, and how each is read. */
type Scope = ReadonlyMap<string, Evaluate>

class Planner {
  readonly #types: readonly (CelType | undefined)[]
  readonly #references: readonly (Reference | undefined)[]
  slotCount = 0

  constructor({ types, references }: Checked) {
    this.#types = types
    this.#references = references
  }

  plan(node: Expression, scope: Scope = new Map()): Plan {
    const reference = this.#references[node.id]
    if (reference?.kind === 'variable') return attributePlan(attributeOf(readVariable(reference.name, scope)))
    if (reference?.kind === 'type' && node.kind !== 'message') return constantPlan(typeValueOf(reference.type))
    switch (node.kind) {
      case 'literal':
        return constantPlan(literalValue(node.value))
      case 'identifier':
        return attributePlan(attributeOf(readVariable(node.name, scope)))
      case 'select':
        return this.#planSelect(node, scope)
      case 'call':
        return this.#planCall(node, reference as CallReference | undefined, scope)
      case 'comprehension':
        return { evaluate: this.#planComprehension(node, scope) }
      default:
        return this.#planLiteral(node, scope)
    }
  }

  #planSelect(node: Select, scope: Scope): Plan {
    const operand = this.plan(node.operand, scope)
    const type = this.#types[node.operand.id]
    const step = constantStep(node.field, { isTest: node.isTest, type })
    const attribute = attributeFor(operand).qualify(step)
    if (!node.isTest) return attributePlan(attribute)
    // Being a value is free here. Of a choice it was free already: what upstream takes off is then one too many.
    if (!attribute.isChoice) return { evaluate: attribute.resolve, attribute }
    const evaluate: Evaluate = (frame) => {
      const result = attribute.resolve(frame)
      frame.cost -= 1
      return result
    }
    return { evaluate, attribute }
  }

  #planCall(node: Expression & { kind: 'call' }, reference: CallReference | undefined, scope: Scope): Plan {
    const nodes = reference?.args ?? (node.target === undefined ? node.args : [node.target, ...node.args])
    const args = nodes.map((arg) => this.plan(arg, scope))
    const types = nodes.map(({ id }) => this.#types[id])
    const call = { name: reference?.name ?? node.function, overloads: reference?.overloads ?? [], args, types }
    return planIndex(call) ?? planBuiltIn(call)
  }

  #planLiteral(node: Expression & { kind: 'list' | 'map' | 'message' }, scope: Scope): Plan {
    if (node.kind === 'list') {
      const elements = node.elements.map((element) => this.plan(element, scope))
      const parts = elements.map(({ evaluate }, at) => ({ evaluate, isOptional: node.optional.has(at) }))
      return folded(listLiteral(parts), elements)
    }
    if (node.kind === 'map') {
      const entries = node.entries.map((entry) => ({
        key: this.plan(entry.key, scope),
        value: this.plan(entry.value, scope),
        isOptional: entry.isOptional,
      }))
      const parts = entries.map(({ key, value, isOptional }) => ({
        key: key.evaluate,
        evaluate: value.evaluate,
        isOptional,
      }))
      return folded(
        mapLiteral(parts),
        entries.flatMap(({ key, value }) => [key, value]),
      )
    }
    const type = this.#types[node.id]
    const parts = node.fields.map(({ field, value, isOptional }) => {
      const jsonName = (type?.kind === 'object' ? type.field(field)?.jsonName : undefined) ?? field
      return { field, jsonName, evaluate: this.plan(value, scope).evaluate, isOptional }
    })
    return { evaluate: messageLiteral(type, parts) }
  }

  #planComprehension(node: Comprehension, scope: Scope): Evaluate {
    const range = this.plan(node.range, scope).evaluate
    const slot = this.slotCount++
    const keySlot = node.variable2 === undefined ? undefined : this.slotCount++
    const inner = new Map(scope)
    if (node.variable2 === undefined) inner.set(node.variable, readSlot(slot))
    else inner.set(node.variable, readSlot(keySlot as number)).set(node.variable2, readSlot(slot))
    const quantifier = quantifierOf(node)
    if (quantifier !== undefined) {
      const predicate = this.plan(quantifier.predicate, inner).evaluate
      return quantifierPlan(range, { slot, keySlot }, quantifier.decisive, predicate)
    }
    const accumulator = this.slotCount++
    const initial = this.plan(node.initial, scope).evaluate
    const read = readAccumulator(accumulator, initial)
    inner.set(node.accumulator, read)
    const condition = this.plan(node.condition, inner).evaluate
    const step = this.plan(node.step, inner).evaluate
    const result = this.plan(node.result, new Map(scope).set(node.accumulator, read)).evaluate
    return foldPlan({ range, initial, condition, step, result, slot, keySlot, accumulator })
  }
}

/** Made now, where all parts are constant. */
function folded(evaluate: Evaluate, parts: readonly Plan[]): Plan {
  if (!parts.every(({ constant }) => constant !== undefined)) return { evaluate }
  const frame: Frame = { variables: {}, slots: [], cost: 0, limit: Infinity }
  const value = evaluate(frame)
  return value instanceof Failure ? { evaluate: () => value } : constantPlan(value)
}

const readSlot =
  (slot: number): Evaluate =>
  (frame) =>
    frame.slots[slot] as Result

function readVariable(name: string, scope: Scope): Evaluate {
  const plain = name.startsWith('.') ? name.slice(1) : name
  const local = scope.get(name)
  if (local !== undefined) return local
  const absent = new Failure(`no such attribute(s): ${plain}`)
  return (frame) => {
    const value = frame.variables[plain]
    return value === undefined ? absent : value
  }
}

/** The attribute a plan is, or one that begins with its value. */
const attributeFor = ({ attribute, evaluate }: Plan): Attribute => attribute ?? attributeOf(evaluate)

interface StepOptions {
  readonly isTest?: boolean
  readonly isOptional?: boolean
  /** Of what it is taken from. */
  readonly type: CelType | undefined
}

function constantStep(constant: Value, { isTest = false, isOptional = false, type }: StepOptions): Step {
  const declared = type?.kind === 'object' && typeof constant === 'string' ? type.field(constant) : undefined
  const owner = type?.kind === 'object' ? type.name : ''
  const field = declared && { owner, key: declared.jsonName, adapt: adapterOf(declared.type) }
  return { constant, key: () => constant, isOptional, isTest, field }
}

/** `a[k]`, `a[?k]`, `a.?f`: undefined for every other call. */
function planIndex({
  name,
  args,
  types,
}: {
  name: string
  args: readonly Plan[]
  types: readonly (CelType | undefined)[]
}): Plan | undefined {
  const [operand, index] = args
  const isOptional = name === '_[?_]' || name === '_?._'
  if ((name !== '_[_]' && !isOptional) || operand === undefined || index === undefined) return undefined
  const constant = index.constant?.value
  if (constant !== undefined && !isKey(constant)) throw new CelError(unusable(constant).message)
  const step: Step =
    constant === undefined
      ? { constant: undefined, key: index.attribute?.resolve ?? index.evaluate, isOptional, isTest: false }
      : constantStep(constant, { isOptional, type: types[0] })
  return attributePlan(attributeFor(operand).qualify(step))
}
