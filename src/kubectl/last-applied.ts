/** The annotation in which client-side apply remembers what was applied last. */
import type { JsonObject } from '#lib/json-value.ts'
import { stringifyJson } from '#lib/json.ts'

import type { AnyObject } from './rest.ts'

export const LAST_APPLIED = 'kubectl.kubernetes.io/last-applied-configuration'

/** The object as the annotation holds it: without the annotation itself, keys in order. */
export function configurationOf(object: AnyObject): string {
  const { metadata, ...rest } = object
  const { annotations = {}, ...others } = metadata
  const { [LAST_APPLIED]: _, ...kept } = annotations
  // Upstream leaves an empty map behind.
  return `${stringifyJson({ ...rest, metadata: { ...others, annotations: kept } }, { sortedKeys: true })}\n`
}

/** The object with what it is now in the annotation. */
export function withLastApplied(object: AnyObject): AnyObject {
  const annotations = { ...object.metadata.annotations, [LAST_APPLIED]: configurationOf(object) }
  return { ...object, metadata: { ...object.metadata, annotations } }
}

/** The same of what was made here, which is remembered as it is printed: in the order of its fields. */
export function withMadeConfig(object: AnyObject, isAsked: boolean): AnyObject {
  if (!isAsked) return object
  const annotations = { ...object.metadata.annotations, [LAST_APPLIED]: `${stringifyJson(object)}\n` }
  return { ...object, metadata: { ...object.metadata, annotations } }
}

/** `--save-config`: also where the annotation is already there. */
export function withSavedConfig(object: AnyObject, isAsked: boolean): AnyObject {
  const isThere = Object.hasOwn(object.metadata.annotations ?? {}, LAST_APPLIED)
  return isAsked || isThere ? withLastApplied(object) : object
}

/** What was applied last; undefined when nobody did. */
export function lastApplied(object: AnyObject): JsonObject | undefined {
  const text = object.metadata.annotations?.[LAST_APPLIED]
  return text === undefined ? undefined : (JSON.parse(text) as JsonObject)
}
