/** Validates updates of a pod: few fields may change, because running containers cannot. */
import type { Container, NodeAffinity, NodeSelectorTerm, Pod, PodSpec, Toleration } from '#apis/core/v1.ts'
import type { RuleContext } from '#apiserver/registry/resource.ts'
import { semanticEqual } from '#meta/object.ts'
import { differencesText } from '#meta/validation/differences.ts'
import { type FieldError, fieldPath } from '#meta/validation/field-path.ts'
import { rangeText } from '#meta/validation/names.ts'
import { validateTolerations } from '#model/nodes/taints.ts'
import { annotationOf, APP_ARMOR, MIRROR_POD, validatePodAnnotations } from '#model/pod-spec/annotations.ts'
import { podOptions } from '#model/pod-spec/options.ts'
import type { PodOptions } from '#model/pod-spec/rules.ts'

import { sameSpec } from './same-spec.ts'
import { validatePod } from './validation.ts'

const MAX_INT32 = 2 ** 31 - 1

const changeable = [
  '`spec.containers[*].image`',
  '`spec.initContainers[*].image`',
  '`spec.activeDeadlineSeconds`',
  '`spec.tolerations` (only additions to existing tolerations)',
  '`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)',
]

export function validatePodUpdate(next: Pod, old: Pod, context: RuleContext): FieldError[] {
  const options = podOptions(context, old)
  const errors = [...validatePod(next, options), ...validateAnnotationUpdate(next, old, options)]
  const images = validateImages(next.spec, old.spec)
  if (images.stop) return [...errors, ...images.found]
  const deadline = validateDeadline(next.spec, old.spec)
  if (deadline.stop) return [...errors, ...images.found, ...deadline.found]
  return [
    ...errors,
    ...images.found,
    ...deadline.found,
    ...validateTolerationUpdate(next.spec, old.spec, options),
    ...validateGateUpdate(next.spec, old.spec),
    ...validateRest(next.spec, old.spec),
  ]
}

interface Outcome {
  readonly found: FieldError[]
  /** Later errors would be misleading. */
  readonly stop: boolean
}

/** Also a rule of the subresources that write pods. */
export function validateAnnotationUpdate(next: Pod, old: Pod, options: PodOptions): FieldError[] {
  const path = fieldPath('metadata.annotations')
  const before = old.metadata.annotations ?? {}
  const after = next.metadata.annotations ?? {}
  const refused = (name: string, verb: string): FieldError[] => {
    const what = name.startsWith(APP_ARMOR) ? 'AppArmor annotations' : 'mirror pod annotation'
    if (!name.startsWith(APP_ARMOR) && name !== MIRROR_POD) return []
    return [path.key(name).forbidden(`may not ${verb} ${what}`)]
  }
  return [
    ...Object.entries(before).flatMap(([name, value]) =>
      annotationOf(after, name) === value ? [] : refused(name, 'remove or update'),
    ),
    ...Object.keys(after).flatMap((name) => (Object.hasOwn(before, name) ? [] : refused(name, 'add'))),
    ...validatePodAnnotations(path, next, options),
  ]
}

function validateImages(next: PodSpec, old: PodSpec): Outcome {
  const found: FieldError[] = []
  for (const name of ['containers', 'initContainers'] as const) {
    const field = fieldPath('spec').child(name)
    const containers = next[name] ?? []
    if (containers.length !== (old[name] ?? []).length) {
      found.push(field.forbidden('pod updates may not add or remove containers'))
      return { found, stop: true }
    }
    for (const [at, { image = '' }] of containers.entries()) {
      const path = field.index(at).child('image')
      if (image === '') found.push(path.required())
      if (image.trim() !== image) found.push(path.invalid(image, 'must not have leading or trailing whitespace'))
    }
  }
  return { found, stop: false }
}

/** A deadline may be set and shortened, never extended. */
function validateDeadline(next: PodSpec, old: PodSpec): Outcome {
  const field = fieldPath('spec.activeDeadlineSeconds')
  const [seconds, before] = [next.activeDeadlineSeconds, old.activeDeadlineSeconds]
  if (seconds === undefined) {
    if (before === undefined) return { found: [], stop: false }
    return { found: [field.invalid(null, 'must not update from a positive integer to nil value')], stop: false }
  }
  if (seconds < 0 || seconds > MAX_INT32)
    return { found: [field.invalid(seconds, rangeText(0, MAX_INT32))], stop: true }
  if (before === undefined || before >= seconds) return { found: [], stop: false }
  return { found: [field.invalid(seconds, 'must be less than or equal to previous value')], stop: true }
}

function validateTolerationUpdate(next: PodSpec, old: PodSpec, options: PodOptions): FieldError[] {
  const field = fieldPath('spec.tolerations')
  const textOf = ({ key: name, operator, value, effect }: Toleration): string =>
    JSON.stringify([name, operator, value, effect])
  const there = new Set((next.tolerations ?? []).map(textOf))
  if (!(old.tolerations ?? []).every((one) => there.has(textOf(one)))) {
    return [field.forbidden('existing toleration can not be modified except its tolerationSeconds')]
  }
  return validateTolerations(field, next.tolerations, options.tolerationComparisons)
}

