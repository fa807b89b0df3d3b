/** Validates the parts of a version in a CustomResourceDefinition: schema, subresources, columns, selectable fields. */
import type {
  CustomResourceColumnDefinition,
  CustomResourceSubresources,
  CustomResourceSubresourceScale,
  CustomResourceValidation,
  SelectableField,
} from '#apis/apiextensions/v1.ts'
import { compareText } from '#lib/go/text.ts'
import type { Steps } from '#lib/time-slicing.ts'
import { collectErrors, type FieldError, type FieldPath } from '#meta/validation/field-path.ts'
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
  /** Defaults must not contain unknown fields. */
  readonly prunedDefaults: boolean
  /** The cost of its rules is not limited. */
  readonly costsAnything: boolean
}

/** The schema of a version. Defaults are validated only for a structural schema. */
export function* validateVersionSchema(
  path: FieldPath,
  validation: CustomResourceValidation | undefined,
  withStatus: boolean,
  options: PartOptions,
): Steps<FieldError[]> {
  const schema = validation?.openAPIV3Schema
  if (schema === undefined) return []
  yield
  const field = path.child('openAPIV3Schema')
  const obstacle = options.structural ? structuralObstacle(schema) : undefined
  yield
  const structural = options.structural && obstacle === undefined ? structuralOf(schema) : undefined
  yield
  const structure = structural === undefined ? [] : yield* validateStructure(field, schema, structural, options)
  const faulty = new Set<string>()
  const shape = yield* validateSchema(field, schema, { ...options, faulty }, { isRoot: true })
  const errors = collectErrors(
    withStatus && validateRoot(field, schema),
    schema.nullable === true && field.child('nullable').forbidden('nullable cannot be true at the root'),
    structure,
    shape,
    structural !== undefined && structure.length === 0 && (yield* validateRules(field, structural, faulty, options)),
  )
  return errors.length === 0 && obstacle !== undefined ? [field.invalid('', obstacle)] : errors
}

function* validateStructure(
  path: FieldPath,
  schema: Schema,
  structural: Structural,
  { prunedDefaults }: PartOptions,
): Steps<FieldError[]> {
  const errors = yield* validateStructural(path, schema)
  return errors.length > 0 ? errors : yield* validateDefaults(structural, path, { pruned: prunedDefaults })
}

/** Rules of a part with other errors are not compiled. */
function validateRules(
  path: FieldPath,
  structural: Structural,
  faulty: ReadonlySet<string>,
  { costsAnything }: PartOptions,
): Steps<FieldError[]> {
  return checkRules(structural, path, {
    isFaulty: (path) => faulty.has(path.toString()),
    show: internalRule,
    costsAnything,
  })
}

/** Upstream prints Go names. */
const rootFields =
  'Description Type Format Title Maximum ExclusiveMaximum Minimum ExclusiveMinimum MaxLength MinLength Pattern MaxItems MinItems UniqueItems MultipleOf Required Items Properties ExternalDocs Example XPreserveUnknownFields XValidations'.split(
    ' ',
  )

const rootKeys = new Set<string>([
  ...rootFields.map((name) => `${name.charAt(0).toLowerCase()}${name.slice(1)}`),
  'x-kubernetes-preserve-unknown-fields',
  'x-kubernetes-validations',
])

/** Fields that upstream checks before the type. */
const beforeType = ['id', '$schema', '$ref']

/**
 * With a status subresource, spec and status are validated separately, so the root may have no rules about the whole
 * object.
 */
function validateRoot(path: FieldPath, schema: Schema): FieldError[] {
  const keys = Object.entries(schema)
    .filter(
      ([name, value]) => value !== undefined && value !== '' && (value !== false || name.startsWith('additional')),
    )
    .map(([name]) => name)
  const strange = keys.filter((name) => !rootKeys.has(name))
  const { type = '' } = schema
  if (type !== '' && type !== 'object' && !strange.some((name) => beforeType.includes(name))) {
    const detail = 'only "object" is allowed as the type at the root of the schema if the status subresource is enabled'
    return [path.child('type').invalid(type, detail)]
  }
  if (strange.length === 0) return []
  const allowed = `[${rootFields.join(' ')}]`
  return [
    path.invalid(
      internalSchema(schema),
      `only ${allowed} fields are allowed at the root of the schema if the status subresource is enabled`,
    ),
  ]
}

