/** Applies vars: replaces `$(NAME)` in certain fields with a value of a resource. */
import { isJsonObject, type JsonValue } from '#lib/json/value.ts'

import { type Gvk, gvkText, type Id, idText, isSelected, KustomizeError } from './ids.ts'
import { type FieldSpec, matchPath, type ValueSlot, scalarText, splitDotted, visitSpec } from './paths.ts'
import type { Resources } from './resource.ts'

export interface Var {
  readonly name?: string
  readonly objref?: Partial<Id> & { readonly apiVersion?: string }
  readonly fieldref?: { readonly fieldPath?: string; readonly fieldpath?: string }
}

/** Replaces the vars and reports unused ones. Throws KustomizeError. */
export function resolveVars(resources: Resources, vars: readonly Var[], specs: readonly FieldSpec[]): string[] {
  if (vars.length === 0) return []
  const values = new Map(vars.map((one) => [one.name ?? '', valueOf(resources, one)]))
  const used = new Set<string>()
  const lookup = (name: string): JsonValue | undefined => {
    const value = values.get(name)
    if (value !== undefined) used.add(name)
    return value
  }
  const visit = (slot: ValueSlot): void => {
    const { value } = slot
    if (typeof value === 'string') slot.set(expanded(value, lookup))
    else if (Array.isArray(value)) {
      for (const [index, item] of value.entries()) visit({ value: item, set: (next) => (value[index] = next) })
    } else if (value !== undefined && value !== null && isJsonObject(value)) {
      for (const [name, item] of Object.entries(value)) visit({ value: item, set: (next) => (value[name] = next) })
    }
  }
  for (const resource of resources.list) {
    for (const spec of specs) visitSpec(resource, spec, { created: () => '', visit })
  }
  return [...values.keys()].filter((name) => !used.has(name))
}

function gvkOf({ apiVersion = '', group, version, kind = '' }: NonNullable<Var['objref']>): Gvk {
  const at = apiVersion.indexOf('/')
  return {
    group: group ?? (at < 0 ? '' : apiVersion.slice(0, at)),
    version: version ?? apiVersion.slice(at + 1),
    kind,
  }
}

function valueOf({ list }: Resources, { name = '', objref = {}, fieldref = {} }: Var): JsonValue {
  const gvk = gvkOf(objref)
  const { name: wanted = '', namespace = '' } = objref
  const fits = (id: Id): boolean =>
    id.name === wanted && isSelected(id, gvk) && (namespace === '' || namespace === id.namespace)
  const found = list.filter(({ previous, id }) => [...previous, id].some(fits))
  const [resource] = found
  if (resource === undefined) {
    const shown = `{${name} ${gvkText(gvk)} {${pathOf(fieldref)}}}`
    throw new KustomizeError(`var '${shown}' cannot be mapped to a field in the set of known resources`)
  }
  if (found.length > 1) {
    const shown = idText({ ...gvk, name: wanted, namespace })
    throw new KustomizeError(`found ${found.length} resId matches for var ${name} ${shown} (unable to disambiguate)`)
  }
  const path = pathOf(fieldref)
  const root: ValueSlot = { value: resource.value, set: () => undefined }
  const value = matchPath(root, splitDotted(path.replaceAll(/\[(\d+)\]/g, '.$1')))[0]?.value ?? null
  if (value === null) throw new KustomizeError(`field specified in var '${name}' not found in corresponding resource`)
  return value
}

function pathOf({ fieldPath, fieldpath }: NonNullable<Var['fieldref']>): string {
  return fieldPath ?? fieldpath ?? 'metadata.name'
}

/** `$$` is an escaped dollar; a var that is the whole value keeps its type. */
function expanded(text: string, lookup: (name: string) => JsonValue | undefined): JsonValue {
  const whole = /^\$\(([^()]*)\)$/.exec(text)?.[1]
  if (whole !== undefined) return lookup(whole) ?? text
  return text.replaceAll(/\$\$|\$\(([^()]*)\)/g, (all, name: string | undefined) => {
    if (name === undefined) return '$'
    const value = lookup(name)
    return value === undefined ? all : scalarText(value)
  })
}
