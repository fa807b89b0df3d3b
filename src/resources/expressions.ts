/**
 * The one place where CEL expressions in objects are judged. There is no compiler yet: every expression passes. Kinds
 * that hold expressions ask here, with what an expression may use and must yield, so that nothing else changes when
 * there is one.
 */
import type { FieldError } from '#meta/validation/field-error.ts'

/** What an expression is for, which settles what it must yield and what it may refer to. */
export type ExpressionPurpose =
  /** True or false, about a request. */
  | 'match-condition'
  | 'validation'
  /** Text, or for an audit annotation null. */
  | 'message'
  | 'audit-annotation'
  /** Anything. */
  | 'variable'
  /** An `Object` to be applied, or a list of `JSONPatch`. */
  | 'apply-configuration'
  | 'json-patch'
  /** True or false, about a `device`. */
  | 'device-selector'

export interface ExpressionUse {
  readonly purpose: ExpressionPurpose
  /** Whether `params` is there. */
  readonly hasParams?: boolean
  /** Whether the old object had this very expression: then what newer releases no longer take is still taken. */
  readonly stored?: boolean
  /** Variables defined before it, by which it may be composed. */
  readonly variables?: readonly { readonly name: string; readonly expression: string }[]
}

/** Complaints about an expression that is not empty. Upstream shows the expression as the bad value. */
export function validateExpression(_field: string, _expression: string, _use: ExpressionUse): FieldError[] {
  return []
}

/** Line breaks as CEL's grammar has them. */
export function hasLineBreak(text: string): boolean {
  return /[\n\r]/.test(text)
}

/** Go's unicode.IsSpace trims more than JavaScript's trim only in U+0085. */
export function isBlank(text: string): boolean {
  return text.replaceAll('\u0085', '').trim() === ''
}
