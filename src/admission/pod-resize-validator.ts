/** PodResizeValidator: refuses a resize beyond the node's allocatable resources, or on nodes that do not support it. */
import { type Node, Nodes, type Pod } from '#apis/core/v1.ts'
import type { Attributes } from '#apiserver/registry/admission.ts'
import { goQuote } from '#lib/go/text.ts'
import { semanticEqual } from '#meta/object.ts'
import { compareQuantities, quantityMilliValue, quantityOf, quantityValue } from '#meta/quantity.ts'
import type { StatusCause, StatusError } from '#meta/status.ts'
import { amountsOf, podRequests } from '#model/pod-resources.ts'

import { refuse } from './kit/refusal.ts'
import { type AdmissionPlugin, defineAdmission } from './plugin.ts'

export interface PodResizeValidatorOptions {
  readonly isEnabled: (gate: string) => boolean
}

export function createPodResizeValidator({ isEnabled }: PodResizeValidatorOptions): AdmissionPlugin {
  return defineAdmission({
    name: 'PodResizeValidator',
    on: ['UPDATE'],
    resources: ['pods/resize'],

    validate(attributes) {
      const { spec } = attributes.object as Pod
      if ((spec.nodeName ?? '') === '' || !isEnabled('InPlacePodVerticalScaling')) return
      if (semanticEqual(spec, (attributes.oldObject as Pod).spec)) return
      return check(attributes, spec.nodeName ?? '')
    },
  })
}

async function check(attributes: Attributes, name: string): Promise<void> {
  const node = await attributes.objects.get(Nodes, '', name)
  if (node === undefined) throw refuse(attributes, `node ${goQuote(name)} not found`)
  const system = node.metadata.labels?.['kubernetes.io/os'] ?? 'linux'
  if (system !== 'linux') {
    const why = `pod resize is only supported on linux nodes, node ${goQuote(name)} is ${goQuote(system)}`
    throw withCause(refuse(attributes, why), 'UnsupportedPlatform')
  }
  const shortages = shortagesOf(attributes.object as Pod, node)
  if (shortages.length === 0) return
  const why = `node didn't have enough allocatable resources: ${shortages.join('; ')}`
  throw withCause(refuse(attributes, why), 'NodeCapacity')
}

function shortagesOf({ spec }: Pod, { status }: Node): string[] {
  const requests = podRequests({ spec, status: {} })
  const allocatable = amountsOf(status?.allocatable)
  const nothing = quantityOf(0)
  return (
    [
      ['cpu', quantityMilliValue],
      ['memory', quantityValue],
    ] as const
  ).flatMap(([name, number]) => {
    const wanted = requests.get(name) ?? nothing
    const there = allocatable.get(name) ?? nothing
    if (compareQuantities(wanted, there) <= 0) return []
    return [`${name}, requested: ${number(wanted)}, allocatable: ${number(there)}`]
  })
}

function withCause(error: StatusError, reason: string): StatusError {
  const cause = { reason } as StatusCause
  error.status.details = { ...error.status.details, causes: [...(error.status.details?.causes ?? []), cause] }
  return error
}
