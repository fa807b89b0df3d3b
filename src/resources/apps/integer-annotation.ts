/** Annotations that stand for integer fields of versions long gone. */
import { parseGoInt } from '#lib/go-text.ts'
import type { KubeObject } from '#meta/object.ts'
import { badRequestError } from '#meta/status-errors.ts'

/**
 * The annotation as a number; undefined when it is absent. Throws StatusError 400 when it is no integer, for then the
 * object cannot be understood.
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

/** Brings the annotation into its one canonical form. Throws as `readIntegerAnnotation`. */
export function settleIntegerAnnotation(object: KubeObject, name: string): void {
  const value = readIntegerAnnotation(object, name)
  if (value !== undefined) object.metadata.annotations = { ...object.metadata.annotations, [name]: String(value) }
}

/** Writes of the status leave it as it was, as they do fields of the spec. */
export function keepAnnotation(next: KubeObject, old: KubeObject, name: string): void {
  const value = old.metadata.annotations?.[name]
  if (value !== undefined) next.metadata.annotations = { ...next.metadata.annotations, [name]: value }
  else delete next.metadata.annotations?.[name]
}
