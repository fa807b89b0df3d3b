/**
 * Validates a CEL expression that has passed type-checking: list and map literals with elements of one type, and
 * literal arguments that always fail.
 */
import type { Call, Expression } from '../syntax/ast.ts'
import { literalValue } from '../syntax/literals.ts'
import type { Finding } from '../syntax/source.ts'
import { walk } from '../syntax/walk.ts'
import { type CelType, DYN, formatType, isSameType, optionalValueOf } from '../type.ts'
import { Failure, type Value } from '../value.ts'
import type { Checked } from './checked.ts'
import { checkFormat } from './format-check.ts'

export function validate(checked: Checked): readonly Finding[] {
  const findings: Finding[] = []
  walk(checked.tree.root, (node, path) => {
    if (node.kind === 'list' || node.kind === 'map') {
      if (!path.some((above) => above.kind === 'call' && above.function === 'format')) {
        findings.push(...mixedTypes(checked, node))
      }
    } else if (node.kind === 'call') {
      findings.push(...(CALL_VALIDATORS[node.function]?.(checked, node) ?? []))
    }
  })
  return findings
}

type CallValidator = (checked: Checked, node: Call) => readonly Finding[]

const CALL_VALIDATORS: Readonly<Record<string, CallValidator>> = {
  duration: (checked, node) => literalArgument(checked, node, (value) => [value]),
  timestamp: (checked, node) => literalArgument(checked, node, (value) => [value]),
  // Upstream looks at the first argument of the function, too, although there it is the text.
  matches: (checked, node) => literalArgument(checked, node, (value) => ['', value]),
  format: (checked, node) => checkFormat(checked, node),
}

/** Whether the call works with its first argument, if that is a literal. */
function literalArgument(checked: Checked, node: Call, args: (value: Value) => Value[]): readonly Finding[] {
  const [arg] = node.args
  const reference = checked.references[node.id]
  if (arg?.kind !== 'literal' || reference?.kind !== 'call') return []
  const [a = null, b = null] = args(literalValue(arg.value))
  const isValid = reference.overloads.every((overload) => !(overload.evaluate?.(a, b, null, null) instanceof Failure))
  return isValid ? [] : [{ at: arg.at, message: `invalid ${node.function} argument` }]
}

/** Of a list, the first that differs; of a map, every key and value that does. */
function mixedTypes(checked: Checked, node: Expression): readonly Finding[] {
  if (node.kind === 'list') {
    const typed = node.elements.map((element, i) => typeOf(checked, element, node.optional.has(i)))
    return differing(typed).slice(0, 1)
  }
  if (node.kind !== 'map') return []
  const keys = node.entries.map(({ key }) => typeOf(checked, key, false))
  const values = node.entries.map(({ value, isOptional }) => typeOf(checked, value, isOptional))
  return [...differing(keys), ...differing(values)]
}

type Typed = readonly [node: Expression, type: CelType]

function typeOf(checked: Checked, node: Expression, isOptional: boolean): Typed {
  const type = checked.types[node.id] ?? DYN
  return [node, isOptional ? (optionalValueOf(type) ?? type) : type]
}

function differing(typed: readonly Typed[]): readonly Finding[] {
  const [first, ...rest] = typed
  if (first === undefined) return []
  return rest
    .filter(([, type]) => !isSameType(first[1], type))
    .map(([{ at }, type]) => ({
      at,
      message: `expected type '${formatType(first[1])}' but found '${formatType(type)}'`,
    }))
}
