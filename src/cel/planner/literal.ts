/** Compiles CEL literals of lists, maps and messages. */
import type { CelType } from '../type.ts'
import { Double, Failure, MapValue, Optional, Uint, isInt, type Result, type Value } from '../value.ts'
import { ArrayList } from '../values/list.ts'
import { EntryMap, mapKey } from '../values/map.ts'
import { showValue } from '../values/show.ts'
import { Timestamp, durationOrOverflow, shiftTimestamp } from '../values/time.ts'
import { charge, type Evaluate, type Frame } from './frame.ts'

const LIST_COST = 10
const MAP_COST = 30
const MESSAGE_COST = 40

export interface Part {
  readonly evaluate: Evaluate
  readonly isOptional: boolean
}

/** The value of an optional part; undefined when it is to be left out. */
function unwrap(value: Value, complaint: string): Result | undefined {
  if (value instanceof Optional) return value.value
  return new Failure(`cannot initialize optional ${complaint} from non-optional value ${showValue(value)}`)
}

export function listLiteral(parts: readonly Part[]): Evaluate {
  return (frame) => {
    const items: Value[] = []
    const failure = collect(frame, parts, items)
    charge(frame, LIST_COST)
    return failure ?? new ArrayList(items)
  }
}

function collect(frame: Frame, parts: readonly Part[], items: Value[]): Failure | undefined {
  for (const { evaluate, isOptional } of parts) {
    const value = evaluate(frame)
    if (value instanceof Failure) return value
    const item = isOptional ? unwrap(value, 'list element') : value
    if (item instanceof Failure) return item
    if (item !== undefined) items.push(item)
  }
  return undefined
}

export interface EntryPart extends Part {
  readonly key: Evaluate
}

export function mapLiteral(parts: readonly EntryPart[]): Evaluate {
  return (frame) => {
    const map = new EntryMap()
    const failure = fill(frame, parts, map)
    charge(frame, MAP_COST)
    return failure ?? map
  }
}

function fill(frame: Frame, parts: readonly EntryPart[], map: EntryMap): Failure | undefined {
  for (const { key, evaluate, isOptional } of parts) {
    const name = key(frame)
    if (name instanceof Failure) return name
    const value = evaluate(frame)
    if (value instanceof Failure) return value
    const item = isOptional ? unwrap(value, `entry '${showValue(name)}'`) : value
    if (item instanceof Failure) return item
    if (item === undefined) map.entries.delete(mapKey(name))
    else map.set(name, item)
  }
  return undefined
}

/** An object that an expression made: `Object{…}`, `JSONPatch{…}`. */
export class MessageValue extends MapValue {
  readonly typeName: string
  readonly fields: ReadonlyMap<string, Value>
  constructor(typeName: string, fields: ReadonlyMap<string, Value>) {
    super()
    this.typeName = typeName
    this.fields = fields
  }
  get size(): number {
    return this.fields.size
  }
  get(key: Value): Result | undefined {
    return typeof key === 'string' ? this.fields.get(key) : undefined
  }
  keys(): Iterable<Value> {
    return this.fields.keys()
  }
}

export interface FieldPart extends Part {
  readonly field: string
  /** Its key in JSON. */
  readonly jsonName: string
}

export function messageLiteral(type: CelType | undefined, parts: readonly FieldPart[]): Evaluate {
  return (frame) => {
    const fields = new Map<string, Value>()
    const failure = assign(frame, parts, fields)
    charge(frame, MESSAGE_COST)
    return failure ?? messageOf(type, fields)
  }
}

function assign(frame: Frame, parts: readonly FieldPart[], fields: Map<string, Value>): Failure | undefined {
  for (const { evaluate, isOptional, field, jsonName } of parts) {
    const value = evaluate(frame)
    if (value instanceof Failure) return value
    const item = isOptional ? unwrap(value, `entry '${field}'`) : value
    if (item instanceof Failure) return item
    if (item === undefined) fields.delete(jsonName)
    else fields.set(jsonName, item)
  }
  return undefined
}

function messageOf(type: CelType | undefined, fields: ReadonlyMap<string, Value>): Result {
  if (type?.kind === 'object') return new MessageValue(type.name, fields)
  return wellKnown(type, fields)
}

/** google.protobuf's own: wrappers are what they hold, and zero when they hold nothing. */
function wellKnown(type: CelType | undefined, fields: ReadonlyMap<string, Value>): Result {
  switch (type?.kind) {
    case 'wrapper':
      return wrapped(fields.get('value') ?? zeros[type.of.kind] ?? null, type.isNarrow === true)
    case 'timestamp':
      return shiftTimestamp(new Timestamp(0, 0), nanosOf(fields))
    case 'duration':
      return durationOrOverflow(nanosOf(fields))
    case 'map':
      return fields.get('fields') ?? new EntryMap()
    case 'list':
      return fields.get('values') ?? new ArrayList([])
    case 'dyn':
      return type.isAny === true ? new Failure(NO_ANY) : ([...fields.values()].at(-1) ?? null)
    default:
      return null
  }
}

/** There is nothing that could be in it. */
const NO_ANY = 'unsupported conversion to ref.Val: (*dynamicpb.Message)'

/** Of 32 bits, numbers are rounded and integers refused where they do not fit. */
function wrapped(value: Value, isNarrow: boolean): Result {
  if (!isNarrow) return value
  if (value instanceof Double) return new Double(Math.fround(value.value))
  if (value instanceof Uint && value.value > 0xffffffffn) return overflow('UInt32Value', 'unsigned integer')
  if (isInt(value) && BigInt.asIntN(32, BigInt(value)) !== BigInt(value)) return overflow('Int32Value', 'integer')
  return value
}

function overflow(message: string, what: string): Failure {
  return new Failure(`field type conversion error for google.protobuf.${message}.value value type: ${what} overflow`)
}

const zeros: Readonly<Record<string, Value>> = {
  bool: false,
  int: 0,
  uint: new Uint(0n),
  double: new Double(0),
  string: '',
  bytes: new Uint8Array(),
}

function nanosOf(fields: ReadonlyMap<string, Value>): bigint {
  const [seconds, nanos] = [fields.get('seconds') ?? 0, fields.get('nanos') ?? 0]
  return isInt(seconds) && isInt(nanos) ? BigInt(seconds) * 1_000_000_000n + BigInt(nanos) : 0n
}
