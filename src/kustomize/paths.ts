/** Parses and resolves paths in resources: field specs of transformers, and dotted paths of replacements. */
import { isJsonObject, type JsonObject, type JsonValue } from '#lib/json/value.ts'

import { type Gvk, idText, isSelected, KustomizeError } from './ids.ts'
import type { Resource } from './resource.ts'

export interface FieldSpec extends Partial<Gvk> {
  readonly path: string
  readonly create?: boolean
}

/** A value in a resource that can be replaced. */
export interface ValueSlot {
  readonly value: JsonValue | undefined
  readonly set: (value: JsonValue) => void
}

/** `a/b\/c[]/d` → `a`, `b/c[]`, `d`. */
export function splitPath(path: string, separator: string): string[] {
  const parts: string[] = []
  let part = ''
  for (let at = 0; at < path.length; at++) {
    if (path[at] === '\\' && path[at + 1] === separator) part += path[++at] as string
    else if (path[at] === separator) {
      parts.push(part)
      part = ''
    } else part += path[at] as string
  }
  return [...parts, part]
}

export interface SpecVisitor {
  /** The value to create if the spec requires it. */
  readonly created: () => JsonValue
  readonly visit: (slot: ValueSlot) => void
}

/** Visits every value that matches the spec. Throws KustomizeError. */
export function visitSpec(resource: Resource, spec: FieldSpec, visiting: SpecVisitor): void {
  if (!isSelected(resource.gvk, spec)) return
  try {
    descend(
      { value: resource.value, set: (value) => (resource.value = value as JsonObject) },
      splitPath(spec.path, '/'),
      spec,
      visiting,
    )
  } catch (error) {
    throw new KustomizeError(
      `considering field '${spec.path}' of object ${idText(resource.id)}: ${(error as Error).message}`,
      { cause: error },
    )
  }
}

function descend(slot: ValueSlot, path: readonly string[], spec: FieldSpec, visiting: SpecVisitor): void {
  const { value } = slot
  const [first, ...rest] = path
  if (first === undefined) return visiting.visit(slot)
  if (value === undefined || value === null) return
  if (Array.isArray(value)) {
    try {
      for (const [index, item] of value.entries()) {
        descend({ value: item, set: (next) => (value[index] = next) }, path, spec, visiting)
      }
    } catch (error) {
      throw new KustomizeError(`visit traversal on path: [${path.join(' ')}]: ${(error as Error).message}`, {
        cause: error,
      })
    }
    return
  }
  if (!isJsonObject(value)) throw new KustomizeError('expected sequence or mapping node')
  const name = first.replace(/\[\]$/, '')
  const isList = name !== first
  const found = value[name]
  if ((found === undefined || found === null) && spec.create === true && !isList) {
    value[name] = rest.length === 0 ? visiting.created() : {}
  }
  if (value[name] === undefined) return
  descend({ value: value[name], set: (next) => (value[name] = next) }, rest, spec, visiting)
}

/** Splits `spec.containers.[name=web].image`; dots in brackets do not separate. */
export function splitDotted(path: string): string[] {
  const parts: string[] = []
  let part = ''
  let depth = 0
  for (let at = 0; at < path.length; at++) {
    const letter = path[at] as string
    if (letter === '\\' && path[at + 1] === '.') part += path[++at] as string
    else if (letter === '.' && depth === 0) {
      if (part !== '') parts.push(part)
      part = ''
    } else {
      if (letter === '[') depth++
      if (letter === ']') depth--
      part += letter
    }
  }
  return part === '' ? parts : [...parts, part]
}

/** All values that match the path; with `created` missing map members are created. */
export function matchPath(root: ValueSlot, path: readonly string[], created?: () => JsonValue): ValueSlot[] {
  const [first, ...rest] = path
  if (first === undefined) return [root]
  return stepsOf(root, first, rest, created).flatMap((slot) => matchPath(slot, rest, created))
}

function stepsOf(slot: ValueSlot, step: string, rest: readonly string[], created?: () => JsonValue): ValueSlot[] {
  const { value } = slot
  const bracket = /^\[(.*)\]$/s.exec(step)?.[1]
  if (value === undefined || value === null) return []
  if (Array.isArray(value) && (step === '*' || startsList(step))) return listSteps(value, step, bracket, created)
  if (bracket !== undefined) throw wrongKind('SequenceNode', value)
  if (!isJsonObject(value)) throw wrongKind('MappingNode', value)
  if (step === '*') return Object.keys(value).map((name) => memberSlot(value, name))
  if (value[step] === undefined) {
    if (created === undefined) return []
    value[step] = rest.length === 0 ? created() : startsList(rest[0]) ? [] : {}
  }
  return [memberSlot(value, step)]
}

function startsList(step: string | undefined): boolean {
  return step !== undefined && (/^\[.*\]$/s.test(step) || /^\d+$/.test(step) || step === '-')
}

function listSteps(
  list: JsonValue[],
  step: string,
  bracket: string | undefined,
  created?: () => JsonValue,
): ValueSlot[] {
  const at = (index: number): ValueSlot => ({ value: list[index], set: (next) => (list[index] = next) })
  if (step === '*') return list.map((_, index) => at(index))
  if (step === '-') return list.length === 0 ? [] : [at(list.length - 1)]
  if (bracket === undefined) {
    const index = Number(step)
    if (index >= list.length)
      throw new KustomizeError(`index ${index} specified but only ${list.length} elements found`)
    return [at(index)]
  }
  const split = bracket.indexOf('=')
  const [key, wanted] = split < 0 ? ['', bracket] : [bracket.slice(0, split), bracket.slice(split + 1)]
  const fits = (item: JsonValue): boolean =>
    key === '' ? scalarText(item) === wanted : isJsonObject(item) && scalarText(item[key] ?? null) === wanted
  const found = list.flatMap((item, index) => (fits(item) ? [at(index)] : []))
  if (found.length > 0 || created === undefined) return found
  list.push(key === '' ? wanted : { [key]: wanted })
  return [at(list.length - 1)]
}

export function scalarText(value: JsonValue): string {
  if (typeof value === 'string') return value
  return value === null || typeof value === 'object' ? '' : String(value)
}

function memberSlot(value: JsonObject, name: string): ValueSlot {
  return { value: value[name], set: (next) => (value[name] = next) }
}

function wrongKind(wanted: string, value: JsonValue): KustomizeError {
  const found = Array.isArray(value) ? 'SequenceNode' : isJsonObject(value) ? 'MappingNode' : 'ScalarNode'
  return new KustomizeError(
    `wrong node kind: expected ${wanted} but was ${found}: node contents:\n${scalarText(value)}\n`,
  )
}
