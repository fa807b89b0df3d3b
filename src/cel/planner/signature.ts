/** Selects the overload of a CEL call at run time by the argument values, if the checker found several overloads. */
import type { Overload } from '../library.ts'
import type { CelType } from '../type.ts'
import {
  Double,
  Failure,
  ListValue,
  MapValue,
  TypeValue,
  Uint,
  isInt,
  typeNameOf,
  type Result,
  type Value,
} from '../value.ts'

type Test = (value: Value) => boolean

const tests: Readonly<Record<string, Test>> = {
  null: (value) => value === null,
  bool: (value) => typeof value === 'boolean',
  int: (value) => isInt(value),
  uint: (value) => value instanceof Uint,
  double: (value) => value instanceof Double,
  string: (value) => typeof value === 'string',
  bytes: (value) => value instanceof Uint8Array,
  timestamp: (value) => typeNameOf(value) === 'google.protobuf.Timestamp',
  duration: (value) => typeNameOf(value) === 'google.protobuf.Duration',
  type: (value) => value instanceof TypeValue,
}

/** Whether a value is of a type. Of lists and maps only the first element is looked at, as upstream does. */
export function fits(value: Value, type: CelType): boolean {
  switch (type.kind) {
    case 'list':
      return value instanceof ListValue && (value.size === 0 || fitsResult(value.at(0), type.element))
    case 'map':
      return value instanceof MapValue && (value.size === 0 || fitsEntry(value, type.key, type.value))
    case 'opaque':
      return typeNameOf(value) === type.name
    case 'object':
      return value instanceof MapValue
    case 'wrapper':
      return value === null || fits(value, type.of)
    default:
      return tests[type.kind]?.(value) ?? true
  }
}

const fitsResult = (value: Result | undefined, type: CelType): boolean =>
  value !== undefined && !(value instanceof Failure) && fits(value, type)

function fitsEntry(map: MapValue, key: CelType, value: CelType): boolean {
  for (const first of map.keys()) return fits(first, key) && fitsResult(map.get(first), value)
  return true
}

/** Whether nothing about a type is left to run time. */
export function isKnown(type: CelType | undefined): boolean {
  switch (type?.kind) {
    case undefined:
    case 'dyn':
    case 'error':
    case 'parameter':
    case 'wrapper':
    case 'object':
      return false
    case 'list':
      return isKnown(type.element)
    case 'map':
      return isKnown(type.key) && isKnown(type.value)
    case 'opaque':
      return type.parameters.every(isKnown)
    default:
      return type !== undefined && !('isUnsure' in type && type.isUnsure)
  }
}

type Call = (args: readonly Value[]) => Result

/** Calls the first overload that fits. */
export function dispatch(name: string, overloads: readonly Overload[]): Call {
  return (args) => {
    const found = overloads.find(({ args: types }) => fitsAll(args, types))
    if (found?.evaluate !== undefined) return apply(found, args)
    return new Failure(`no such overload: ${name}(${args.map(typeNameOf).join(', ')})`)
  }
}

const fitsAll = (args: readonly Value[], types: readonly CelType[]): boolean =>
  args.length === types.length && args.every((value, at) => fits(value, types[at] as CelType))

/** Calls with as many arguments as there are. */
export function apply({ evaluate }: Overload, [a, b, c, d]: readonly Value[]): Result {
  return evaluate === undefined
    ? new Failure('no such overload')
    : evaluate(a as Value, b as Value, c as Value, d as Value)
}
