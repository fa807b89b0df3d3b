/**
 * RuntimeClass: sets a pod's overhead, node selector and tolerations from its runtime class. Upstream's
 * plugin/pkg/admission/runtimeclass and pkg/util/tolerations, v1.36.
 */
import type { Pod } from '#apis/core/v1.ts'
import { type RuntimeClass, RuntimeClasses } from '#apis/node/v1.ts'
import type { Attributes } from '#apiserver/registry/admission.ts'
import { compareText, goQuote } from '#lib/go/text.ts'
import { compareQuantities } from '#meta/quantity.ts'
import { amountsOf } from '#model/pod-resources.ts'
import type { ResourceList } from '#model/resource-lists.ts'

import { refuse, refuseEarly } from './kit/refusal.ts'
import { mergeTolerations } from './kit/tolerations.ts'
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
