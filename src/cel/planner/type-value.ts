/** Represents CEL types as values, as `type(x)` returns them. */
import type { CelType } from '../type.ts'
import { TypeValue, typeNameOf, type Value } from '../value.ts'

const names: Readonly<Record<string, string>> = {
  null: 'null_type',
  timestamp: 'google.protobuf.Timestamp',
  duration: 'google.protobuf.Duration',
}

export function typeValueOf(type: CelType): TypeValue {
  if (type.kind === 'object' || type.kind === 'opaque') return new TypeValue(type.name)
  if (type.kind === 'wrapper') return typeValueOf(type.of)
  return new TypeValue(names[type.kind] ?? type.kind)
}

/** `type(v)`. */
export const typeOfValue = (value: Value): TypeValue => new TypeValue(typeNameOf(value))
