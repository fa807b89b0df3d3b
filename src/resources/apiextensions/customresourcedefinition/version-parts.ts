/** The parts of a version, or of all: schema, subresources, columns, fields to select by. */
import type {
  CustomResourceColumnDefinition,
  CustomResourceSubresources,
  CustomResourceSubresourceScale,
  CustomResourceValidation,
  SelectableField,
} from '#apis/apiextensions/v1.ts'
import { compareText } from '#lib/go-text.ts'
import type { Steps } from '#lib/slices.ts'
import {
  child,
  duplicate,
  type FieldError,
  forbidden,
  index,
  invalid,
  required,
  tooMany,
} from '#meta/validation/field-error.ts'
import { validateDefaults } from '#model/custom/default-rules.ts'
import { findField } from '#model/custom/field-path.ts'
import { checkRules } from '#model/custom/rule-check.ts'
import type { Schema } from '#model/custom/schema-walk.ts'
import { type Structural, structuralOf } from '#model/custom/structural.ts'
import { structuralObstacle, validateStructural } from '#model/custom/structure-rules.ts'

import { internalRule, internalSchema } from './internal-form.ts'
import { type SchemaOptions, validateSchema } from './schema-rules.ts'

interface PartOptions extends SchemaOptions {
  readonly structural: boolean
  /** Defaults hold no fields that are not known. */
  readonly prunedDefaults: boolean
  /** Its rules may cost what they cost. */
  readonly costsAnything: boolean
}

/** The schema of a version. Defaults are looked at when it is structural: only then can it be said what they must be. */
export function* validateVersionSchema(
  path: string,
  validation: CustomResourceValidation | undefined,
  withStatus: boolean,
  options: PartOptions,
): Steps<FieldError[]> {
  const schema = validation?.openAPIV3Schema
  if (schema === undefined) return []
  yield
  const field = child(path, 'openAPIV3Schema')
  const obstacle = options.structural ? structuralObstacle(schema) : undefined
  yield
  const structural = options.structural && obstacle === undefined ? structuralOf(schema) : undefined
  yield
  const structure = structural === undefined ? [] : yield* validateStructure(field, schema, structural, options)
  const faulty = new Set<string>()
  const shape = yield* validateSchema(field, schema, { ...options, faulty }, { isRoot: true })
  const errors = [
    ...(withStatus ? validateRoot(field, schema) : []),
    ...(schema.nullable === true ? [forbidden(child(field, 'nullable'), 'nullable cannot be true at the root')] : []),
    ...structure,
    ...shape,
    ...(structural === undefined || structure.length > 0
      ? []
      : yield* validateRules(field, structural, faulty, options)),
  ]
  return errors.length === 0 && obstacle !== undefined ? [invalid(field, '', obstacle)] : errors
}

function* validateStructure(
  field: string,
  schema: Schema,
  structural: Structural,
  { prunedDefaults }: PartOptions,
): Steps<FieldError[]> {
  const errors = yield* validateStructural(field, schema)
  return errors.length > 0 ? errors : yield* validateDefaults(structural, field, { pruned: prunedDefaults })
}

/** Rules of a part that has other faults are not looked at. */
function validateRules(
  field: string,
  structural: Structural,
  faulty: ReadonlySet<string>,
  { costsAnything }: PartOptions,
): Steps<FieldError[]> {
  return checkRules(structural, field, {
    isFaulty: (path) => faulty.has(path),
    show: internalRule,
    costsAnything,
  })
}

/** By the names that upstream shows, which are those of Go. */
const rootFields =
  'Description Type Format Title Maximum ExclusiveMaximum Minimum ExclusiveMinimum MaxLength MinLength Pattern MaxItems MinItems UniqueItems MultipleOf Required Items Properties ExternalDocs Example XPreserveUnknownFields XValidations'.split(
    ' ',
  )

const rootKeys = new Set<string>([
  ...rootFields.map((name) => `${name.charAt(0).toLowerCase()}${name.slice(1)}`),
  'x-kubernetes-preserve-unknown-fields',
  'x-kubernetes-validations',
])

/** Fields that upstream comes to before it comes to the type. */
const beforeType = ['id', '$schema', '$ref']

