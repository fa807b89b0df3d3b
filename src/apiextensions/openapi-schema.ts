/**
 * The OpenAPI definitions of a custom resource: its schema with the common fields of objects. In v3 the schema is
 * complete. v2 cannot express all of it, and clients treat the listed fields as all fields. So v2 lists no fields where
 * any field is allowed.
 */
import type { CustomResourceDefinitionVersion, JSONSchemaProps } from '#apis/apiextensions/v1.ts'
import type { Kind } from '#apis/kinds.ts'
import type { Definition, Dialect } from '#apiserver/registry/openapi-definition.ts'

const CONVENTIONS = 'https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md'
const API_VERSION = {
  description: `APIVersion defines the versioned schema of this representation of an object. Servers should convert recognized schemas to the latest internal value, and may reject unrecognized values. More info: ${CONVENTIONS}#resources`,
  type: 'string',
}
const KIND = {
  description: `Kind is a string value representing the REST resource this object represents. Servers may infer this from the endpoint the client submits requests to. Cannot be updated. In CamelCase. More info: ${CONVENTIONS}#types-kinds`,
  type: 'string',
}
const METADATA = `Standard object's metadata. More info: ${CONVENTIONS}#metadata`
const LIST_METADATA = `Standard list metadata. More info: ${CONVENTIONS}#types-kinds`
const EMBEDDED_VERSION = `apiVersion defines the versioned schema of this representation of an object. More info: ${CONVENTIONS}#resources`
const EMBEDDED_KIND = `kind is a string value representing the type of this object. In CamelCase. More info: ${CONVENTIONS}#types-kinds`

/** The definition of the objects, and that of their lists. */
export function describeCustom(
  kind: Kind,
  declared: CustomResourceDefinitionVersion,
  dialect: Dialect,
): { readonly object: Definition; readonly list: Definition } {
  const { group, version } = kind
  const of = (name: string): Definition => ({
    'x-kubernetes-group-version-kind': [{ group, kind: name, version }],
    ...selectable(declared),
  })
  const own = objectDefinition(declared.schema?.openAPIV3Schema, dialect)
  const items = { $ref: `${dialect.refPrefix}${nameOf(kind)}` }
  return {
    object: { ...own, ...of(kind.kind) },
    list: {
      description: `${kind.listKind} is a list of ${kind.kind}`,
      type: 'object',
      required: ['items'],
      properties: {
        apiVersion: API_VERSION,
        items: { description: `List of ${kind.plural}. More info: ${CONVENTIONS}`, type: 'array', items },
        kind: KIND,
        metadata: reference(dialect, 'ListMeta', LIST_METADATA),
      },
      ...of(kind.listKind),
    },
  }
}

/** `io.ex.v1.Life`. */
function nameOf({ group, version, kind }: Kind): string {
  return `${group.split('.').reverse().join('.')}.${version}.${kind}`
}

function selectable({ selectableFields = [] }: CustomResourceDefinitionVersion): Definition {
  if (selectableFields.length === 0) return {}
  const fields = selectableFields.map(({ jsonPath }) => ({ fieldPath: jsonPath.replace(/^\./, '') }))
  return { 'x-kubernetes-selectable-fields': fields }
}

function reference({ refPrefix, wrapsRefs }: Dialect, name: string, description: string): Definition {
  const ref = { $ref: `${refPrefix}io.k8s.apimachinery.pkg.apis.meta.v1.${name}` }
  return wrapsRefs ? { description, allOf: [ref] } : { description, ...ref }
}

function objectDefinition(schema: JSONSchemaProps | undefined, dialect: Dialect): Definition {
  const isOpen = schema?.['x-kubernetes-preserve-unknown-fields'] === true
  if (schema === undefined || (isOpen && !dialect.wrapsRefs)) return { type: 'object' }
  const { properties, ...own } = shape(schema, dialect)
  const more = { apiVersion: API_VERSION, kind: KIND, metadata: reference(dialect, 'ObjectMeta', METADATA) }
  return { ...own, properties: sorted({ ...(properties as object), ...more }) }
}

/** One schema and its nested ones. Their depth is limited by validation. */
function shape(schema: JSONSchemaProps, dialect: Dialect): Definition {
  const isEmbedded = schema['x-kubernetes-embedded-resource'] === true
  const shaped = dialect.wrapsRefs ? shapeV3(schema, dialect) : shapeV2(schema, dialect)
  const isOpen = schema['x-kubernetes-preserve-unknown-fields'] === true
  return isEmbedded && (dialect.wrapsRefs || !isOpen) ? withObject(shaped, dialect) : shaped
}

function shapeV3(schema: JSONSchemaProps, dialect: Dialect): Definition {
  const { properties, items, additionalProperties, ...own } = schema
  const anything = schema['x-kubernetes-int-or-string'] === true && own.anyOf === undefined
  return {
    ...own,
    ...(anything && { anyOf: [{ type: 'integer' }, { type: 'string' }] }),
    ...children({ properties, items, additionalProperties }, dialect),
  }
}

function shapeV2(schema: JSONSchemaProps, dialect: Dialect): Definition {
  const { properties, items, additionalProperties, required, type, ...rest } = schema
  const { default: _, allOf: __, anyOf: ___, oneOf: ____, not: _____, nullable = false, ...own } = rest
  const isOpen = own['x-kubernetes-preserve-unknown-fields'] === true
  const isOpaque = nullable || isOpen
  const inside: Inside = { additionalProperties, ...(isOpaque ? {} : { properties, items }) }
  const isBare = nullable || (type === 'array' && inside.items === undefined) || (isOpen && type === 'object')
  const needed = required?.filter((name) => properties?.[name]?.nullable !== true) ?? []
  return {
    ...own,
    ...(type !== undefined && !isBare && { type }),
    ...(needed.length > 0 && { required: needed }),
    ...children(inside, dialect),
  }
}

interface Inside {
  readonly properties?: JSONSchemaProps['properties'] | undefined
  readonly items?: JSONSchemaProps['items'] | undefined
  readonly additionalProperties?: JSONSchemaProps['additionalProperties'] | undefined
}

function children({ properties, items, additionalProperties }: Inside, dialect: Dialect): Definition {
  const inner = Object.entries(properties ?? {}).map(([name, one]) => [name, shape(one, dialect)] as const)
  return {
    ...(properties !== undefined && { properties: Object.fromEntries(inner) }),
    ...(items !== undefined && { items: shape(items as JSONSchemaProps, dialect) }),
    ...(additionalProperties !== undefined && {
      additionalProperties:
        typeof additionalProperties === 'boolean' ? additionalProperties : shape(additionalProperties, dialect),
    }),
  }
}

/** An embedded object has the common fields of objects. */
function withObject({ properties, required = [], ...own }: Definition, dialect: Dialect): Definition {
  const needed = new Set([...(required as string[]), 'kind', 'apiVersion'])
  const more = {
    apiVersion: { ...API_VERSION, description: EMBEDDED_VERSION },
    kind: { ...KIND, description: EMBEDDED_KIND },
    metadata: reference(dialect, 'ObjectMeta', METADATA),
  }
  return { ...own, required: [...needed], properties: sorted({ ...(properties as object), ...more }) }
}

function sorted(properties: Record<string, unknown>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(properties).sort(([one], [other]) => (one < other ? -1 : 1)))
}
