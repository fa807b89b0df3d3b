/** What the kinds that run pods from a template share: its warnings, its columns, counts in the status, scaling. */
import type { PodTemplateSpec } from '#apis/core/v1.ts'
import type { Column, ScaleRules } from '#apiserver/registry/resource.ts'
import { asSelector, type LabelSelector } from '#meta/label-selector.ts'
import { type Selector, selectorText } from '#meta/labels.ts'
import type { KubeObject, ObjectMeta } from '#meta/object.ts'
import { child, type FieldError, invalid } from '#meta/validation/field-error.ts'
import { dns1123Label } from '#meta/validation/names.ts'
import { nonNegative } from '#meta/validation/rules.ts'
import { podWarnings } from '#model/pod-spec/warnings.ts'

/** The selector that is meant, or undefined when it breaks the rules. */
export function selectorOf(selector: LabelSelector | null | undefined): Selector | undefined {
  try {
    return asSelector(selector)
  } catch {
    return undefined
  }
}

export function isEmptySelector({ matchLabels, matchExpressions }: LabelSelector): boolean {
  return Object.keys(matchLabels ?? {}).length + (matchExpressions ?? []).length === 0
}

/** Names and images of the template's containers, for wide output. */
export function containerColumns<T extends KubeObject>(template: (object: T) => PodTemplateSpec): Column<T>[] {
  const list = (object: T, text: (container: { name: string; image?: string }) => string): string =>
    (template(object).spec.containers ?? []).map(text).join(',')
  return [
    { name: 'Containers', wide: true, value: (object) => list(object, ({ name }) => name) },
    { name: 'Images', wide: true, value: (object) => list(object, ({ image = '' }) => image) },
  ]
}

interface Templated extends KubeObject {
  readonly spec: { readonly template: PodTemplateSpec }
}

/** About the template, when it is new: of a stored object the user has been warned before. */
export function templateWarnings(next: Templated, old: Templated | undefined): string[] {
  if (old !== undefined && next.metadata.generation === old.metadata.generation) return []
  return podWarnings('spec.template', next.spec.template)
}

/** About a name that its pods could not have as a host name. */
export function podNameWarnings({ name = '' }: ObjectMeta, use = 'Pod names and hostnames'): string[] {
  const complaints = dns1123Label(name)
  if (complaints.length === 0) return []
  const risk = `this is used in ${use}, which can result in surprising behavior`
  return [`metadata.name: ${risk}; a DNS label is recommended: [${complaints.join(' ')}]`]
}

/** Counts by name; an absent one is not looked at. */
export function validateCounts<N extends string>(
  path: string,
  counts: Readonly<Partial<Record<N, number>>>,
  names: readonly N[],
): FieldError[] {
  return names.flatMap((name) => nonNegative(child(path, name), counts[name]))
}

/** Refuses each of `names` that counts more than `bound` does. */
export function validateNotAbove<N extends string>(
  counts: Readonly<Partial<Record<N, number>>>,
  names: readonly N[],
  bound: N,
  shown = `status.${bound}`,
): FieldError[] {
  const count = (name: N): number => counts[name] ?? 0
  return names
    .filter((name) => count(name) > count(bound))
    .map((name) => invalid(`status.${name}`, count(name), `cannot be greater than ${shown}`))
}

interface Counting {
  readonly collisionCount?: number
}

/** It goes into names, which must not come again. */
export function validateCollisionCount(next: Counting | undefined, old: Counting | undefined): FieldError[] {
  const [now, before] = [next?.collisionCount ?? 0, old?.collisionCount]
  if (before === undefined || now >= before) return []
  return [invalid('status.collisionCount', now, 'cannot be decremented')]
}

interface Scaled extends KubeObject {
  readonly spec: { replicas?: number; readonly selector?: LabelSelector | null }
  readonly status?: { readonly replicas?: number }
}

export function scaleOf<T extends Scaled>(): ScaleRules<T> {
  return {
    replicas: ({ spec }) => spec.replicas ?? 0,
    setReplicas({ spec }, replicas) {
      spec.replicas = replicas
    },
    statusReplicas: ({ status }) => status?.replicas ?? 0,
    selector: ({ spec }) => selectorText(asSelector(spec.selector)),
  }
}
