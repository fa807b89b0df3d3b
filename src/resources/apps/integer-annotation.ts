/** Reads and writes annotations that replace integer fields of removed API versions. */
import { parseGoInt } from '#lib/go/text.ts'
import type { KubeObject } from '#meta/object.ts'
import { badRequestError } from '#meta/status-errors.ts'

/**
 * The annotation as a number; undefined if it is absent. Throws StatusError 400 if it is no integer, because the object
 * then cannot be converted.
 */
export function readIntegerAnnotation(object: KubeObject, name: string): number | undefined {
  const { annotations } = object.metadata
  if (annotations === undefined || !Object.hasOwn(annotations, name)) return undefined
  const text = annotations[name] as string
  try {
    return parseGoInt(text)
  } catch (cause) {
    const { kind = '', apiVersion = '' } = object
    const version = apiVersion.split('/').at(-1)
    const why = `failed to parse annotation[${name}]=${text} as int64: ${(cause as Error).message}`
    throw badRequestError(`${kind} in version "${version}" cannot be handled as a ${kind}: ${why}`)
  }
}

/** Rewrites the annotation in canonical form. Throws like `readIntegerAnnotation`. */
export function settleIntegerAnnotation(object: KubeObject, name: string): void {
  const value = readIntegerAnnotation(object, name)
  if (value !== undefined) object.metadata.annotations = { ...object.metadata.annotations, [name]: String(value) }
}

/** Status updates keep the annotation, like fields of the spec. */
export function keepAnnotation(next: KubeObject, old: KubeObject, name: string): void {
  const value = old.metadata.annotations?.[name]
  if (value !== undefined) next.metadata.annotations = { ...next.metadata.annotations, [name]: value }
  else delete next.metadata.annotations?.[name]
}
