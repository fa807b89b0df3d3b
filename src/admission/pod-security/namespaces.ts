/** Pod Security for namespaces: validates the labels, and warns about existing pods that violate a stricter policy. */
import { type Pod, Pods } from '#apis/core/v1.ts'
import type { Attributes } from '#apiserver/registry/admission.ts'
import type { Clock } from '#lib/clock.ts'
import { compareText, goQuote } from '#lib/go/text.ts'
import { controllerOf } from '#meta/object.ts'
import { invalidError } from '#meta/status-errors.ts'
import type { FieldError } from '#meta/validation/field-path.ts'

import {
  compareLevels,
  isEquivalent,
  isFullyPrivileged,
  labelOf,
  type LevelVersion,
  levelVersionText,
  type Mode,
  parsePolicy,
  type Policy,
  sameLevelVersion,
} from './policy.ts'
import { reasonsText, violationsOf } from './standards.ts'

interface Settings {
  readonly clock: Clock
  readonly defaults: Policy
  readonly exemptions: { readonly namespaces?: readonly string[]; readonly runtimeClasses?: readonly string[] }
}

/** Limits the check of pods, so that the update of a namespace is not delayed for long. */
const MAX_PODS = 3000
const MAX_MS = 1000

export function admitNamespace(attributes: Attributes, settings: Settings): void | Promise<void> {
  const { object, oldObject, operation, name } = attributes
  const labels = object?.metadata.labels
  const { policy, errors } = parsePolicy(labels, settings.defaults)
  const isExempt = settings.exemptions.namespaces?.includes(name) ?? false
  if (operation === 'CREATE') {
    requireValid(attributes, errors, [])
    if (isExempt) warnExempt(attributes, policy, settings)
    return
  }
  const old = parsePolicy(oldObject?.metadata.labels, settings.defaults)
  requireValid(attributes, errors, old.errors)
  if (!isStricter(policy.enforce, old.policy.enforce)) return
  if (!isExempt) return warnOfPods(attributes, policy.enforce, settings)
  warnExempt(attributes, policy, settings)
}

/** Errors that existed before are allowed. */
function requireValid({ kind, name }: Attributes, errors: readonly FieldError[], known: readonly FieldError[]): void {
  const text = (list: readonly FieldError[]): string => JSON.stringify(list)
  if (errors.length > 0 && text(errors) !== text(known)) throw invalidError(kind, name, errors)
}

function isStricter(next: LevelVersion, old: LevelVersion): boolean {
  if (sameLevelVersion(next, old) || next.level === 'privileged') return false
  return next.minor !== old.minor || compareLevels(next.level, old.level) > 0
}

function warnExempt(attributes: Attributes, policy: Policy, { defaults }: Settings): void {
  const { name, object } = attributes
  if (isFullyPrivileged(policy) || isEquivalent(policy, defaults)) return
  const labels = object?.metadata.labels ?? {}
  const isSet = (mode: Mode): boolean =>
    policy[mode].level !== 'privileged' &&
    (labelOf(labels, mode) !== undefined || labelOf(labels, `${mode}-version`) !== undefined)
  const policies = (['enforce', 'audit', 'warn'] as const)
    .filter(isSet)
    .map((mode) => `${mode}=${levelVersionText(policy[mode])}`)
  attributes.warn(
    `namespace ${goQuote(name)} is exempt from Pod Security, and the policy (${policies.join(', ')}) will be ignored`,
  )
}

async function warnOfPods(attributes: Attributes, enforce: LevelVersion, settings: Settings): Promise<void> {
  const { objects, name } = attributes
  const pods = prioritize(await objects.list(Pods, name), settings)
  const deadline = settings.clock.elapsed() + MAX_MS
  const found = new Map<string, string[]>()
  let checked = 0
  for (const pod of pods.slice(0, MAX_PODS)) {
    const reasons = reasonsText(violationsOf(pod, enforce))
    if (reasons !== '') found.set(reasons, [...(found.get(reasons) ?? []), pod.metadata.name ?? ''])
    checked++
    if (attributes.signal.aborted || settings.clock.elapsed() > deadline) break
  }
  if (checked < pods.length) {
    attributes.warn(
      `new PodSecurity enforce level only checked against the first ${checked} of ${pods.length} existing pods`,
    )
  }
  if (found.size === 0) return
  const level = goQuote(levelVersionText(enforce))
  attributes.warn(`existing pods in namespace ${goQuote(name)} violate the new PodSecurity enforce level ${level}`)
  for (const text of [...found].map(podsText).sort(compareText)) attributes.warn(text)
}

function podsText([reasons, names]: readonly [string, readonly string[]]): string {
  const [first = ''] = names.toSorted(compareText)
  const others = names.length - 1
  const more = others === 0 ? '' : ` (and ${others} other ${others === 1 ? 'pod' : 'pods'})`
  return `${first}${more}: ${reasons}`
}

/** One pod of each controller first: its others are likely the same. */
function prioritize(pods: readonly Pod[], { exemptions }: Settings): Pod[] {
  const seen = new Set<string>()
  const first: Pod[] = []
  const rest: Pod[] = []
  for (const pod of pods) {
    const { runtimeClassName = '' } = pod.spec
    if (runtimeClassName !== '' && exemptions.runtimeClasses?.includes(runtimeClassName)) continue
    const owner = controllerOf(pod)?.uid
    if (owner !== undefined && seen.has(owner)) rest.push(pod)
    else first.push(pod)
    if (owner !== undefined) seen.add(owner)
  }
  return [...first, ...rest]
}
