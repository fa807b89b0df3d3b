/** Maps types of fields: a protobuf type to its JSON type and its name in Go. */
import type { ScalarType } from '../../src/meta/schema.ts'
import type { MessageField } from './facts.ts'

export type TypeRef =
  | { readonly kind: 'scalar'; readonly type: ScalarType; readonly goType: string | undefined }
  | { readonly kind: 'any'; readonly goType: string }
  | { readonly kind: 'struct' | 'alternatives'; readonly package: string; readonly name: string }
  | {
      readonly kind: 'list'
      readonly items: TypeRef
      readonly goType: string | undefined
      /** Protobuf has it in a message of its own. */
      readonly wrapped: boolean
    }
  | { readonly kind: 'map'; readonly values: TypeRef; readonly goType: string | undefined }

const SCALARS: Readonly<Record<string, ScalarType>> = {
  string: 'string',
  bool: 'boolean',
  int32: 'int32',
  int64: 'int64',
  double: 'float64',
  bytes: 'bytes',
  'k8s.io.apimachinery.pkg.api.resource.Quantity': 'quantity',
  'k8s.io.apimachinery.pkg.apis.meta.v1.Time': 'time',
  'k8s.io.apimachinery.pkg.apis.meta.v1.MicroTime': 'microtime',
  'k8s.io.apimachinery.pkg.apis.meta.v1.Duration': 'duration',
  'k8s.io.apimachinery.pkg.util.intstr.IntOrString': 'int-or-string',
}

const ANY: Readonly<Record<string, string>> = {
  any: 'interface {}',
  'k8s.io.apimachinery.pkg.runtime.RawExtension': 'runtime.RawExtension',
  'k8s.io.apimachinery.pkg.apis.meta.v1.FieldsV1': 'v1.FieldsV1',
}

interface Context {
  /** The protobuf package in which names without a dot are. */
  readonly proto: string
  /** Go's type of the field where it says more than protobuf: `v1.PodPhase`, `[]v1.Capability`, `v1.ResourceList`. */
  readonly goType?: string | undefined
}

export function readType(field: MessageField, { proto, goType }: Context): TypeRef {
  if (field.map !== undefined) {
    const values = /^map\[[^\]]+\](v\w+\.\w+)$/.exec(goType ?? '')?.[1]
    return { kind: 'map', values: readLeaf(field.map[1], { proto, goType: values }), goType }
  }
  const type = field.type ?? ''
  if (!field.repeated) return readLeaf(type, { proto, goType })
  const itemType = goType?.startsWith('[]') ? goType.slice(2) : undefined
  const items = readLeaf(type, { proto, goType: itemType })
  return { kind: 'list', items, goType: itemType === undefined ? goType : undefined, wrapped: false }
}

function readLeaf(type: string, { proto, goType }: Context): TypeRef {
  const full = type.startsWith('.') ? type.slice(1) : SCALARS[type] || ANY[type] ? type : `${proto}.${type}`
  const scalar = SCALARS[full]
  if (scalar !== undefined) return { kind: 'scalar', type: scalar, goType }
  const any = ANY[full]
  if (any !== undefined) return { kind: 'any', goType: any }
  const [folder = '', version = '', name = ''] = full.split('.').slice(-3)
  if (name === 'ExtraValue' || name === 'Verbs') {
    const items: TypeRef = { kind: 'scalar', type: 'string', goType: undefined }
    return { kind: 'list', items, goType: `${version}.${name}`, wrapped: true }
  }
  if (folder === 'apiextensions' && name === 'JSON') return { kind: 'any', goType: `${version}.JSON` }
  const kind = name.startsWith('JSONSchemaPropsOr') ? 'alternatives' : 'struct'
  return { kind, package: `${folder}/${version}`, name }
}
