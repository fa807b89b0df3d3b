/**
 * The CEL types of mutation expressions: `Object`, with arbitrary fields and nested types (`Object.spec.template`), and
 * `JSONPatch`.
 */
import { DYN, type ObjectType, STRING } from '#cel/type.ts'

import { declareObject } from './declared-type.ts'

const ROOT = 'Object'

export const jsonPatchType: ObjectType = declareObject('JSONPatch', {
  op: STRING,
  path: STRING,
  from: STRING,
  value: DYN,
})

/** `Object` or a part of it: every field exists with the dynamic type. */
export function objectType(name: string): ObjectType {
  return { kind: 'object', name, field: (jsonName) => ({ type: DYN, jsonName }) }
}

export function patchTypeNamed(name: string): ObjectType | undefined {
  if (name === jsonPatchType.name) return jsonPatchType
  return name === ROOT || name.startsWith(`${ROOT}.`) ? objectType(name) : undefined
}
