/** Builds the CustomResourceDefinitions of the management API from a short description of each kind. */
import type { CustomResourceDefinition } from '#apis/apiextensions/v1.ts'
import type { Kind } from '#apis/kinds.ts'
import { defineKind } from '#client/custom-kind.ts'
import type { KubeObject } from '#meta/object.ts'

export const GROUP = 'management.hyperkube.io'
export const VERSION = 'v1'

/** An OpenAPI v3 schema. */
export type Schema = Readonly<Record<string, unknown>>

export const TEXT: Schema = { type: 'string', maxLength: 1024 }
export const NAME: Schema = { type: 'string', minLength: 1, maxLength: 253 }
export const BOOLEAN: Schema = { type: 'boolean' }
export const INTEGER: Schema = { type: 'integer', format: 'int64' }
export const TIME: Schema = { type: 'string', format: 'date-time' }
export const QUANTITIES: Schema = {
  type: 'object',
  additionalProperties: { 'x-kubernetes-int-or-string': true, anyOf: [{ type: 'integer' }, { type: 'string' }] },
}
export const CONDITIONS: Schema = {
  type: 'array',
  'x-kubernetes-list-type': 'map',
  'x-kubernetes-list-map-keys': ['type'],
  items: record(
    {
      type: NAME,
      status: oneOf('True', 'False', 'Unknown'),
      reason: TEXT,
      message: { type: 'string', maxLength: 32_768 },
      lastTransitionTime: TIME,
      observedGeneration: INTEGER,
    },
    ['type', 'status'],
  ),
}

export function oneOf(...values: readonly string[]): Schema {
  return { type: 'string', enum: values }
}

export function list(items: Schema, maxItems = 1000): Schema {
  return { type: 'array', maxItems, items }
}

export function record(properties: Readonly<Record<string, Schema>>, required: readonly string[] = []): Schema {
  return { type: 'object', properties, ...(required.length > 0 && { required }) }
}

/** The field cannot change after the object is created. */
export function immutable(schema: Schema): Schema {
  return { ...schema, 'x-kubernetes-validations': [{ rule: 'self == oldSelf', message: 'the field is immutable' }] }
}

export interface Column {
  readonly name: string
  readonly jsonPath: string
  readonly type?: 'string' | 'date' | 'integer' | 'boolean'
}

interface Description {
  readonly kind: string
  readonly plural: string
  readonly shortNames?: readonly string[]
  readonly description: string
  readonly spec: Schema
  readonly status?: Schema
  readonly columns?: readonly Column[]
}

export interface ManagementKind<T extends KubeObject> {
  readonly kind: Kind<T>
  readonly definition: CustomResourceDefinition
}

const AGE: Column = { name: 'Age', type: 'date', jsonPath: '.metadata.creationTimestamp' }

/** All management kinds are cluster-scoped and have a status subresource if they have a status. */
export function defineManagementKind<T extends KubeObject>(description: Description): ManagementKind<T> {
  const { kind, plural, shortNames = [], spec, status, columns = [] } = description
  const singular = kind.toLowerCase()
  const properties = { apiVersion: TEXT, kind: TEXT, metadata: { type: 'object' }, spec, ...(status && { status }) }
  return {
    kind: defineKind<T>({ group: GROUP, version: VERSION, kind, plural, namespaced: false }),
    definition: {
      apiVersion: 'apiextensions.k8s.io/v1',
      kind: 'CustomResourceDefinition',
      metadata: { name: `${plural}.${GROUP}` },
      spec: {
        group: GROUP,
        scope: 'Cluster',
        names: {
          plural,
          singular,
          kind,
          listKind: `${kind}List`,
          shortNames: [...shortNames],
          categories: ['management'],
        },
        versions: [
          {
            name: VERSION,
            served: true,
            storage: true,
            schema: {
              openAPIV3Schema: { type: 'object', description: description.description, required: ['spec'], properties },
            },
            ...(status !== undefined && { subresources: { status: {} } }),
            additionalPrinterColumns: [...columns, AGE].map((column) => ({ type: 'string', ...column })),
          },
        ],
      },
    } as unknown as CustomResourceDefinition,
  }
}
