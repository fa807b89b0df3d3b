/**
 * The types in which mutating policies write what they change: `Object`, whose fields and the types below it
 * (`Object.spec.template`) are whatever the expression says, and `JSONPatch`.
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

/** `Object` or a part of it: every field is there, and nothing is known of it. */
export function objectType(name: string): ObjectType {
  return { kind: 'object', name, field: (jsonName) => ({ type: DYN, jsonName }) }
}

export function patchTypeNamed(name: string): ObjectType | undefined {
  if (name === jsonPatchType.name) return jsonPatchType
  return name === ROOT || name.startsWith(`${ROOT}.`) ? objectType(name) : undefined
}
