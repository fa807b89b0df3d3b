/** Parses the conditions of `kubectl wait --for` and evaluates them for an object. */
import { goQuote } from '#lib/go/text.ts'

import { KubectlError } from '../errors.ts'
import { compileJsonPath, type JsonPath, relaxedPath } from '../jsonpath/jsonpath.ts'
import type { AnyObject } from '../session/rest.ts'
import { goShow } from '../templates/go-value.ts'

export type WaitCondition =
  | { readonly kind: 'create' }
  | { readonly kind: 'delete' }
  /** Throws KubectlError for a condition that can never be met. */
  | { readonly kind: 'state'; readonly isMet: (object: AnyObject) => boolean }

/** Throws KubectlError. */
export function waitConditions(texts: readonly string[]): WaitCondition[] {
  if (texts.length === 0) throw new KubectlError('unrecognized condition: []')
  return texts.map(waitCondition)
}

function waitCondition(text: string): WaitCondition {
  const lower = text.toLowerCase()
  if (lower === 'delete' || lower === 'create') return { kind: lower }
  if (text.startsWith('condition=')) return { kind: 'state', isMet: statusCondition(text.slice('condition='.length)) }
  if (text.startsWith('jsonpath=')) return { kind: 'state', isMet: pathCondition(text.slice('jsonpath='.length)) }
  throw new KubectlError(`unrecognized condition: ${goQuote(text)}`)
}

interface StatusCondition {
  readonly type?: unknown
  readonly status?: unknown
  readonly observedGeneration?: unknown
}

/** `Ready` or `Ready=false`; a condition of an older generation does not count. */
function statusCondition(text: string): (object: AnyObject) => boolean {
  const at = text.indexOf('=')
  const name = (at < 0 ? text : text.slice(0, at)).toLowerCase()
  const wanted = at < 0 ? 'true' : text.slice(at + 1).toLowerCase()
  return (object) => {
    const { conditions = [], observedGeneration } = (object['status'] ?? {}) as {
      conditions?: readonly StatusCondition[]
      observedGeneration?: unknown
    }
    const isNamed = ({ type, status }: StatusCondition): boolean =>
      typeof type === 'string' && type.toLowerCase() === name && typeof status === 'string'
    const found = conditions.find(isNamed)
    if (found === undefined) return false
    const { generation } = object.metadata
    const seen = found.observedGeneration ?? observedGeneration
    if (generation !== undefined && typeof seen === 'number' && seen < generation) return false
    return (found.status as string).toLowerCase() === wanted
  }
}

/** `{.status.phase}` matches any value, `{.status.phase}=Running` that value. */
function pathCondition(text: string): (object: AnyObject) => boolean {
  const [path = '', given, ...rest] = splitOnSingle(text)
  if (rest.length > 0) {
    throw new KubectlError(
      "jsonpath wait format must be --for=jsonpath='{.status.readyReplicas}'=3 or --for=jsonpath='{.status.readyReplicas}'",
    )
  }
  const expression = relaxedPath(path)
  const wanted = given?.replaceAll(/^['"]+|['"]+$/g, '')
  if (wanted === '') {
    throw new KubectlError(
      "jsonpath wait has to have a value after equal sign, like --for=jsonpath='{.status.readyReplicas}'=3",
    )
  }
  if (expression === '') throw new KubectlError('jsonpath expression cannot be empty')
  const compiled = compileJsonPath(expression)
  return (object) => isPathMet(compiled, object, wanted)
}

/** Splits at `=`, but not at `==`, which belongs to the expression. */
function splitOnSingle(text: string): string[] {
  const parts: string[] = []
  let part = ''
  for (const [token] of text.matchAll(/==|=|[^=]+/g)) {
    if (token !== '=') part += token
    else {
      parts.push(part)
      part = ''
    }
  }
  return [...parts, part]
}

function isPathMet(path: JsonPath, object: AnyObject, wanted: string | undefined): boolean {
  const results = path.find(object)
  const [first = []] = results
  if (first.length === 0) return false
  if (results.length > 1) throw new KubectlError('given jsonpath expression matches more than one list')
  if (first.length > 1) throw new KubectlError('given jsonpath expression matches more than one value')
  if (wanted === undefined) return true
  const [value] = first
  if (typeof value === 'object' && value !== null) {
    throw new KubectlError('jsonpath leads to a nested object or list which is not supported')
  }
  return goShow(value).trim() === wanted.trim()
}
