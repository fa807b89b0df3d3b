/** Citations of fields: `status.conditions[Ready].reason` of `pods/default/web-1@812`. */
import type { Kind } from '#apis/kinds.ts'
import { groupResourceText } from '#meta/kind.ts'
import type { KubeObject } from '#meta/object.ts'

import { type Evidence, nameOf } from './explanation.ts'

/** An object with its kind, which objects in lists do not have. */
export interface Sighting<T extends KubeObject = KubeObject> {
  readonly kind: Kind<T>
  readonly object: T
}

/** `pods/default/web-1`. */
export function referenceTo({ kind, object }: Sighting): string {
  return `${groupResourceText({ group: kind.group, resource: kind.plural })}/${nameOf(object)}`
}

/** `pods/default/web-1@812`. */
export function versionOf(sighting: Sighting): string {
  return `${referenceTo(sighting)}@${sighting.object.metadata.resourceVersion ?? ''}`
}

/** Fields of an object. Reader.cite also reads them again before an explanation is given; versions in the history do not change. */
export function citeOf(sighting: Sighting, ...fieldPaths: readonly string[]): Evidence[] {
  return fieldPaths.map((fieldPath) => {
    const value = fieldAt(sighting.object, fieldPath)
    return { object: versionOf(sighting), fieldPath, ...(value !== undefined && { value }) }
  })
}

/** The value at a path. Brackets hold the name of a member, the name or type of an element, or its index. */
export function fieldAt(object: unknown, fieldPath: string): unknown {
  let value = object
  for (const [, inBrackets, plain] of fieldPath.matchAll(/\[([^\]]*)\]|([^.[\]]+)/g)) {
    value = memberOf(value, inBrackets ?? plain ?? '')
  }
  return value
}

function memberOf(value: unknown, name: string): unknown {
  if (Array.isArray(value)) return value.find((item: unknown) => isNamed(item, name)) ?? value[Number(name)]
  if (typeof value !== 'object' || value === null || !Object.hasOwn(value, name)) return undefined
  return (value as Readonly<Record<string, unknown>>)[name]
}

/** Containers and ports have names, conditions have types, taints have keys. */
function isNamed(item: unknown, text: string): boolean {
  if (typeof item !== 'object' || item === null) return false
  const { name, type, key } = item as Readonly<Record<string, unknown>>
  return (name ?? type ?? key) === text
}
