/**
 * Formats parts of a CustomResourceDefinition for error texts as upstream does: as Go structs of the internal version
 * with all fields, including empty ones.
 */
import type { JSONSchemaProps, ValidationRule } from '#apis/apiextensions/v1.ts'
import { goJson } from '#lib/go/text.ts'
import { type Verbatim, verbatim } from '#meta/validation/field-path.ts'
import { someSchema } from '#model/custom/schema-walk.ts'

import type { DefinedVersion } from './definition.ts'

/** The form of an empty value: `''`, `false` or null. A function formats a present value. */
type Field = readonly [go: string, json: string, zero: string | boolean | null, print?: (value: never) => unknown]

function struct(fields: readonly Field[], value: object): Record<string, unknown> {
  const given = value as Record<string, unknown>
  return Object.fromEntries(
    fields.map(([go, json, zero, print]) => {
      const member = given[json] ?? null
      if (member === null) return [go, zero]
      return [go, print === undefined ? member : print(member as never)]
    }),
  )
}

const each = (schemas: readonly JSONSchemaProps[]): unknown => schemas.map(schemaForm)
const byName = (schemas: Readonly<Record<string, JSONSchemaProps>>): unknown =>
  Object.fromEntries(Object.entries(schemas).map(([name, schema]) => [name, schemaForm(schema)]))
const orBool = (schema: JSONSchemaProps | boolean): unknown =>
  typeof schema === 'boolean' ? { Allows: schema, Schema: null } : { Allows: true, Schema: schemaForm(schema) }
const orList = (items: JSONSchemaProps | readonly JSONSchemaProps[]): unknown =>
  isList(items) ? { Schema: null, JSONSchemas: each(items) } : { Schema: schemaForm(items), JSONSchemas: null }
const orTexts = (all: Readonly<Record<string, JSONSchemaProps | readonly string[]>>): unknown =>
  Object.fromEntries(
    Object.entries(all).map(([name, one]) => [
      name,
      isList(one) ? { Schema: null, Property: one } : { Schema: schemaForm(one), Property: null },
    ]),
  )

function isList<T>(value: object | readonly T[]): value is readonly T[] {
  return Array.isArray(value)
}

const ruleFields: readonly Field[] = [
  ['Rule', 'rule', ''],
  ['Message', 'message', ''],
  ['MessageExpression', 'messageExpression', ''],
  ['Reason', 'reason', null],
  ['FieldPath', 'fieldPath', ''],
  ['OptionalOldSelf', 'optionalOldSelf', null],
]

const schemaFields: readonly Field[] = [
  ['ID', 'id', ''],
  ['Schema', '$schema', ''],
  ['Ref', '$ref', null],
  ['Description', 'description', ''],
  ['Type', 'type', ''],
  ['Nullable', 'nullable', false],
  ['Format', 'format', ''],
  ['Title', 'title', ''],
  ['Default', 'default', null],
  ['Maximum', 'maximum', null],
  ['ExclusiveMaximum', 'exclusiveMaximum', false],
  ['Minimum', 'minimum', null],
  ['ExclusiveMinimum', 'exclusiveMinimum', false],
  ['MaxLength', 'maxLength', null],
  ['MinLength', 'minLength', null],
  ['Pattern', 'pattern', ''],
  ['MaxItems', 'maxItems', null],
  ['MinItems', 'minItems', null],
  ['UniqueItems', 'uniqueItems', false],
  ['MultipleOf', 'multipleOf', null],
  ['Enum', 'enum', null],
  ['MaxProperties', 'maxProperties', null],
  ['MinProperties', 'minProperties', null],
  ['Required', 'required', null],
  ['Items', 'items', null, orList],
  ['AllOf', 'allOf', null, each],
  ['OneOf', 'oneOf', null, each],
  ['AnyOf', 'anyOf', null, each],
  ['Not', 'not', null, schemaForm],
  ['Properties', 'properties', null, byName],
  ['AdditionalProperties', 'additionalProperties', null, orBool],
  ['PatternProperties', 'patternProperties', null, byName],
  ['Dependencies', 'dependencies', null, orTexts],
  ['AdditionalItems', 'additionalItems', null, orBool],
  ['Definitions', 'definitions', null, byName],
  ['ExternalDocs', 'externalDocs', null],
  ['Example', 'example', null],
  ['XPreserveUnknownFields', 'x-kubernetes-preserve-unknown-fields', null],
  ['XEmbeddedResource', 'x-kubernetes-embedded-resource', false],
  ['XIntOrString', 'x-kubernetes-int-or-string', false],
  ['XListMapKeys', 'x-kubernetes-list-map-keys', null],
  ['XListType', 'x-kubernetes-list-type', null],
  ['XMapType', 'x-kubernetes-map-type', null],
  ['XValidations', 'x-kubernetes-validations', null, (rules: readonly ValidationRule[]) => rules.map(ruleForm)],
]

const versionFields: readonly Field[] = [
  ['Name', 'name', ''],
  ['Served', 'served', false],
  ['Storage', 'storage', false],
  ['Deprecated', 'deprecated', false],
  ['DeprecationWarning', 'deprecationWarning', null],
  [
    'Schema',
    'schema',
    null,
    ({ openAPIV3Schema: schema }: { openAPIV3Schema?: JSONSchemaProps }) => ({
      OpenAPIV3Schema: schema === undefined ? null : schemaForm(schema),
    }),
  ],
  ['Subresources', 'subresources', null],
  ['AdditionalPrinterColumns', 'additionalPrinterColumns', null],
  ['SelectableFields', 'selectableFields', null],
]

function ruleForm(rule: ValidationRule): unknown {
  return struct(ruleFields, rule)
}

function schemaForm(schema: JSONSchemaProps): unknown {
  return struct(schemaFields, schema)
}

/** Each schema has forty empty fields: above this number, schemas are printed as JSON. */
const MAX_SCHEMAS = 2_000

function isLarge(schema: JSONSchemaProps | undefined): boolean {
  let count = 0
  return schema !== undefined && someSchema(schema, () => ++count > MAX_SCHEMAS)
}

export function internalRule(rule: ValidationRule): Verbatim {
  return verbatim(goJson(ruleForm(rule)))
}

export function internalSchema(schema: JSONSchemaProps): Verbatim {
  return verbatim(goJson(isLarge(schema) ? schema : schemaForm(schema)))
}

export function internalItems(items: readonly JSONSchemaProps[]): Verbatim {
  return verbatim(goJson(items.some(isLarge) ? items : orList(items)))
}

/** Null for none. */
export function internalVersions(versions: readonly DefinedVersion[]): Verbatim {
  if (versions.some(({ schema }) => isLarge(schema?.openAPIV3Schema))) return verbatim(goJson(versions))
  return verbatim(goJson(versions.length === 0 ? null : versions.map((version) => struct(versionFields, version))))
}
