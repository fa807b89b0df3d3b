/** Parses taint changes (`key=value:effect`, `key:effect-`) and applies them to the taints of a node. */
import type { Taint } from '#apis/core/v1.ts'
import { goQuote } from '#lib/go/text.ts'
import { labelValue, qualifiedName } from '#meta/validation/names.ts'

import { failuresOf, KubectlError } from '../errors.ts'

/** A removal without an effect matches all taints with the key. */
interface TaintSpec {
  readonly key: string
  readonly value: string
  readonly effect: string
}

export interface TaintChanges {
  readonly added: readonly TaintSpec[]
  readonly removed: readonly TaintSpec[]
}

const EFFECTS: ReadonlySet<string> = new Set(['NoSchedule', 'PreferNoSchedule', 'NoExecute'])

/** Throws KubectlError. */
export function parseTaints(specs: readonly string[]): TaintChanges {
  const added: TaintSpec[] = []
  const removed: TaintSpec[] = []
  for (const text of specs) {
    if (text.endsWith('-')) {
      removed.push({ ...parseTaint(text.slice(0, -1)), value: '' })
      continue
    }
    const taint = parseTaint(text)
    const { key, value, effect } = taint
    if (effect === '') throw new KubectlError(`invalid taint spec: ${text}`)
    if (added.some((other) => isSame(other, taint))) {
      throw new KubectlError(`duplicated taints with the same key and effect: {${key} ${value} ${effect} <nil>}`)
    }
    added.push(taint)
  }
  return { added, removed }
}

function parseTaint(text: string): TaintSpec {
  const bad = (problems: readonly string[] = []): KubectlError =>
    new KubectlError(`invalid taint spec: ${text}${problems.length === 0 ? '' : `, ${problems.join('; ')}`}`)
  const [pair = '', effect, ...rest] = text.split(':')
  if (rest.length > 0) throw bad()
  let [key, value] = [pair, '']
  if (effect !== undefined) {
    if (!EFFECTS.has(effect)) throw new KubectlError(`invalid taint effect: ${effect}, unsupported taint effect`)
    const parts = pair.split('=')
    if (parts.length > 2) throw bad()
    ;[key = '', value = ''] = parts
    const problems = labelValue(value)
    if (problems.length > 0) throw bad(problems)
  }
  const problems = qualifiedName(key)
  if (problems.length > 0) throw bad(problems)
  return { key, value, effect: effect ?? '' }
}

function isSame(one: Pick<Taint, 'key' | 'effect'>, other: Pick<Taint, 'key' | 'effect'>): boolean {
  return one.key === other.key && one.effect === other.effect
}

/** Throws KubectlError if a taint is both set and removed. */
export function checkContradictions({ added, removed }: TaintChanges): void {
  const both = added.flatMap((one) =>
    removed
      .filter(({ key, effect }) => key === one.key && (effect === '' || effect === one.effect))
      .map(({ key, effect }) => `${key}=${effect}`),
  )
  if (both.length === 0) return
  throw new KubectlError(
    `can not both modify and remove the following taint(s) in the same command: ${both.join(', ')}`,
  )
}

export interface TaintResult {
  readonly taints: readonly Taint[]
  readonly operation: 'modified' | 'tainted' | 'untainted'
}

/** Throws KubectlError for a forbidden overwrite or the removal of a missing taint. */
export function changedTaints(
  node: { readonly name: string; readonly taints: readonly Taint[] },
  { added, removed }: TaintChanges,
  overwrite: boolean,
): TaintResult {
  const { name, taints: old } = node
  const twice = added.filter((one) => old.some((other) => isSame(one, other))).map(({ key }) => key)
  if (!overwrite && twice.length > 0) {
    throw new KubectlError(
      `node ${name} already has ${twice.join(',')} taint(s) with same effect(s) and --overwrite is false`,
    )
  }
  const fresh = added.map(({ key, value, effect }) => ({ key, ...(value !== '' && { value }), effect }))
  const all = [...fresh, ...old.filter((taint) => !added.some((one) => isSame(one, taint)))]
  const errors: Error[] = []
  let isLastRemoved = false
  let taints: readonly Taint[] = all
  for (const one of removed) {
    const kept = taints.filter((taint) => taint.key !== one.key || (one.effect !== '' && taint.effect !== one.effect))
    isLastRemoved = kept.length !== taints.length
    taints = kept
    if (!isLastRemoved) errors.push(new KubectlError(`taint ${goQuote(taintText(one))} not found`))
  }
  const failed = failuresOf(errors)
  if (failed !== undefined) throw failed
  const isAdded = all.length !== old.length
  if ((isAdded && isLastRemoved) || overwrite) return { taints, operation: 'modified' }
  return { taints, operation: isAdded ? 'tainted' : 'untainted' }
}

function taintText({ key, value, effect }: TaintSpec): string {
  if (effect === '') return value === '' ? key : `${key}=${value}:`
  return value === '' ? `${key}:${effect}` : `${key}=${value}:${effect}`
}
