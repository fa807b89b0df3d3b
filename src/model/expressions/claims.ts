/**
 * Compiles and evaluates the CEL expressions of `--authentication-config`: about the claims of a token, and about the
 * resulting user. All numbers are doubles.
 */
import { createEnvironment } from '#cel/environment.ts'
import { unescapeName } from '#cel/syntax/names.ts'
import { BOOL, DYN, mapOf, STRING } from '#cel/type.ts'
import { CelError, Double, Failure, ListValue, MapValue, type Result, type Value } from '#cel/value.ts'

import { evaluateOnce } from './activation.ts'
import { USER_INFO } from './admission.ts'
import { ANYTHING, type CompiledExpression, compileExpression, exactlySilent, type UnfitExpression } from './compile.ts'

const claimsEnvironment = createEnvironment({ variables: { claims: mapOf(STRING, DYN) } })
const userEnvironment = createEnvironment({ variables: { user: USER_INFO } })

const TRUTH = exactlySilent(BOOL)

/** A part of a user: text, or a list of texts. */
export function compileClaimMapping(source: string): CompiledExpression | UnfitExpression {
  return compileExpression(claimsEnvironment, source, ANYTHING)
}

/** Validates the claims of a token. */
export function compileClaimRule(source: string): CompiledExpression | UnfitExpression {
  return compileExpression(claimsEnvironment, source, TRUTH)
}

/** Validates the user. */
export function compileUserRule(source: string): CompiledExpression | UnfitExpression {
  return compileExpression(userEnvironment, source, TRUTH)
}

export type Claims = Readonly<Record<string, unknown>>

/** Throws Error with upstream's text. */
export function evaluateClaims(expression: CompiledExpression, claims: Claims): Value {
  return evaluate(expression, { claims: new NativeMap(claims) })
}

export function evaluateUser(expression: CompiledExpression, user: Claims): Value {
  return evaluate(expression, { user: new NativeMap(user) })
}

function evaluate(expression: CompiledExpression, variables: Readonly<Record<string, Value>>): Value {
  const { value, error } = evaluateOnce(expression, variables)
  if (error !== undefined) throw new Error(`expression '${expression.source}' resulted in error: ${error}`)
  return value
}

/** The texts that a mapping yields; an empty result counts as absent. Throws Error with upstream's text. */
export function textsOf(value: Value): string[] {
  if (value === null) return []
  const items = value instanceof ListValue ? Array.from({ length: value.size }, (_, at) => value.at(at)) : [value]
  return items.flatMap((item) => {
    if (typeof item !== 'string') throw new CelError('expression must return a string or a list of strings')
    return item === '' ? [] : [item]
  })
}

/** Go's untyped form of JSON. Keys that are no identifiers can be escaped. */
function native(json: unknown): Value {
  if (json === null || json === undefined) return null
  if (typeof json === 'number') return new Double(json)
  if (typeof json === 'bigint') return new Double(Number(json))
  if (Array.isArray(json)) return new NativeList(json)
  return typeof json === 'object' ? new NativeMap(json as Claims) : (json as string | boolean)
}

class NativeList extends ListValue {
  readonly #json: readonly unknown[]

  constructor(json: readonly unknown[]) {
    super()
    this.#json = json
  }

  get size(): number {
    return this.#json.length
  }

  at(index: number): Result {
    return native(this.#json[index])
  }
}

class NativeMap extends MapValue {
  readonly #json: Claims

  constructor(json: Claims) {
    super()
    this.#json = json
  }

  get size(): number {
    return Object.keys(this.#json).length
  }

  get(key: Value): Result | undefined {
    if (typeof key !== 'string') return new Failure('no such overload')
    const name = unescapeName(key) ?? key
    return Object.hasOwn(this.#json, name) ? native(this.#json[name]) : undefined
  }

  keys(): Iterable<Value> {
    return Object.keys(this.#json)
  }
}