/** With a status of its own, status is validated by itself: nothing at the root may be about the whole. */
function validateRoot(field: string, schema: Schema): FieldError[] {
  const keys = Object.entries(schema)
    .filter(
      ([name, value]) => value !== undefined && value !== '' && (value !== false || name.startsWith('additional')),
    )
    .map(([name]) => name)
  const strange = keys.filter((name) => !rootKeys.has(name))
  const { type = '' } = schema
  if (type !== '' && type !== 'object' && !strange.some((name) => beforeType.includes(name))) {
    const detail = 'only "object" is allowed as the type at the root of the schema if the status subresource is enabled'
    return [invalid(child(field, 'type'), type, detail)]
  }
  if (strange.length === 0) return []
  const allowed = `[${rootFields.join(' ')}]`
  return [
    invalid(
      field,
      internalSchema(schema),
      `only ${allowed} fields are allowed at the root of the schema if the status subresource is enabled`,
    ),
  ]
}

export function validateSubresources(path: string, subresources: CustomResourceSubresources | undefined): FieldError[] {
  const scale = subresources?.scale
  return scale === undefined ? [] : validateScale(child(path, 'scale'), scale)
}

function validateScale(path: string, scale: CustomResourceSubresourceScale): FieldError[] {
  const { specReplicasPath, statusReplicasPath, labelSelectorPath = '' } = scale
  const needed = (name: string, value: string, root: string): FieldError[] => {
    const field = child(path, name)
    return value === '' ? [required(field)] : validateScalePath(field, value, [root], `under ${root}`)
  }
  return [
    ...needed('specReplicasPath', specReplicasPath, '.spec'),
    ...needed('statusReplicasPath', statusReplicasPath, '.status'),
    ...(labelSelectorPath === ''
      ? []
      : validateScalePath(
          child(path, 'labelSelectorPath'),
          labelSelectorPath,
          ['.spec', '.status'],
          'under either .spec or .status',
        )),
  ]
}

function validateScalePath(field: string, value: string, roots: readonly string[], where: string): FieldError[] {
  const errors = validateSimplePath(field, value)
  if (errors.length > 0 || roots.some((root) => value.startsWith(`${root}.`))) return errors
  return [invalid(field, value, `should be a json path ${where}`)]
}

function validateSimplePath(field: string, value: string): FieldError[] {
  return value.startsWith('.') ? [] : [invalid(field, value, 'must be a simple json path starting with .')]
}

const columnTypes = ['integer', 'number', 'string', 'boolean', 'date'].sort(compareText).join(',')
const columnFormats = ['int32', 'int64', 'float', 'double', 'byte', 'date', 'date-time', 'password']
  .sort(compareText)
  .join(',')

export function validateColumn(path: string, column: CustomResourceColumnDefinition): FieldError[] {
  const { name, type, format = '', jsonPath } = column
  const pathField = child(path, 'JSONPath')
  const oneOf = (field: string, value: string, known: string): FieldError[] =>
    known.split(',').includes(value) ? [] : [invalid(child(path, field), value, `must be one of ${known}`)]
  return [
    ...(name === '' ? [required(child(path, 'name'))] : []),
    ...(type === ''
      ? [required(child(path, 'type'), `must be one of ${columnTypes}`)]
      : oneOf('type', type, columnTypes)),
    ...(format === '' ? [] : oneOf('format', format, columnFormats)),
    ...(jsonPath === '' ? [required(pathField)] : validateSimplePath(pathField, jsonPath)),
  ]
}

export const MAX_SELECTABLE_FIELDS = 8
const selectableTypes = ['string', 'boolean', 'integer']

/** `mayBeMany`: more than are allowed now, because there were before. */
export function validateSelectableFields(
  field: string,
  fields: readonly SelectableField[],
  schema: Schema,
  mayBeMany: boolean,
): FieldError[] {
  const seen = new Set<string>()
  const structural = structuralOf(schema)
  const errors = fields.flatMap(({ jsonPath }, at) => {
    const place = child(index(field, at), 'jsonPath')
    if (jsonPath === '') return [required(place)]
    const found = findField(jsonPath, structural, false)
    if (typeof found === 'string') return [invalid(place, jsonPath, `is an invalid path: ${found}`)]
    const repeated = seen.has(found.path)
    seen.add(found.path)
    return [
      ...(found.root === 'metadata' ? [invalid(place, jsonPath, 'must not point to fields in metadata')] : []),
      ...(selectableTypes.includes(found.schema?.type ?? '') ? [] : [invalid(place, jsonPath, SELECTABLE)]),
      ...(repeated ? [duplicate(place, jsonPath)] : []),
    ]
  })
  if (mayBeMany || seen.size <= MAX_SELECTABLE_FIELDS) return errors
  return [...errors, tooMany(field, seen.size, MAX_SELECTABLE_FIELDS)]
}

const SELECTABLE =
  'must point to a field of type string, boolean or integer. Enum string fields and strings with formats are allowed.'