export function validateSubresources(
  path: FieldPath,
  subresources: CustomResourceSubresources | undefined,
): FieldError[] {
  const scale = subresources?.scale
  return scale === undefined ? [] : validateScale(path.child('scale'), scale)
}

function validateScale(path: FieldPath, scale: CustomResourceSubresourceScale): FieldError[] {
  const { specReplicasPath, statusReplicasPath, labelSelectorPath = '' } = scale
  const needed = (name: string, value: string, root: string): FieldError[] => {
    const field = path.child(name)
    return value === '' ? [field.required()] : validateScalePath(field, value, [root], `under ${root}`)
  }
  return collectErrors(
    needed('specReplicasPath', specReplicasPath, '.spec'),
    needed('statusReplicasPath', statusReplicasPath, '.status'),
    labelSelectorPath !== '' &&
      validateScalePath(
        path.child('labelSelectorPath'),
        labelSelectorPath,
        ['.spec', '.status'],
        'under either .spec or .status',
      ),
  )
}

function validateScalePath(path: FieldPath, value: string, roots: readonly string[], where: string): FieldError[] {
  const errors = validateSimplePath(path, value)
  if (errors.length > 0 || roots.some((root) => value.startsWith(`${root}.`))) return errors
  return [path.invalid(value, `should be a json path ${where}`)]
}

function validateSimplePath(path: FieldPath, value: string): FieldError[] {
  return value.startsWith('.') ? [] : [path.invalid(value, 'must be a simple json path starting with .')]
}

const columnTypes = ['integer', 'number', 'string', 'boolean', 'date'].sort(compareText).join(',')
const columnFormats = ['int32', 'int64', 'float', 'double', 'byte', 'date', 'date-time', 'password']
  .sort(compareText)
  .join(',')

export function validateColumn(path: FieldPath, column: CustomResourceColumnDefinition): FieldError[] {
  const { name, type, format = '', jsonPath } = column
  const pathField = path.child('JSONPath')
  const oneOf = (field: string, value: string, known: string): FieldError[] =>
    known.split(',').includes(value) ? [] : [path.child(field).invalid(value, `must be one of ${known}`)]
  return collectErrors(
    name === '' && path.child('name').required(),
    type === '' ? path.child('type').required(`must be one of ${columnTypes}`) : oneOf('type', type, columnTypes),
    format !== '' && oneOf('format', format, columnFormats),
    jsonPath === '' ? pathField.required() : validateSimplePath(pathField, jsonPath),
  )
}

export const MAX_SELECTABLE_FIELDS = 8
const selectableTypes = ['string', 'boolean', 'integer']

/** `mayBeMany`: the old object exceeds the limit as well. */
export function validateSelectableFields(
  path: FieldPath,
  fields: readonly SelectableField[],
  schema: Schema,
  mayBeMany: boolean,
): FieldError[] {
  const seen = new Set<string>()
  const structural = structuralOf(schema)
  const errors = path.each(fields, (path, { jsonPath }) => {
    const pathField = path.child('jsonPath')
    if (jsonPath === '') return [pathField.required()]
    const found = findField(jsonPath, structural, false)
    if (typeof found === 'string') return [pathField.invalid(jsonPath, `is an invalid path: ${found}`)]
    const repeated = seen.has(found.path)
    seen.add(found.path)
    return collectErrors(
      found.root === 'metadata' && pathField.invalid(jsonPath, 'must not point to fields in metadata'),
      !selectableTypes.includes(found.schema?.type ?? '') && pathField.invalid(jsonPath, SELECTABLE),
      repeated && pathField.duplicate(jsonPath),
    )
  })
  if (mayBeMany || seen.size <= MAX_SELECTABLE_FIELDS) return errors
  return [...errors, path.tooMany(seen.size, MAX_SELECTABLE_FIELDS)]
}

const SELECTABLE =
  'must point to a field of type string, boolean or integer. Enum string fields and strings with formats are allowed.'
