/**
 * Collects the variables, types and functions that a CEL environment declares. Declarations of libraries are collected
 * once for each list of libraries.
 */
import type { FunctionDeclaration, Library, Overload } from '../library.ts'
import {
  BOOL,
  BYTES,
  type CelType,
  DOUBLE,
  DURATION,
  DYN,
  INT,
  listOf,
  mapOf,
  NULL,
  parametersOf,
  STRING,
  TIMESTAMP,
  UINT,
  wrapperOf,
} from '../type.ts'

export interface DeclaredFunction {
  readonly name: string
  readonly overloads: readonly DeclaredOverload[]
}

export interface DeclaredOverload {
  readonly overload: Overload
  /** The names of its type parameters. */
  readonly parameters: readonly string[]
}

/** The functions and types of libraries by name, shared by all environments with the same libraries. */
interface Names {
  readonly functions: ReadonlyMap<string, DeclaredFunction>
  readonly types: ReadonlyMap<string, CelType>
  /** The first parts of all qualified names. */
  readonly namespaces: ReadonlySet<string>
}

const namesOfLibraries = new WeakMap<readonly Library[], Names>()

export interface Declarations {
  readonly functions: ReadonlyMap<string, DeclaredFunction>
  readonly variables: ReadonlyMap<string, CelType>
  readonly typeNamed: (name: string) => CelType | undefined
  /** Whether a name that begins so may be one with dots. */
  readonly isNamespace: (name: string) => boolean
}

export function declare(
  libraries: readonly Library[],
  variables: Readonly<Record<string, CelType>>,
  typeNamed?: Declarations['typeNamed'],
): Declarations {
  const names = namesOfLibraries.get(libraries) ?? gather(libraries)
  namesOfLibraries.set(libraries, names)
  const dotted = new Set(Object.keys(variables).flatMap((name) => namespaceOf(name)))
  return {
    functions: names.functions,
    variables: new Map(Object.entries(variables)),
    typeNamed: (name) => names.types.get(name) ?? typeNamed?.(name),
    isNamespace: (name) => names.namespaces.has(name) || dotted.has(name) || typeNamed?.(name) !== undefined,
  }
}

function gather(libraries: readonly Library[]): Names {
  const functions = new Map<string, DeclaredFunction>()
  const types = new Map<string, CelType>(Object.entries(WELL_KNOWN_TYPES).map(([name, { type }]) => [name, type]))
  for (const library of libraries) {
    for (const declaration of library.functions) functions.set(declaration.name, merge(functions, declaration))
    for (const [name, type] of Object.entries(library.types ?? {})) types.set(name, type)
  }
  const namespaces = new Set([...functions.keys(), ...types.keys()].flatMap((name) => namespaceOf(name)))
  return { functions, types, namespaces }
}

function merge(
  functions: ReadonlyMap<string, DeclaredFunction>,
  { name, overloads }: FunctionDeclaration,
): DeclaredFunction {
  const added = overloads.map((overload) => {
    const parameters = new Set([...overload.args, overload.result].flatMap((type) => parameterNames(type)))
    return { overload, parameters: [...parameters] }
  })
  return { name, overloads: [...(functions.get(name)?.overloads ?? []), ...added] }
}

function parameterNames(type: CelType): readonly string[] {
  return type.kind === 'parameter' ? [type.name] : parametersOf(type).flatMap((inner) => parameterNames(inner))
}

function namespaceOf(name: string): readonly string[] {
  const dot = name.indexOf('.')
  return dot === -1 ? [] : [name.slice(0, dot)]
}

interface WellKnownType {
  readonly type: CelType
  readonly fields: Readonly<Record<string, CelType>>
}

const wrapping = (type: typeof BOOL): WellKnownType => ({ type: wrapperOf(type), fields: { value: type } })
const wrappingNarrow = (type: typeof BOOL): WellKnownType => ({
  type: { ...wrapperOf(type), isNarrow: true },
  fields: { value: type },
})

/** Messages of protobuf that are something else to CEL; they can be written as literals. */
const WELL_KNOWN_TYPES: Readonly<Record<string, WellKnownType>> = {
  'google.protobuf.BoolValue': wrapping(BOOL),
  'google.protobuf.BytesValue': wrapping(BYTES),
  'google.protobuf.DoubleValue': wrapping(DOUBLE),
  'google.protobuf.FloatValue': wrappingNarrow(DOUBLE),
  'google.protobuf.Int32Value': wrappingNarrow(INT),
  'google.protobuf.Int64Value': wrapping(INT),
  'google.protobuf.StringValue': wrapping(STRING),
  'google.protobuf.UInt32Value': wrappingNarrow(UINT),
  'google.protobuf.UInt64Value': wrapping(UINT),
  'google.protobuf.Duration': { type: DURATION, fields: { seconds: INT, nanos: INT } },
  'google.protobuf.Timestamp': { type: TIMESTAMP, fields: { seconds: INT, nanos: INT } },
  'google.protobuf.Any': { type: { ...DYN, isAny: true }, fields: { type_url: STRING, value: BYTES } },
  'google.protobuf.ListValue': { type: listOf(DYN), fields: { values: listOf(DYN) } },
  'google.protobuf.Struct': { type: mapOf(STRING, DYN), fields: { fields: mapOf(STRING, DYN) } },
  'google.protobuf.Value': {
    type: DYN,
    fields: {
      null_value: NULL,
      number_value: DOUBLE,
      string_value: STRING,
      bool_value: BOOL,
      struct_value: mapOf(STRING, DYN),
      list_value: listOf(DYN),
    },
  },
}

/** The fields of a literal of the type; undefined of what is not a message. */
export function messageFields(name: string, type: CelType): ((field: string) => CelType | undefined) | undefined {
  const known = WELL_KNOWN_TYPES[name]?.fields
  if (known !== undefined) return (field) => (Object.hasOwn(known, field) ? known[field] : undefined)
  return type.kind === 'object' ? (field) => type.field(field)?.type : undefined
}
