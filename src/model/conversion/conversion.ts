/**
 * Converts built-in kinds between versions, through the storage version. Most conversions change only apiVersion; the
 * others have rules.
 */
import { groups, kindFor } from '#apis/kinds.ts'
import { schemaFor } from '#apis/schemas.ts'
import { goQuote } from '#lib/go/text.ts'
import type { JsonObject } from '#lib/json/value.ts'
import { decodeValue } from '#meta/codec/decode.ts'
import { apiVersionOf, type GroupVersion, type GroupVersionKind, kindKey, kindOf } from '#meta/kind.ts'
import { deepCopy, type KubeObject } from '#meta/object.ts'
import type { StructSchema } from '#meta/schema.ts'

import type { Rule } from './rule.ts'
import { rules } from './rules.ts'
import { compareShapes } from './shape.ts'

/**
 * - `unknown-kind`: no built-in kind of that name and version
 * - `unsuitable`: the target is no version of the kind
 * - `unknown-conversion`: it is, but no conversion to it exists
 */
export type ConversionErrorCode = 'unknown-kind' | 'unsuitable' | 'unknown-conversion'

export class ConversionError extends Error {
  readonly code: ConversionErrorCode

  constructor(code: ConversionErrorCode, message: string) {
    super(message)
    this.name = 'ConversionError'
    this.code = code
  }
}

/** Upstream's name of its type table. */
const SCHEME_NAME = 'pkg/api/legacyscheme/scheme.go:30'

const ruleOf = new Map(rules.map((rule) => [kindKey(rule.spoke), rule]))
const tidyOf = new Map(rules.map((rule) => [kindKey(rule.hub), rule.tidyHub]))

/** The hub of a kind, also for removed versions that may still be stored. */
const storageOf = new Map<string, GroupVersion>()
for (const { kinds } of groups.flatMap(({ versions }) => versions)) {
  for (const { group, kind, storage } of kinds) if (storage !== undefined) storageOf.set(`${group}/${kind}`, storage)
}

/**
 * Converts an object or list to another version of its kind. Takes and returns canonical objects with their kind. Never
 * changes its argument, but may share parts with it or return it. Throws ConversionError with upstream's text.
 */
export function convert(object: KubeObject, to: GroupVersionKind): KubeObject {
  const from = kindOf(object)
  const { goType } = schemaOf(from)
  schemaOf(to)
  const item = itemKind(from, to)
  if (item !== undefined) return convertList(object, item, to)
  const hub = hubOf(from)
  // CustomResourceDefinitions can be large, and are stored in another version than they are served.
  if (isSame(from, to) && tidyOf.get(kindKey(hub)) === undefined) return object
  if (isSame(hub, hubOf(to))) return move(tidy(move(object, from, hub), hub), hub, to)
  // Kinds that are never stored have no hub: evictions, reviews.
  if (from.group === to.group && from.kind === to.kind) return move(object, from, to)
  const target = `${goQuote(apiVersionOf(to))} in scheme ${goQuote(SCHEME_NAME)}`
  throw new ConversionError('unsuitable', `${goType} is not suitable for converting to ${target}`)
}

function hubOf(gvk: GroupVersionKind): GroupVersionKind {
  const storage = kindFor(gvk)?.storage ?? storageOf.get(`${gvk.group}/${gvk.kind}`)
  return storage === undefined ? gvk : { ...storage, kind: gvk.kind }
}

function tidy(object: KubeObject, hub: GroupVersionKind): KubeObject {
  const tidyHub = tidyOf.get(kindKey(hub))
  return tidyHub === undefined ? object : fromJson(tidyHub(toJson(object)))
}

/** One step: to the hub, from the hub, or between two versions of the same shape. */
function move(object: KubeObject, from: GroupVersionKind, to: GroupVersionKind): KubeObject {
  if (isSame(from, to)) return object
  const [source, target] = [schemaOf(from), schemaOf(to)]
  const typeMeta = { kind: to.kind, apiVersion: apiVersionOf(to) }
  const change = ruleBetween(from, to)
  const { differences, sameLayout } = compareShapes(source, target)
  if (change === undefined && differences.length > 0) {
    const message = `converting (${source.goType}) to (${target.goType}): unknown conversion`
    throw new ConversionError('unknown-conversion', message)
  }
  if (change === undefined && sameLayout) return { ...object, ...typeMeta }
  const copy = toJson(copyForRules(object))
  const changed = { ...(change?.(copy) ?? copy), ...typeMeta }
  return fromJson(decodeValue(target, changed, 'Ignore', { offences: [] }) as JsonObject)
}

/** A copy that rules may change: of the metadata they change annotations only, and labels may be many. */
function copyForRules({ metadata, ...rest }: KubeObject): KubeObject {
  const { annotations } = metadata
  const own = annotations === undefined ? { ...metadata } : { ...metadata, annotations: { ...annotations } }
  return { metadata: own, ...deepCopy(rest) }
}

function ruleBetween(from: GroupVersionKind, to: GroupVersionKind): Rule['toHub'] | undefined {
  const up = ruleOf.get(kindKey(from))
  if (up !== undefined && isSame(up.hub, to)) return up.toHub
  const down = ruleOf.get(kindKey(to))
  return down !== undefined && isSame(down.hub, from) ? down.fromHub : undefined
}

/** For lists, their items. */
function itemKind(from: GroupVersionKind, to: GroupVersionKind): GroupVersionKind | undefined {
  const kind = from.kind.replace(/List$/, '')
  if (from.kind !== to.kind || kind === from.kind || schemaFor({ ...from, kind }) === undefined) return undefined
  return { ...from, kind }
}

/** Items of lists have no kind. */
function convertList(list: KubeObject, item: GroupVersionKind, to: GroupVersionKind): KubeObject {
  const { items } = toJson(list) as { items?: JsonObject[] | null }
  const target = { ...to, kind: item.kind }
  const typeMeta = { kind: item.kind, apiVersion: apiVersionOf(item) }
  const converted = items?.map((each) => {
    const {
      kind: _kind,
      apiVersion: _apiVersion,
      ...rest
    } = toJson(convert(fromJson({ ...typeMeta, ...each }), target))
    return rest
  })
  return fromJson({ ...toJson(list), apiVersion: apiVersionOf(to), items: converted ?? null })
}

function schemaOf(gvk: GroupVersionKind): StructSchema {
  const schema = schemaFor(gvk)
  if (schema !== undefined) return schema
  const where = `for version ${goQuote(apiVersionOf(gvk))} in scheme ${goQuote(SCHEME_NAME)}`
  throw new ConversionError('unknown-kind', `no kind ${goQuote(gvk.kind)} is registered ${where}`)
}

function isSame(a: GroupVersionKind, b: GroupVersionKind): boolean {
  return a.group === b.group && a.version === b.version && a.kind === b.kind
}

function toJson(object: KubeObject): JsonObject {
  return object as unknown as JsonObject
}

function fromJson(object: JsonObject): KubeObject {
  return object as unknown as KubeObject
}