function validateGateUpdate(next: PodSpec, old: PodSpec): FieldError[] {
  const before = new Set((old.schedulingGates ?? []).map(({ name }) => name))
  return fieldPath('spec.schedulingGates').each(next.schedulingGates, (path, { name }) => {
    if (before.has(name)) return []
    const complaint = `only deletion is allowed, but found new scheduling gate '${name}'`
    return [path.child('name').forbidden(complaint)]
  })
}

/** Everything else is immutable; a gated pod may still narrow its node selection. */
function validateRest(next: PodSpec, old: PodSpec): FieldError[] {
  if (sameSpec(next, old)) return []
  const masked = maskChangeable(next, old)
  const errors = (old.schedulingGates ?? []).length > 0 ? validateGated(masked, old) : []
  if (sameSpec(masked, old)) return errors
  const complaint = `pod updates may not change fields other than ${changeable.join(',')}`
  return [...errors, fieldPath('spec').forbidden(`${complaint}\n${differencesText('spec', old, masked)}`)]
}

/** `next` with its mutable fields taken from `old`. */
function maskChangeable(next: PodSpec, old: PodSpec): PodSpec {
  const images = (containers: readonly Container[], before: readonly Container[]): Container[] =>
    containers.map((container, at) => withField(container, 'image', before[at]?.image))
  const graceMended = (old.terminationGracePeriodSeconds ?? 0) < 0 && next.terminationGracePeriodSeconds === 1
  let masked: PodSpec = { ...next, containers: images(next.containers ?? [], old.containers ?? []) }
  if (next.initContainers !== undefined) {
    masked.initContainers = images(next.initContainers, old.initContainers ?? [])
  }
  for (const name of ['activeDeadlineSeconds', 'schedulingGates', 'tolerations'] as const) {
    masked = withField(masked, name, old[name])
  }
  return graceMended ? withField(masked, 'terminationGracePeriodSeconds', old.terminationGracePeriodSeconds) : masked
}

function withField<T extends object, K extends keyof T>(object: T, name: K, value: T[K] | undefined): T {
  const copy = { ...object }
  if (value === undefined) delete copy[name]
  else copy[name] = value
  return copy
}

/** Changes `masked`: validated fields get the values of `old`. */
function validateGated(masked: PodSpec, old: PodSpec): FieldError[] {
  const errors: FieldError[] = []
  if (!semanticEqual(masked.nodeSelector, old.nodeSelector)) {
    errors.push(...validateSelectorAdditions(masked, old))
    Object.assign(masked, { nodeSelector: old.nodeSelector })
  }
  const before = old.affinity?.nodeAffinity
  const after = masked.affinity?.nodeAffinity
  if (semanticEqual(before, after)) return errors
  errors.push(...validateAffinityAdditions(after, before))
  Object.assign(masked, { affinity: { ...masked.affinity, nodeAffinity: before } })
  return errors
}

function validateSelectorAdditions(
  { nodeSelector: next = {} }: PodSpec,
  { nodeSelector: old = {} }: PodSpec,
): FieldError[] {
  if (Object.entries(old).every(([name, value]) => annotationOf(next, name) === value)) return []
  const complaint = 'only additions to spec.nodeSelector are allowed (no mutations or deletions)'
  return [fieldPath('spec.nodeSelector').invalid(next, complaint)]
}

/** Terms are alternatives: another term would widen the selection, another requirement within one narrows it. */
function validateAffinityAdditions(next: NodeAffinity | undefined, old: NodeAffinity | undefined): FieldError[] {
  const terms = (one: NodeAffinity | undefined): NodeSelectorTerm[] =>
    one?.requiredDuringSchedulingIgnoredDuringExecution?.nodeSelectorTerms ?? []
  const field = fieldPath('spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms')
  const [before, after] = [terms(old), terms(next)]
  if (before.length > 0 && before.length !== after.length) {
    const shown = next?.requiredDuringSchedulingIgnoredDuringExecution === undefined ? null : after
    return [field.invalid(shown, 'no additions/deletions to non-empty NodeSelectorTerms list are allowed')]
  }
  return field.each(before, (path, term, at) => {
    const other = after[at] ?? {}
    if (isNarrowed(other, term)) return []
    return [path.invalid(other, 'only additions are allowed (no mutations or deletions)')]
  })
}

function isNarrowed(next: NodeSelectorTerm, old: NodeSelectorTerm): boolean {
  const lists = ['matchExpressions', 'matchFields'] as const
  const size = (term: NodeSelectorTerm): number => lists.reduce((sum, name) => sum + (term[name] ?? []).length, 0)
  // An empty term selects nothing, so adding to it would widen the selection.
  if (size(old) === 0) return size(next) === 0
  return lists.every((name) => {
    const before = old[name] ?? []
    return semanticEqual((next[name] ?? []).slice(0, before.length), before)
  })
}
