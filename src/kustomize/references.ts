/** Updates references to resources whose names have changed. */
import { isJsonObject, type JsonObject } from '#lib/json/value.ts'
import { stringifyYaml } from '#lib/yaml/write.ts'

import type { BackReferences } from './field-specs.ts'
import { effectiveNamespace, type Gvk, idText, isClusterScoped, isSelected, KustomizeError } from './ids.ts'
import { type FieldSpec, type ValueSlot, visitSpec } from './paths.ts'
import { type Resource, type Resources, textOf } from './resource.ts'

interface Reference {
  readonly referrer: Resource
  readonly spec: FieldSpec
  /** The referenced kind. */
  readonly target: Partial<Gvk>
  readonly candidates: readonly Resource[]
}

/** Throws KustomizeError if the referenced resource is ambiguous. */
export function fixReferences({ list }: Resources, references: readonly BackReferences[]): void {
  for (const referrer of list) {
    const candidates = candidatesOf(referrer, list)
    for (const { fieldSpecs, ...target } of references) {
      const meant = fieldSpecs.filter((spec) => isSelected(referrer.originalId, spec))
      for (const { path } of meant) fixField({ referrer, spec: { path }, target, candidates })
    }
  }
}

/**
 * Candidates: resources in the same namespace, cluster-scoped ones, and service accounts that a binding names with
 * their namespace.
 */
function candidatesOf(referrer: Resource, list: readonly Resource[]): readonly Resource[] {
  const { id } = referrer
  if (isClusterScoped(id)) return list
  const subjects = referrer.gvk.kind === 'RoleBinding' ? referrer.value['subjects'] : undefined
  const named = new Set(
    (Array.isArray(subjects) ? subjects : [])
      .filter((one): one is JsonObject => isJsonObject(one) && one['kind'] === 'ServiceAccount')
      .flatMap((one) => (typeof one['namespace'] === 'string' ? [one['namespace']] : [])),
  )
  return list.filter(
    (one) =>
      isClusterScoped(one.gvk) || effectiveNamespace(one.id) === effectiveNamespace(id) || named.has(one.namespace),
  )
}

function fixField(reference: Reference): void {
  const { referrer, spec } = reference
  const visit = (slot: ValueSlot): void => {
    const { value } = slot
    if (value === undefined || value === null) return
    if (Array.isArray(value)) {
      for (const [index, item] of value.entries()) visit({ value: item, set: (next) => (value[index] = next) })
    } else if (isJsonObject(value)) fixMap(value, reference)
    else fixText(textOf(value), slot, reference)
  }
  try {
    visitSpec(referrer, spec, { created: () => '', visit })
  } catch (error) {
    throw new KustomizeError(
      `updating name reference in '${spec.path}' field of '${idText(referrer.id)}': ${(error as Error).message}`,
      { cause: error },
    )
  }
}

function fixText(text: string, { set }: ValueSlot, reference: Reference): void {
  const isSame = (all: readonly Resource[]): boolean => all.every(({ name }) => name === all[0]?.name)
  const found = chosen(text, reference.candidates, reference, isSame)
  if (found !== undefined && found.name !== text) set(found.name)
}

function fixMap(value: JsonObject, reference: Reference): void {
  if (value['name'] === undefined) throw new KustomizeError("path config error; no 'name' field in node")
  const name = textOf(value['name'])
  const isSame = (all: readonly Resource[]): boolean =>
    all.every((one) => one.name === all[0]?.name && one.namespace === all[0].namespace)
  const found = chosen(name, inNamespace(value, reference.candidates), reference, isSame)
  if (found === undefined || (found.name === name && found.namespace === '')) return
  value['name'] = found.name
  if (found.namespace !== '') value['namespace'] = found.namespace
}

function inNamespace(value: JsonObject, candidates: readonly Resource[]): readonly Resource[] {
  if (value['namespace'] === undefined) return candidates
  const namespace = textOf(value['namespace'])
  const before = candidates.filter(({ originalId }) => effectiveNamespace(originalId) === namespace)
  return before.length > 0 ? before : candidates.filter(({ id }) => effectiveNamespace(id) === namespace)
}

function chosen(
  name: string,
  candidates: readonly Resource[],
  reference: Reference,
  isSame: (all: readonly Resource[]) => boolean,
): Resource | undefined {
  const { referrer, target } = reference
  const role = roleOf(reference)
  let left = candidates.filter(
    (one) =>
      one.previous.some((id) => id.name === name) &&
      one.previous.some((id) => isSelected(id, target)) &&
      (role === undefined || one.previous.some((id) => isSelected(id, role))) &&
      isReachable(one, referrer),
  )
  if (left.length === 1) return left[0]
  left = left.filter((one) => hasSameAffixes(one, referrer, true))
  if (left.length > 1) left = left.filter((one) => hasSameAffixes(one, referrer, false))
  if (left.length < 2 || isSame(left)) return left[0]
  throw new KustomizeError(
    `found multiple possible referrals: ${left.map(({ id }) => idText(id)).join(', ')}\n${details(left, referrer)}`,
  )
}

function details(left: readonly Resource[], referrer: Resource): string {
  const options = left.map((one, index) => `--- possible referral ${index}:\n${stringifyYaml(one.value)}\n`)
  return `\n**** Too many possible referral targets to referrer:\n${stringifyYaml(referrer.value)}\n${options.join('')}`
}

/** A binding names the kind of its role. */
function roleOf({ spec, referrer }: Reference): Partial<Gvk> | undefined {
  const { roleRef } = referrer.value
  if (!spec.path.endsWith('roleRef/name') || roleRef === undefined || !isJsonObject(roleRef)) return undefined
  const { apiGroup, kind } = roleRef
  return apiGroup === undefined || kind === undefined ? undefined : { group: textOf(apiGroup), kind: textOf(kind) }
}

function isReachable(one: Resource, referrer: Resource): boolean {
  if (isClusterScoped(referrer.gvk) || isClusterScoped(one.gvk) || one.gvk.kind === 'ServiceAccount') return true
  return effectiveNamespace(one.id) === effectiveNamespace(referrer.id)
}

function hasSameAffixes(one: Resource, other: Resource, allowEmpty: boolean): boolean {
  const fits = (left: readonly string[], right: readonly string[]): boolean => {
    if (allowEmpty && (left.length === 0 || right.length === 0)) return true
    const count = Math.min(left.length, right.length)
    return left.slice(left.length - count).join('\n') === right.slice(right.length - count).join('\n')
  }
  return fits(one.prefixes, other.prefixes) && fits(one.suffixes, other.suffixes)
}
