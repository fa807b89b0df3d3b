/** The state of one evaluation of a CEL program, and the types of planned expressions. */
import type { Variables } from '../program.ts'
import { CelBudgetError, type Result, type Value } from '../value.ts'
import type { Adapter } from '../values/json.ts'

export interface Frame {
  readonly variables: Variables
  /** Variables of macros, each in a separate slot. */
  readonly slots: Result[]
  cost: number
  readonly limit: number
}

export type Evaluate = (frame: Frame) => Result

/** A planned part of an expression. */
export interface Plan {
  readonly evaluate: Evaluate
  /** Known before run time: literals, and what was folded. */
  readonly constant?: { readonly value: Value }
  /** A variable or a path from something: what may be qualified further. */
  readonly attribute?: Attribute
}

/**
 * A variable, or anything else, with the selections that follow it. Resolving it charges the selections; using it as a
 * value costs 1 more, unless it is a choice between two attributes.
 */
export interface Attribute {
  readonly resolve: Evaluate
  readonly isChoice: boolean
  qualify(step: Step): Attribute
}

/** One selection: `.f`, `[k]`, `.?f`, `[?k]`, and the last one of `has()`. */
export interface Step {
  /** When the key is known before run time. */
  readonly constant: Value | undefined
  readonly key: Evaluate
  readonly isOptional: boolean
  readonly isTest: boolean
  /** Of a declared field: the name of the type that has it, its key in JSON, and how it is made a value. */
  readonly field?: { readonly owner: string; readonly key: string; readonly adapt: Adapter } | undefined
}

export const OVER_LIMIT = 'operation cancelled: actual cost limit exceeded'

export function charge(frame: Frame, cost: number): void {
  frame.cost += cost
  if (frame.cost > frame.limit) throw new CelBudgetError(OVER_LIMIT)
}

/** Charges so many steps of cost 1. The cost ends at the step that exceeds the limit, as upstream counts step by step. */
export function chargeSteps(frame: Frame, steps: number): void {
  if (frame.cost + steps <= frame.limit) {
    frame.cost += steps
    return
  }
  while (frame.cost <= frame.limit) frame.cost++
  throw new CelBudgetError(OVER_LIMIT)
}

export const constantPlan = (value: Value): Plan => ({ evaluate: () => value, constant: { value } })

/** The plan of an attribute as a value. */
export function attributePlan(attribute: Attribute): Plan {
  const { resolve, isChoice } = attribute
  if (isChoice) return { evaluate: resolve, attribute }
  const evaluate: Evaluate = (frame) => {
    charge(frame, 1)
    return resolve(frame)
  }
  return { evaluate, attribute }
}
