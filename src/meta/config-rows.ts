/**
 * Defines the fields of configuration files by one row of text for each field. Schema, type, default, flag and support
 * follow from the row:
 *
 *     maxPods: 'int32 =110 0.. --max-pods'
 *     cgroupsPerQOS: '*bool =true --cgroups-per-qos unsupported: pods always have their own cgroups'
 *
 * In this order: Go's type as error texts name it, the default, the range of valid numbers, the flag that sets the
 * field, and why other values are rejected (`unsupported`) or have no effect (`idle`).
 */
import type { FieldSchema, Schema, StructSchema } from './schema.ts'

/** By Go's name of the struct, then by the JSON name of the field, in Go's order. */
export type StructTable = Readonly<Record<string, Readonly<Record<string, string>>>>

/** Go's types that are not structs of the table. A pointer (`*`) distinguishes zero from absent. */
const SCALARS = {
  bool: 'boolean',
  string: 'string',
  int32: 'int32',
  int64: 'int64',
  float32: 'float64',
  float64: 'float64',
  '[]uint8': 'bytes',
  'resource.Quantity': 'quantity',
  'resource.QuantityValue': 'quantity',
  'v1.Duration': 'duration',
  'v1.Time': 'time',
  'time.Duration': 'int64',
  'v1.VerbosityLevel': 'int64',
  'v1.Level': 'string',
  'v1.Stage': 'string',
  'v1alpha1.LimitType': 'string',
} as const

interface ScalarValues {
  readonly boolean: boolean
  readonly string: string
  readonly int32: number
  readonly int64: number
  readonly float64: number
  readonly bytes: string
  readonly quantity: string
  readonly duration: string
  readonly time: string
}

type Scalars = typeof SCALARS
type TypeOf<Row> = Row extends `${infer Type} ${string}` ? Type : Row
type IsPresent<S, Row> = Row extends `${string} =${string}` ? true : TypeOf<Row> extends keyof S ? true : false

type ValueOf<S, Type, Defaulted extends boolean> = Type extends keyof Scalars
  ? ScalarValues[Scalars[Type]]
  : Type extends keyof S
    ? Defaulted extends true
      ? Complete<S, Type>
      : Given<S, Type>
    : Type extends `*${infer Target}`
      ? ValueOf<S, Target, Defaulted>
      : Type extends `[]${infer Item}`
        ? readonly ValueOf<S, Item, Defaulted>[]
        : Type extends `map[string]${infer Item}`
          ? Readonly<Record<string, ValueOf<S, Item, Defaulted>>>
          : Type extends 'runtime.RawExtension'
            ? object
            : unknown

/** A struct with its defaults: fields with a default and structs that are no pointers are present. */
export type Complete<S, N extends keyof S> = {
  readonly [F in keyof S[N] as IsPresent<S, S[N][F]> extends true ? F : never]: ValueOf<S, TypeOf<S[N][F]>, true>
} & {
  readonly [F in keyof S[N] as IsPresent<S, S[N][F]> extends true ? never : F]?: ValueOf<S, TypeOf<S[N][F]>, true>
}

/** A struct as a file has it, without defaults. */
export type Given<S, N extends keyof S> = {
  readonly [F in keyof S[N]]?: ValueOf<S, TypeOf<S[N][F]>, false>
}

export interface ConfigRow {
  readonly type: string
  /** Empty for Go's zero value; undefined without a default. */
  readonly initial: string | undefined
  readonly low: number
  readonly high: number
  readonly flag: string | undefined
  /** The name of a flag type, where the field's type does not determine it. */
  readonly flagKind: string | undefined
  /** Only the default is accepted, for this reason. */
  readonly unsupported: string | undefined
  /** Any value is accepted without effect, for this reason. */
  readonly idle: string | undefined
}

export interface ConfigOption extends ConfigRow {
  /** `authentication.webhook.cacheTTL`. */
  readonly path: string
}

const ROW =
  /^(?<type>\S+)(?: =(?<initial>\S*))?(?: (?<low>-?\d*)\.\.(?<high>\d*))?(?: --(?<flag>[\w-]+)(?::(?<flagKind>\w+))?)?(?: unsupported: (?<unsupported>.+)| idle: (?<idle>.+))?$/

/** Throws for a text that is no row. */
export function parseRow(text: string): ConfigRow {
  const found = ROW.exec(text)?.groups
  if (found === undefined) throw new Error(`No row of a configuration table: "${text}"`)
  const { type = '', initial, flag, flagKind, unsupported, idle } = found
  const low = found['low'] ? Number(found['low']) : -Infinity
  const high = found['high'] ? Number(found['high']) : Infinity
  return { type, initial, low, high, flag, flagKind, unsupported, idle }
}

/** As error texts name it: `maxPods (--max-pods)`. */
export function optionLabel({ path, flag }: ConfigOption): string {
  return flag === undefined ? path : `${path} (--${flag})`
}

