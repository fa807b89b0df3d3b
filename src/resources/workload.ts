/** The parts that kinds with a pod template share: warnings, columns, status counts, scaling. */
import type { PodTemplateSpec } from '#apis/core/v1.ts'
import type { Column, ScaleRules } from '#apiserver/registry/resource.ts'
import { asSelector, type LabelSelector } from '#meta/label-selector.ts'
import { type Selector, selectorText } from '#meta/labels.ts'
import type { KubeObject, ObjectMeta } from '#meta/object.ts'
import { type FieldError, fieldPath, type FieldPath } from '#meta/validation/field-path.ts'
import { dns1123Label } from '#meta/validation/names.ts'
import { nonNegative } from '#meta/validation/rules.ts'
import { podWarnings } from '#model/pod-spec/warnings/warnings.ts'

/** The parsed selector, or undefined if it is invalid. */
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

interface TemplateOwner extends KubeObject {
  readonly spec: { readonly template: PodTemplateSpec }
}

/** Warnings about a new template: the user was already warned of a stored one. */
export function templateWarnings(next: TemplateOwner, old: TemplateOwner | undefined): string[] {
  if (old !== undefined && next.metadata.generation === old.metadata.generation) return []
  return podWarnings(fieldPath('spec.template'), next.spec.template)
}

/** A warning about a name that is no valid host name for pods. */
export function podNameWarnings({ name = '' }: ObjectMeta, use = 'Pod names and hostnames'): string[] {
  const complaints = dns1123Label(name)
  if (complaints.length === 0) return []
  const risk = `this is used in ${use}, which can result in surprising behavior`
  return [`metadata.name: ${risk}; a DNS label is recommended: [${complaints.join(' ')}]`]
}

/** Counts by name; absent ones are not validated. */
export function validateCounts<N extends string>(
  path: FieldPath,
  counts: Readonly<Partial<Record<N, number>>>,
  names: readonly N[],
): FieldError[] {
  return names.flatMap((name) => nonNegative(path.child(name), counts[name]))
}

/** Rejects each of `names` that exceeds `bound`. */
export function validateNotAbove<N extends string>(
  counts: Readonly<Partial<Record<N, number>>>,
  names: readonly N[],
  bound: N,
  shown = `status.${bound}`,
): FieldError[] {
  const count = (name: N): number => counts[name] ?? 0
  return names
    .filter((name) => count(name) > count(bound))
    .map((name) => fieldPath(`status.${name}`).invalid(count(name), `cannot be greater than ${shown}`))
}

interface CollisionStatus {
  readonly collisionCount?: number
}

/** The count is part of generated names, which must not repeat. */
export function validateCollisionCount(
  next: CollisionStatus | undefined,
  old: CollisionStatus | undefined,
): FieldError[] {
  const [now, before] = [next?.collisionCount ?? 0, old?.collisionCount]
  if (before === undefined || now >= before) return []
  return [fieldPath('status.collisionCount').invalid(now, 'cannot be decremented')]
}

interface ScalableObject extends KubeObject {
  readonly spec: { replicas?: number; readonly selector?: LabelSelector | null }
  readonly status?: { readonly replicas?: number }
}

export function scaleOf<T extends ScalableObject>(): ScaleRules<T> {
  return {
    replicas: ({ spec }) => spec.replicas ?? 0,
    setReplicas({ spec }, replicas) {
      spec.replicas = replicas
    },
    statusReplicas: ({ status }) => status?.replicas ?? 0,
    selector: ({ spec }) => selectorText(asSelector(spec.selector)),
  }
}
