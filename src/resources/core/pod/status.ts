/** The `status` subresource of pods, which kubelets and other components update. */
import type { ContainerStatus, Pod, PodStatus } from '#apis/core/v1.ts'
import type { PartRules, RuleContext } from '#apiserver/registry/resource.ts'
import { fieldPath } from '#meta/validation/field-path.ts'
import { roundAmounts } from '#model/pod-spec/defaults.ts'
import { addressWarnings } from '#model/pod-spec/warnings/addresses.ts'

import { validateStatusUpdate } from './status-validation.ts'

export const podStatus: PartRules<Pod> = {
  // Very old kubelets corrupted the owners.
  keeps: ['spec', 'metadata.deletionTimestamp', 'metadata.ownerReferences'],
  prepareUpdate(next, old, context) {
    if (next.status.qosClass === undefined && old.status.qosClass !== undefined) {
      next.status.qosClass = old.status.qosClass
    }
    keepGenerations(next.status, old.status)
    defaultPodStatus(next.status)
    dropDisabledStatusFields(next.status, old.status, context)
  },
  validateUpdate: validateStatusUpdate,
  warnings: ({ status }) => [...ipWarnings(status, 'podIPs'), ...ipWarnings(status, 'hostIPs')],
}

function ipWarnings(status: PodStatus, name: 'podIPs' | 'hostIPs'): string[] {
  return (status[name] ?? []).flatMap(({ ip }, at) =>
    addressWarnings(fieldPath('status').child(name).index(at).child('ip'), ip),
  )
}

/** `podIP` and the first of `podIPs` are equal; `podIP` wins. Quantities are rounded to thousandths. */
export function defaultPodStatus(status: PodStatus | undefined): void {
  if (status === undefined) return
  const { podIP = '', podIPs = [] } = status
  const first = podIPs[0]?.ip ?? ''
  if (podIP !== '' && podIP !== first) status.podIPs = [{ ip: podIP }]
  else if (podIP === '' && first !== '') status.podIP = first
  for (const { allocatedResources, resources } of [...containerStatuses(status), status]) {
    roundAmounts(allocatedResources)
    roundAmounts(resources?.limits)
    roundAmounts(resources?.requests)
  }
}

function containerStatuses(status: PodStatus): ContainerStatus[] {
  return [
    ...(status.containerStatuses ?? []),
    ...(status.initContainerStatuses ?? []),
    ...(status.ephemeralContainerStatuses ?? []),
  ]
}

/** A client that does not know the field must not clear it. */
function keepGenerations(next: PodStatus, old: PodStatus): void {
  if ((next.observedGeneration ?? 0) === 0 && old.observedGeneration !== undefined) {
    next.observedGeneration = old.observedGeneration
  }
  // By type and occurrence, because a type may occur more than once.
  const before = new Map<string, (number | undefined)[]>()
  for (const { type, observedGeneration } of old.conditions ?? []) {
    before.set(type, [...(before.get(type) ?? []), observedGeneration])
  }
  for (const condition of next.conditions ?? []) {
    const generation = before.get(condition.type)?.shift()
    if ((condition.observedGeneration ?? 0) === 0 && generation !== undefined) {
      condition.observedGeneration = generation
    }
  }
}

interface GatedStatus {
  readonly gate: string
  uses(status: PodStatus): boolean
  drop(status: PodStatus): void
}

const gated: readonly GatedStatus[] = [
  {
    gate: 'InPlacePodLevelResourcesVerticalScaling',
    uses: ({ resources, allocatedResources }) => resources !== undefined || allocatedResources !== undefined,
    drop(status) {
      delete status.resources
      delete status.allocatedResources
    },
  },
  {
    gate: 'DRAExtendedResource',
    uses: ({ extendedResourceClaimStatus }) => extendedResourceClaimStatus !== undefined,
    drop: (status) => delete status.extendedResourceClaimStatus,
  },
  {
    gate: 'ResourceHealthStatus',
    uses: (status) => containerStatuses(status).some((one) => (one.allocatedResourcesStatus ?? []).length > 0),
    drop(status) {
      for (const one of containerStatuses(status)) delete one.allocatedResourcesStatus
    },
  },
  {
    gate: 'ResourceHealthStatusMessage',
    uses: (status) => healthOf(status).some(({ message }) => message !== undefined),
    drop(status) {
      for (const health of healthOf(status)) delete health.message
    },
  },
  {
    gate: 'ImageVolumeWithDigest',
    uses: (status) => mountsOf(status).some(({ volumeStatus }) => volumeStatus !== undefined),
    drop(status) {
      for (const mount of mountsOf(status)) delete mount.volumeStatus
    },
  },
  {
    gate: 'DRANodeAllocatableResources',
    uses: ({ nodeAllocatableResourceClaimStatuses: statuses = [] }) => statuses.length > 0,
    drop: (status) => delete status.nodeAllocatableResourceClaimStatuses,
  },
]

function healthOf(status: PodStatus): { message?: string }[] {
  const resources = containerStatuses(status).flatMap((one) => one.allocatedResourcesStatus ?? [])
  return resources.flatMap((one) => one.resources ?? [])
}

function mountsOf(status: PodStatus): NonNullable<ContainerStatus['volumeMounts']> {
  return containerStatuses(status).flatMap(({ volumeMounts = [] }) => volumeMounts)
}

function dropDisabledStatusFields(next: PodStatus, old: PodStatus, { isEnabled }: RuleContext): void {
  for (const field of gated) if (!isEnabled(field.gate) && !field.uses(old)) field.drop(next)
}