/** Upstream's text for a number outside of its range. */
export function rangeError(option: ConfigOption, values: object): string | false {
  const { path, low, high } = option
  const value = valueAt(values, path)
  if (typeof value !== 'number' || (value >= low && value <= high)) return false
  const start = `${optionLabel(option)} ${value} must`
  if (high < Infinity) return `${start} be between ${low} and ${high}, inclusive`
  return low === 0 ? `${start} not be a negative number` : `${start} be ${low} or greater`
}

/** All fields below `root`, except those in lists and behind pointers. */
export function optionsOf(structs: StructTable, root: string, path = ''): readonly ConfigOption[] {
  return Object.entries(structs[root] ?? {}).flatMap(([name, text]) => {
    const row = parseRow(text)
    const option = { ...row, path: `${path}${name}` }
    return [option, ...(Object.hasOwn(structs, row.type) ? optionsOf(structs, row.type, `${option.path}.`) : [])]
  })
}

/** `external` has the schemas of structs that are not in the table. */
export function schemaOf(
  structs: StructTable,
  goType: string,
  external: Readonly<Record<string, StructSchema>> = {},
): StructSchema {
  const typeOf = (type: string): Schema => {
    if (Object.hasOwn(SCALARS, type)) return { type: SCALARS[type as keyof Scalars], goType: type }
    if (Object.hasOwn(structs, type)) return schemaOf(structs, type, external)
    if (type.startsWith('[]')) return { type: 'list', items: typeOf(type.slice(2)), pointerItems: false }
    if (type.startsWith(MAP)) return { type: 'map', values: typeOf(type.slice(MAP.length)) }
    return external[type] ?? { type: 'any', goType: type }
  }
  const fields = Object.entries(structs[goType] ?? {}).map(([name, text]): [string, FieldSchema] => {
    const { type } = parseRow(text)
    const pointer = type.startsWith('*')
    return [name, { name, schema: typeOf(pointer ? type.slice(1) : type), required: false, pointer, omitEmpty: true }]
  })
  return { type: 'struct', goType, fields: new Map(fields), mapType: 'granular', preserveUnknown: false }
}

const MAP = 'map[string]'

type Values = Readonly<Record<string, unknown>>

/** Sets the defaults of absent fields, in the table's order. An empty value counts as absent, except behind a pointer. */
export function fillDefaults<S extends StructTable, N extends keyof S & string>(
  structs: S,
  goType: N,
  given: object,
): Complete<S, N> {
  const fields = Object.entries<string>(structs[goType] ?? {}).map(([name, text]): [string, unknown] => {
    return [name, fillField(structs, parseRow(text), (given as Values)[name])]
  })
  const filled = Object.fromEntries(fields.filter(([, value]) => value !== undefined))
  return { ...filled, ...given, ...filled } as Complete<S, N>
}

function fillField(structs: StructTable, { type, initial }: ConfigRow, value: unknown): unknown {
  const isZero = !type.startsWith('*') && (value === '0s' || value === '')
  if (value !== undefined && value !== null && !(isZero && initial !== undefined))
    return fillBelow(structs, type, value)
  if (initial !== undefined) return initialOf(type, initial)
  return Object.hasOwn(structs, type) ? fillDefaults(structs, type, {}) : undefined
}

function fillBelow(structs: StructTable, type: string, value: unknown): unknown {
  const target = type.replace(/^\*/, '')
  if (Object.hasOwn(structs, target)) return fillDefaults(structs, target, value as object)
  const item = target.slice(2)
  if (!target.startsWith('[]') || !Object.hasOwn(structs, item)) return value
  return (value as readonly Values[]).map((one) => fillDefaults(structs, item, one))
}

/** Lists are comma-separated. */
export function initialOf(type: string, text: string): unknown {
  const target = type.replace(/^\*/, '')
  if (target.startsWith('[]')) return text === '' ? [] : text.split(',')
  if (target.startsWith(MAP) || text === '{}') return {}
  const scalar = Object.hasOwn(SCALARS, target) ? SCALARS[target as keyof Scalars] : 'string'
  if (scalar === 'boolean') return text === 'true'
  if (scalar === 'duration') return text || '0s'
  return ['int32', 'int64', 'float64'].includes(scalar) ? Number(text) : text
}

/** The value at a dotted path. */
export function valueAt(values: object, path: string): unknown {
  return path.split('.').reduce<unknown>((at, name) => (at as Values | undefined)?.[name], values)
}

/** A copy with another value at a dotted path. */
export function withValueAt<T extends object>(values: T, path: string, value: unknown): T {
  const [first = '', ...rest] = path.split('.')
  const below = (values as Values)[first] ?? {}
  return { ...values, [first]: rest.length === 0 ? value : withValueAt(below, rest.join('.'), value) }
}
