/**
 * Migrates objects from client-side apply, which stored the configuration in an annotation. Fields in that annotation
 * that no other client has changed cause no conflict for kubectl.
 */
import { byteLength } from '#lib/go/text.ts'
import { stringifyJson } from '#lib/json/json.ts'

import type { KubeObject } from '../object.ts'
import { without } from '../patch/json-map.ts'
import type { ApplyKind, Conflict } from './apply-kind.ts'
import { compareTyped } from './compare.ts'
import { difference, type FieldSet, isEmptySet } from './field-set.ts'
import { validateTyped } from './validate.ts'
import { fieldSetOf } from './walk.ts'

const ANNOTATION = 'kubectl.kubernetes.io/last-applied-configuration'

/** The manager of the annotation. Other manager names disable this migration. */
const KUBECTL = 'kubectl'

/** The size limit of all annotations of an object. */
const MAX_ANNOTATION_BYTES = 256 * 1024

export interface LastAppliedRequest {
  readonly kind: ApplyKind
  readonly live: KubeObject
  readonly manager: string
  /** The version of the request: an annotation in another version explains nothing. */
  readonly apiVersion: string
}

/** The conflicts that client-side apply does not explain. */
export function withoutLastApplied(request: LastAppliedRequest, conflicts: readonly Conflict[]): readonly Conflict[] {
  const applied = lastAppliedFields(request)
  if (applied === undefined) return conflicts
  const rest = conflicts.map(({ manager, fields }) => ({ manager, fields: difference(fields, applied) }))
  return rest.filter(({ fields }) => !isEmptySet(fields))
}

function lastAppliedFields({ kind, live, manager, apiVersion }: LastAppliedRequest): FieldSet | undefined {
  const text = live.metadata.annotations?.[ANNOTATION]
  const type = kind.typeOf(apiVersion)
  if (manager !== KUBECTL || text === undefined || text === '' || type === undefined) return undefined
  try {
    const config = JSON.parse(text) as KubeObject
    if (config.apiVersion !== apiVersion || (config.kind ?? '') === '') return undefined
    if (validateTyped(type, config).length > 0 || validateTyped(type, live).length > 0) return undefined
    const { modified, added, removed } = compareTyped(type, config, live)
    return [modified, added, removed].reduce(difference, fieldSetOf(type, config))
  } catch {
    // An invalid annotation explains nothing.
    return undefined
  }
}

/** Updates an existing annotation when kubectl applies, for older kubectls. */
export function refreshLastApplied(manager: string, object: KubeObject, config: KubeObject): KubeObject {
  const annotations = textMap(object.metadata.annotations) ?? {}
  if (manager !== KUBECTL || (annotations[ANNOTATION] ?? '') === '') return object
  const { annotations: _, ...metadata } = config.metadata
  const own = textMap(config.metadata.annotations)
  const bare = own === undefined ? metadata : { ...metadata, annotations: without(own, ANNOTATION) }
  const text = `${stringifyJson({ ...config, metadata: bare }, { sortedKeys: true })}\n`
  const next = { ...annotations, [ANNOTATION]: text }
  const fits = sizeOf(next) <= MAX_ANNOTATION_BYTES
  const kept = fits ? next : (without(next, ANNOTATION) as TextMap)
  return { ...object, metadata: { ...object.metadata, annotations: kept } }
}

type TextMap = Record<string, string>

/** Like Go, null text counts as empty. */
function textMap(map: Readonly<Record<string, string | null>> | null | undefined): TextMap | undefined {
  if (map === undefined || map === null) return undefined
  return Object.fromEntries(Object.entries(map).map(([key, value]) => [key, value ?? '']))
}

function sizeOf(annotations: Readonly<TextMap>): number {
  return Object.entries(annotations).reduce((sum, [key, value]) => sum + byteLength(key) + byteLength(value), 0)
}
