/**
 * Runs all validations of a custom resource in upstream's order. CEL rules run only if there are no structural errors.
 */
import type { CustomResourceSubresourceScale } from '#apis/apiextensions/v1.ts'
import { isJsonObject, type JsonObject, type JsonValue } from '#lib/json/value.ts'
import { type FieldError, type FieldErrorType, fieldPath } from '#meta/validation/field-path.ts'

import { validateEmbedded } from './embedded.ts'
import { validateListTypes } from './list-types.ts'
import { runRules } from './rule-run.ts'
import { validateScale } from './scale-rules.ts'
import { HAS_RULES, type Structural } from './structural.ts'
import { NOWHERE, validateValue } from './validate-value.ts'

export interface ObjectChange {
  readonly next: JsonObject
  /** Absent on create. */
  readonly old?: JsonObject | undefined
  /** Set if only the status is written and validated. */
  readonly part?: 'status' | undefined
  /** Metadata errors: rules do not run on an object with missing or too long fields. */
  readonly metadataErrors?: () => readonly FieldError[]
}

export interface Verdict {
  readonly errors: FieldError[]
  /** Errors of rules that existed before. */
  readonly warnings: string[]
}

/** Metadata at the root is not validated here, because the store does that for all kinds. */
export function validateObject(
  change: ObjectChange,
  schema: Structural,
  scale?: CustomResourceSubresourceScale,
): Verdict {
  const { next, old, part } = change
  const errors = [
    ...(part === 'status' ? validateStatus(change, schema) : validateValue(next, schema, { old })),
    ...(scale === undefined ? [] : validateScale(next, scale, part)),
    ...(part === 'status' ? [] : validateEmbedded(next, schema)),
    ...validateNewListTypes(next, old, schema),
  ]
  if ((schema.has & HAS_RULES) === 0) return { errors, warnings: [] }
  const isBlocked = (error: FieldError): boolean => blocking.has(error.type)
  if (errors.some(isBlocked) || change.metadataErrors?.().some(isBlocked) === true) {
    return { errors: [...errors, NOWHERE.invalid(null, NOT_CHECKED)], warnings: [] }
  }
  const run = runRules(next, schema, { old })
  return { errors: [...errors, ...run.errors], warnings: run.warnings }
}

function validateStatus({ next, old }: ObjectChange, schema: Structural): FieldError[] {
  const property = schema.properties.get('status')
  if (property === undefined || !Object.hasOwn(next, 'status')) return []
  const before = isJsonObject(old) && Object.hasOwn(old, 'status') ? (old['status'] as JsonValue) : undefined
  return validateValue(next['status'] as JsonValue, property, { path: fieldPath('status'), old: before })
}

/** Lists with old duplicates may keep them. */
function validateNewListTypes(next: JsonObject, old: JsonObject | undefined, schema: Structural): FieldError[] {
  const errors = validateListTypes(next, schema)
  return errors.length > 0 && old !== undefined && validateListTypes(old, schema).length > 0 ? [] : errors
}

const blocking: ReadonlySet<FieldErrorType> = new Set<FieldErrorType>([
  'FieldValueNotSupported',
  'FieldValueRequired',
  'FieldValueTooLong',
  'FieldValueTooMany',
  'FieldValueTypeInvalid',
])

const NOT_CHECKED =
  'some validation rules were not checked because the object was invalid; correct the existing errors to complete validation'
