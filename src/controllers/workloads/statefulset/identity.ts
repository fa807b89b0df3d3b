/** Computes the identity of StatefulSet pods: ordinal, name, labels and claims. Pure. */
import { type StatefulSet, StatefulSets } from '#apis/apps/v1.ts'
import type { PersistentVolumeClaim, Pod, Volume } from '#apis/core/v1.ts'
import { isBeingDeleted, semanticEqual } from '#meta/object.ts'
import { isAvailable, isReady } from '#model/pods.ts'

import { podFrom } from '../../pod-creation.ts'

export const REVISION = 'controller-revision-hash'
const POD_NAME = 'statefulset.kubernetes.io/pod-name'
const POD_INDEX = 'apps.kubernetes.io/pod-index'

export function replicasOf({ spec }: StatefulSet): number {
  return spec.replicas ?? 1
}

export function startOf({ spec }: StatefulSet): number {
  return spec.ordinals?.start ?? 0
}

export function partitionOf({ spec }: StatefulSet): number {
  return spec.updateStrategy.rollingUpdate?.partition ?? 0
}

export function isOrdered({ spec }: StatefulSet): boolean {
  return spec.podManagementPolicy !== 'Parallel'
}

/** -1 if the name is not of this set. */
export function ordinalOf(set: StatefulSet, { metadata: { name = '' } }: Pod): number {
  const [, parent, digits = ''] = /^(.*)-(\d+)$/.exec(name) ?? []
  return parent === set.metadata.name && Number(digits) < 2 ** 31 ? Number(digits) : -1
}

export function isInRange(set: StatefulSet, pod: Pod): boolean {
  const index = ordinalOf(set, pod) - startOf(set)
  return index >= 0 && index < replicasOf(set)
}

export function revisionOf({ metadata }: Pod): string {
  return metadata.labels?.[REVISION] ?? ''
}

/** Exists on the server, not only in the plan. */
export function isCreated({ status }: Pod): boolean {
  return (status.phase ?? '') !== ''
}

export function isRunningAndReady(pod: Pod): boolean {
  return pod.status.phase === 'Running' && isReady(pod)
}

export function isRunningAndAvailable({ spec }: StatefulSet, pod: Pod, nowMs: number): boolean {
  return isRunningAndReady(pod) && isAvailable(pod, spec.minReadySeconds ?? 0, nowMs)
}

/** Whether the pod is not available to the set. */
export function isUnavailable(set: StatefulSet, pod: Pod, nowMs: number): boolean {
  return isBeingDeleted(pod) || !isRunningAndAvailable(set, pod, nowMs)
}

export function nameOf({ metadata }: StatefulSet, ordinal: number): string {
  return `${metadata.name}-${ordinal}`
}

export function claimsOf(set: StatefulSet, ordinal: number): PersistentVolumeClaim[] {
  const { metadata, spec } = set
  return (spec.volumeClaimTemplates ?? []).map((template) => ({
    ...template,
    metadata: {
      ...template.metadata,
      name: claimName(set, template, ordinal),
      namespace: metadata.namespace ?? '',
      labels: { ...template.metadata.labels, ...spec.selector.matchLabels },
    },
  }))
}

function claimName(set: StatefulSet, template: PersistentVolumeClaim, ordinal: number): string {
  return `${template.metadata.name}-${nameOf(set, ordinal)}`
}

/** The pod to create for the ordinal. */
export function podOf(set: StatefulSet, ordinal: number, revision: string): Pod {
  const { spec, metadata } = podFrom(set.spec.template, set, StatefulSets)
  const name = nameOf(set, ordinal)
  const volumes = volumesOf(set, ordinal, spec.volumes)
  return {
    metadata: {
      ...metadata,
      name,
      generateName: `${set.metadata.name}-`,
      labels: { ...metadata.labels, ...identityLabels(set, ordinal), [REVISION]: revision },
    },
    spec: {
      ...spec,
      hostname: name,
      ...((set.spec.serviceName ?? '') !== '' && { subdomain: set.spec.serviceName }),
      ...(volumes.length > 0 && { volumes }),
    },
    status: {},
  }
}

function identityLabels(set: StatefulSet, ordinal: number): Record<string, string> {
  return { [POD_NAME]: nameOf(set, ordinal), [POD_INDEX]: String(ordinal) }
}

/** Claims replace volumes of the same name. */
function volumesOf(set: StatefulSet, ordinal: number, volumes: readonly Volume[] = []): Volume[] {
  const templates = set.spec.volumeClaimTemplates ?? []
  const claimed = templates.map((template) => ({
    name: template.metadata.name ?? '',
    persistentVolumeClaim: { claimName: claimName(set, template, ordinal) },
  }))
  return [...claimed, ...volumes.filter(({ name }) => !claimed.some((one) => one.name === name))]
}

/** The pod with its identity restored; undefined if it is correct. */
export function corrected(set: StatefulSet, pod: Pod): Pod | undefined {
  const ordinal = ordinalOf(set, pod)
  const labels = { ...pod.metadata.labels, ...identityLabels(set, ordinal) }
  const claims = volumesOf(set, ordinal).map(({ name, persistentVolumeClaim }) => ({ name, persistentVolumeClaim }))
  const hasStorage = claims.every(({ name, persistentVolumeClaim }) =>
    pod.spec.volumes?.some(
      (volume) => volume.name === name && volume.persistentVolumeClaim?.claimName === persistentVolumeClaim?.claimName,
    ),
  )
  if (hasStorage && semanticEqual(labels, pod.metadata.labels)) return undefined
  const spec = hasStorage ? pod.spec : { ...pod.spec, volumes: volumesOf(set, ordinal, pod.spec.volumes) }
  return { ...pod, metadata: { ...pod.metadata, labels }, spec }
}
