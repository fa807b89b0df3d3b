/** The one place where configuration files meet CEL: what compiles here is accepted, and so far nothing does. */
import { type FieldError, forbidden } from '#meta/validation/field-error.ts'

/** What is wrong with an expression, besides being missing or repeated. */
export function expressionErrors(field: string, _expression: string): FieldError[] {
  return [forbidden(field, 'CEL expressions are not supported by this server yet')]
}
