/**
 * Priority: sets a pod's priority from its PriorityClass, or from the default class. Upstream's
 * plugin/pkg/admission/priority, v1.36.
 */
import type { Pod } from '#apis/core/v1.ts'
import { type PriorityClass, PriorityClasses } from '#apis/scheduling/v1.ts'
import type { Attributes } from '#apiserver/registry/admission.ts'
import type { ObjectReader } from '#apiserver/registry/resource.ts'
import type { KubeObject } from '#meta/object.ts'

import { refuse, refuseEarly } from './kit/refusal.ts'
import { type AdmissionPlugin, defineAdmission } from './plugin.ts'

export interface PriorityOptions {
  readonly isEnabled: (gate: string) => boolean
}

type PodGroup = KubeObject & { spec: { priorityClassName?: string; priority?: number } }

export function createPriority({ isEnabled }: PriorityOptions): AdmissionPlugin {
  return defineAdmission({
    name: 'Priority',
    on: ['CREATE', 'UPDATE'],
    resources: ['pods', 'podgroups.scheduling.k8s.io', 'priorityclasses.scheduling.k8s.io'],

    mutate(attributes) {
      const { kind, operation } = attributes
      if (kind.plural === 'pods') return operation === 'CREATE' ? rankPod(attributes) : keepRank(attributes)
      if (kind.plural !== 'podgroups' || operation !== 'CREATE') return
      return isEnabled('WorkloadAwarePreemption') ? rankGroup(attributes) : undefined
    },
    validate(attributes) {
      return attributes.kind.plural === 'priorityclasses' ? checkOnlyDefault(attributes) : undefined
    },
  })
}

/** Clients that do not know these fields drop them, so the stored values are restored. */
function keepRank({ object, oldObject }: Attributes): void {
  const { spec } = object as Pod
  const { priority, preemptionPolicy } = (oldObject as Pod).spec
  if (priority !== undefined) spec.priority ??= priority
  if (preemptionPolicy !== undefined) spec.preemptionPolicy ??= preemptionPolicy
}

async function rankPod(attributes: Attributes): Promise<void> {
  const { spec } = attributes.object as Pod
  const { name, value, preemptionPolicy } = await rankOf(attributes, spec.priorityClassName ?? '')
  if (name !== '') spec.priorityClassName = name
  if (spec.priority !== undefined && spec.priority !== value) {
    const why = `the integer value of priority (${spec.priority}) must not be provided in pod spec; priority admission controller computed ${value} from the given PriorityClass name`
    throw refuseEarly(attributes, why)
  }
  spec.priority = value
  if (preemptionPolicy === undefined) return
  if (spec.preemptionPolicy !== undefined && spec.preemptionPolicy !== preemptionPolicy) {
    const why = `the string value of PreemptionPolicy (${spec.preemptionPolicy}) must not be provided in pod spec; priority admission controller computed ${preemptionPolicy} from the given PriorityClass name`
    throw refuseEarly(attributes, why)
  }
  spec.preemptionPolicy = preemptionPolicy
}

async function rankGroup(attributes: Attributes): Promise<void> {
  const { spec } = attributes.object as PodGroup
  const { name, value } = await rankOf(attributes, spec.priorityClassName ?? '')
  if (spec.priority !== undefined && spec.priority !== value) {
    const why = `priority set in the pod group (${spec.priority}) must match the priority computed (${value}) based on the priority class set in the spec`
    throw refuseEarly(attributes, why)
  }
  spec.priority = value
  if (name !== '') spec.priorityClassName = name
}

interface Rank {
  /** Empty if there is no class. */
  readonly name: string
  readonly value: number
  readonly preemptionPolicy: string | undefined
}

async function rankOf(attributes: Attributes, name: string): Promise<Rank> {
  const { objects } = attributes
  const found = name === '' ? await defaultClass(objects) : await objects.get(PriorityClasses, '', name)
  if (found !== undefined) {
    return { name: found.metadata.name ?? '', value: found.value ?? 0, preemptionPolicy: found.preemptionPolicy }
  }
  if (name !== '') throw refuseEarly(attributes, `no PriorityClass with name ${name} was found`)
  return { name: '', value: 0, preemptionPolicy: 'PreemptLowerPriority' }
}

/** A race can create two defaults; then the lower one counts. */
async function defaultClass(objects: ObjectReader): Promise<PriorityClass | undefined> {
  let chosen: PriorityClass | undefined
  for (const one of await objects.list(PriorityClasses, '')) {
    if (one.globalDefault === true && (chosen === undefined || one.value < chosen.value)) chosen = one
  }
  return chosen
}

async function checkOnlyDefault(attributes: Attributes): Promise<void> {
  const { object, objects, operation } = attributes
  if ((object as PriorityClass).globalDefault !== true) return
  const present = (await defaultClass(objects))?.metadata.name
  if (present === undefined || (operation === 'UPDATE' && present === object?.metadata.name)) return
  throw refuse(attributes, `PriorityClass ${present} is already marked as default. Only one default can exist`)
}
