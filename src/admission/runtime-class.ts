/**
 * RuntimeClass: what a pod's runtime costs on top of its containers, and on which nodes it runs at all. Upstream's
 * plugin/pkg/admission/runtimeclass and pkg/util/tolerations, v1.36.
 */
import type { Pod, Toleration } from '#apis/core/v1.ts'
import { type RuntimeClass, RuntimeClasses } from '#apis/node/v1.ts'
import type { Attributes } from '#apiserver/registry/admission.ts'
import { compareText, goQuote } from '#lib/go-text.ts'
import { deepCopy, semanticEqual } from '#meta/object.ts'
import { compareQuantities } from '#meta/quantity.ts'
import { amountsOf } from '#model/pod-resources.ts'
import type { ResourceList } from '#model/resource-lists.ts'

import { refuse, refuseEarly } from './kit/refusal.ts'
import { type AdmissionPlugin, defineAdmission } from './plugin.ts'

const MISMATCH = "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead"

export const runtimeClass: AdmissionPlugin = defineAdmission({
  name: 'RuntimeClass',
  on: ['CREATE'],
  resources: ['pods'],

  mutate(attributes) {
    const name = (attributes.object as Pod).spec.runtimeClassName
    return name === undefined ? undefined : adopt(attributes, name)
  },
  validate(attributes) {
    const { runtimeClassName, overhead } = (attributes.object as Pod).spec
    if (runtimeClassName === undefined && overhead !== undefined) throw unexplained(attributes)
    return runtimeClassName === undefined ? undefined : checkOverhead(attributes, runtimeClassName)
  },
})

async function classOf(attributes: Attributes, name: string): Promise<RuntimeClass> {
  const found = await attributes.objects.get(RuntimeClasses, '', name)
  if (found !== undefined) return found
  throw refuseEarly(attributes, `pod rejected: RuntimeClass ${goQuote(name)} not found`)
}

async function adopt(attributes: Attributes, name: string): Promise<void> {
  const { overhead, scheduling } = await classOf(attributes, name)
  const { spec } = attributes.object as Pod
  if (overhead !== undefined) {
    const own = Object.keys(spec.overhead ?? {}).length > 0
    if (own && !sameAmounts(overhead.podFixed, spec.overhead)) throw refuseEarly(attributes, MISMATCH)
    if (overhead.podFixed === undefined) delete spec.overhead
    else spec.overhead = { ...overhead.podFixed }
  }
  if (scheduling === undefined) return
  const { nodeSelector, tolerations = [] } = scheduling
  if (nodeSelector !== undefined) narrow(attributes, nodeSelector)
  const merged = mergeTolerations(spec.tolerations ?? [], tolerations)
  if (merged.length > 0) spec.tolerations = merged
}

function narrow(attributes: Attributes, selector: Readonly<Record<string, string>>): void {
  const { spec } = attributes.object as Pod
  const own = spec.nodeSelector ?? {}
  for (const key of Object.keys(selector).sort(compareText)) {
    if (!Object.hasOwn(own, key) || own[key] === selector[key]) continue
    const theirs = `runtimeClass.scheduling.nodeSelector[${key}] = ${selector[key]}`
    throw refuseEarly(attributes, `conflict: ${theirs}; pod.spec.nodeSelector[${key}] = ${own[key]}`)
  }
  spec.nodeSelector = { ...own, ...selector }
}

async function checkOverhead(attributes: Attributes, name: string): Promise<void> {
  const { overhead } = await classOf(attributes, name)
  const given = (attributes.object as Pod).spec.overhead
  if (overhead === undefined && given !== undefined) throw unexplained(attributes)
  if (overhead !== undefined && !sameAmounts(overhead.podFixed, given)) throw refuse(attributes, MISMATCH)
}

function unexplained(attributes: Attributes): Error {
  return refuse(attributes, 'pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead')
}

function sameAmounts(a: ResourceList | undefined, b: ResourceList | undefined): boolean {
  const left = amountsOf(a)
  const right = amountsOf(b)
  return (
    left.size === right.size &&
    [...left].every(([name, amount]) => {
      const other = right.get(name)
      return other !== undefined && compareQuantities(amount, other) === 0
    })
  )
}

/** Both lists as one; what another toleration covers is left out, and of equal ones the first stays. */
function mergeTolerations(first: readonly Toleration[], second: readonly Toleration[]): Toleration[] {
  const all = [...first, ...second]
  const merged: Toleration[] = []
  for (const [at, one] of all.entries()) {
    const covered =
      merged.some((other) => covers(other, one)) ||
      all.slice(at + 1).some((other) => !semanticEqual(other, one) && covers(other, one))
    if (!covered) merged.push(deepCopy(one))
  }
  return merged
}

/** Whether `wide` tolerates everything that `narrow` does. */
function covers(wide: Toleration, narrow: Toleration): boolean {
  if (semanticEqual(wide, narrow)) return true
  if (!coversKey(wide, narrow) || !coversEffect(wide, narrow)) return false
  const { operator = 'Equal' } = wide
  if (operator === 'Exists') return true
  return (operator === '' || operator === 'Equal') && narrow.operator === 'Equal' && sameValue(wide, narrow)
}

/** Without a key, `Exists` is said of all of them. */
function coversKey({ key = '', operator }: Toleration, narrow: Toleration): boolean {
  return key === (narrow.key ?? '') || (key === '' && operator === 'Exists')
}

function coversEffect(wide: Toleration, narrow: Toleration): boolean {
  const { effect = '' } = wide
  if (effect !== '' && effect !== (narrow.effect ?? '')) return false
  return effect !== 'NoExecute' || secondsOf(narrow) <= secondsOf(wide)
}

/** Without a limit it is tolerated for ever. */
function secondsOf({ tolerationSeconds }: Toleration): number {
  return tolerationSeconds ?? Infinity
}

function sameValue(a: Toleration, b: Toleration): boolean {
  return (a.value ?? '') === (b.value ?? '')
}
