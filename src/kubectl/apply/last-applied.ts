/** Reads and writes the last-applied-configuration annotation of client-side apply. */

import { stringifyJson } from '#lib/json/json.ts'
import type { JsonObject } from '#lib/json/value.ts'

import type { AnyObject } from '../session/rest.ts'

export const LAST_APPLIED = 'kubectl.kubernetes.io/last-applied-configuration'

/** The object for the annotation: without the annotation itself, with sorted keys. */
export function configurationOf(object: AnyObject): string {
  const { metadata, ...rest } = object
  const { annotations = {}, ...others } = metadata
  const { [LAST_APPLIED]: _, ...kept } = annotations
  // Upstream leaves an empty map here.
  return `${stringifyJson({ ...rest, metadata: { ...others, annotations: kept } }, { sortedKeys: true })}\n`
}

/** The object with its current state in the annotation. */
export function withLastApplied(object: AnyObject): AnyObject {
  const annotations = { ...object.metadata.annotations, [LAST_APPLIED]: configurationOf(object) }
  return { ...object, metadata: { ...object.metadata, annotations } }
}

/** The same for a generated object, which keeps its field order. */
export function withMadeConfig(object: AnyObject, isRequested: boolean): AnyObject {
  if (!isRequested) return object
  const annotations = { ...object.metadata.annotations, [LAST_APPLIED]: `${stringifyJson(object)}\n` }
  return { ...object, metadata: { ...object.metadata, annotations } }
}

/** `--save-config`: also updates an existing annotation. */
export function withSavedConfig(object: AnyObject, isRequested: boolean): AnyObject {
  const isThere = Object.hasOwn(object.metadata.annotations ?? {}, LAST_APPLIED)
  return isRequested || isThere ? withLastApplied(object) : object
}

/** The last applied configuration; undefined without one. */
export function lastApplied(object: AnyObject): JsonObject | undefined {
  const text = object.metadata.annotations?.[LAST_APPLIED]
  return text === undefined ? undefined : (JSON.parse(text) as JsonObject)
}
