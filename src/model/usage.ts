/**
 * Defines the kinds of metrics.k8s.io/v1beta1: resource usage of nodes and pods. The generated tables lack them,
 * because upstream's API server does not have them.
 */
import type { Kind } from '#apis/kinds.ts'
import { schemaFor } from '#apis/schemas.ts'
import type { KubeObject } from '#meta/object.ts'
import type { FieldSchema, ProtobufType, ScalarType, Schema, StructSchema } from '#meta/schema.ts'

/** Quantities by resource: `cpu` and `memory`. */
export type Usage = Readonly<Record<string, string>>

interface UsageObject extends KubeObject {
  /** The end of the window. */
  readonly timestamp: string | null
  /** The length of the window: `15s`. */
  readonly window: string
}

export interface NodeUsage extends UsageObject {
  readonly usage: Usage
}

export interface PodUsage extends UsageObject {
  readonly containers?: readonly { readonly name: string; readonly usage?: Usage }[] | null
}

export const NodeUsages: Kind<NodeUsage> = usageKind('NodeMetrics', 'nodes', false)
export const PodUsages: Kind<PodUsage> = usageKind('PodMetrics', 'pods', true)

function usageKind<T extends KubeObject>(kind: string, plural: string, namespaced: boolean): Kind<T> {
  return {
    group: 'metrics.k8s.io',
    version: 'v1beta1',
    kind,
    plural,
    singular: '',
    listKind: `${kind}List`,
    namespaced,
    shortNames: [],
    categories: [],
    verbs: ['get', 'list'],
    subresources: [],
  }
}

const scalar = (type: ScalarType): Schema => ({ type, goType: type })
const USAGE: Schema = { type: 'map', values: scalar('quantity') }
const CONTAINER: StructSchema = struct('v1beta1.ContainerMetrics', [
  ['name', scalar('string'), 'string'],
  ['usage', USAGE, 'map'],
])

export const NODE_USAGE_SCHEMA: StructSchema = measured('v1beta1.NodeMetrics', ['usage', USAGE, 'map'])
export const POD_USAGE_SCHEMA: StructSchema = measured('v1beta1.PodMetrics', [
  'containers',
  { type: 'list', items: CONTAINER, pointerItems: false },
  'message',
])

type Row = readonly [name: string, schema: Schema, wire: ProtobufType]

function measured(goType: string, last: Row): StructSchema {
  const metadata = schemaFor({ group: '', version: 'v1', kind: 'ConfigMap' })?.fields.get('metadata')?.schema
  return struct(goType, [
    ['metadata', metadata as Schema, 'message'],
    ['timestamp', scalar('time'), 'message'],
    ['window', scalar('duration'), 'message'],
    last,
  ])
}

/** Numbered in order. */
function struct(goType: string, rows: readonly Row[]): StructSchema {
  const fields = rows.map(([name, schema, wire], at) => {
    const omitEmpty = name === 'metadata'
    const field: FieldSchema = { name, schema, required: false, pointer: false, omitEmpty }
    return { number: at + 1, wire, repeated: schema.type === 'list', field }
  })
  return {
    type: 'struct',
    goType,
    fields: new Map(fields.map(({ field }) => [field.name, field])),
    mapType: 'granular',
    preserveUnknown: false,
    protobuf: { fields },
  }
}
