/**
 * SELinux warnings: pods that share a volume and would mount it with different labels, or one with a label and the other
 * without, cannot both have it on one node. Both are told, whether or not they ever meet. Only told once: what is known
 * of each pod is remembered until it has ended.
 */
import {
  type PersistentVolume,
  type PersistentVolumeClaim,
  PersistentVolumeClaims,
  PersistentVolumes,
  type Pod,
  Pods,
  type SELinuxOptions,
} from '#apis/core/v1.ts'
import { type CSIDriver, CSIDrivers } from '#apis/storage/v1.ts'
import { keyOf, objectKey, splitKey } from '#meta/object.ts'
import { containersOf } from '#model/pod-spec/walk.ts'
import { isTerminal } from '#model/pods.ts'

import { type Attachable, attachableFor } from './attachable.ts'
import type { Cache } from './cache.ts'
import {
  type Controller,
  type ControllerContext,
  defineController,
  EVENTS,
  perRun,
  related,
  rule,
} from './controller.ts'
import { PODS_BY_CLAIM } from './pods-by-claim.ts'

/** How a pod mounts a volume. */
interface Use {
  /** `user:role:type:level`; empty when the volume is not mounted with one. */
  readonly label: string
  readonly policy: string
}

/** By the name of a volume, how each pod uses it. */
const usesOf = perRun(() => new Map<string, Map<string, Use>>())

export const seLinuxWarningController: Controller = defineController({
  name: 'selinux-warning-controller',
  component: 'selinux_warning',
  isOptional: true,
  gates: ['SELinuxChangePolicy'],
  // One after the other: of two pods that come together, the second one tells.
  workers: 1,
  watches: [
    // All else about a pod that matters never changes.
    related(
      Pods,
      (pod) => [objectKey(pod)],
      (pod, old) => isTerminal(pod) && !isTerminal(old),
    ),
    related(
      PersistentVolumeClaims,
      podsOfClaim,
      (claim, old) => claim.spec.volumeName !== old.spec.volumeName || claim.status.phase !== old.status.phase,
    ),
    related(PersistentVolumes, podsOfVolume, (volume, old) => volume.spec.claimRef?.uid !== old.spec.claimRef?.uid),
    related(CSIDrivers, podsOfDriver, (driver, old) => driver.spec.seLinuxMount !== old.spec.seLinuxMount),
  ],
  rules: [
    rule('', 'persistentvolumes persistentvolumeclaims pods', 'get list watch'),
    rule('storage.k8s.io', 'csidrivers', 'get list watch'),
    EVENTS,
  ],

  async reconcile(key, context) {
    const pod = context.cache.get(Pods, key)
    if (pod === undefined || isTerminal(pod)) forget(key, context)
    else look(pod, context)
  },
})

function podsOfClaim(claim: PersistentVolumeClaim, cache: Cache): string[] {
  return (claim.spec.volumeName ?? '') === '' ? [] : cache.by(Pods, PODS_BY_CLAIM, objectKey(claim)).map(objectKey)
}

function podsOfVolume({ spec: { claimRef } }: PersistentVolume, cache: Cache): string[] {
  if ((claimRef?.uid ?? '') === '') return []
  return cache.by(Pods, PODS_BY_CLAIM, keyOf(claimRef?.namespace, claimRef?.name ?? '')).map(objectKey)
}

function podsOfDriver({ metadata }: CSIDriver, cache: Cache): string[] {
  const volumes = [...cache.list(PersistentVolumes)].filter(({ spec }) => spec.csi?.driver === metadata.name)
  return volumes.flatMap((volume) => podsOfVolume(volume, cache))
}

function forget(key: string, context: ControllerContext): void {
  const uses = usesOf(context)
  for (const [name, pods] of uses) if (pods.delete(key) && pods.size === 0) uses.delete(name)
}

/** Throws when a volume has two labels within the pod: looked at again later, as upstream does. */
function look(pod: Pod, context: ControllerContext): void {
  const problems: string[] = []
  for (const volume of pod.spec.volumes ?? []) {
    const attachable = attachableFor(pod, volume, context.cache)
    const labels = labelsOf(pod, volume.name)
    if (attachable === undefined || labels === undefined) continue
    if (labels.size > 1) {
      const message = `Volume ${JSON.stringify(volume.name)} is mounted twice with different SELinux labels inside this pod`
      context.event(pod, { type: 'Warning', reason: 'MultipleSELinuxLabels', message })
      problems.push(`multiple SELinux labels found: ${[...labels].join(',')}`)
    } else {
      const [label = ''] = labels
      note(attachable, pod, useOf(pod, label, canMountWithLabel(attachable, context.cache)), context)
    }
  }
  if (problems.length > 0) throw new Error(problems.join(', '))
}

/** The labels of all containers that mount the volume; undefined when none does. */
function labelsOf({ spec }: Pod, volumeName: string): Set<string> | undefined {
  const mounting = containersOf(spec)
    .map(({ container }) => container)
    .filter(({ volumeMounts }) => volumeMounts?.some(({ name }) => name === volumeName))
  if (mounting.length === 0) return undefined
  const options = mounting.map(
    ({ securityContext }) => securityContext?.seLinuxOptions ?? spec.securityContext?.seLinuxOptions,
  )
  return new Set(options.filter((one) => one !== undefined).map(labelText))
}

function labelText({ user = '', role = '', type = '', level = '' }: SELinuxOptions): string {
  const text = [user, role, type, level].join(':')
  return text === ':::' ? '' : text
}

/** Disks that nodes reach by themselves always can; drivers say whether they can. */
function canMountWithLabel({ csi }: Attachable, cache: Cache): boolean {
  return csi === undefined || cache.get(CSIDrivers, csi.driver)?.spec.seLinuxMount === true
}

function useOf({ spec }: Pod, label: string, isMountable: boolean): Use {
  const { seLinuxChangePolicy: wanted = 'MountOption' } = spec.securityContext ?? {}
  if (!isMountable || wanted === 'Recursive' || label === '') return { label: '', policy: 'Recursive' }
  return { label, policy: wanted }
}

/** Remembers how the pod uses the volume, and tells it and those it is at odds with, if that is news. */
function note({ name }: Attachable, pod: Pod, use: Use, context: ControllerContext): void {
  const uses = usesOf(context)
  const key = objectKey(pod)
  const pods = uses.get(name) ?? new Map<string, Use>()
  uses.set(name, pods)
  const before = pods.get(key)
  if (before?.label === use.label && before.policy === use.policy) return
  pods.set(key, use)
  for (const [otherKey, other] of pods) {
    if (other.policy !== use.policy) {
      tellBoth({ property: 'SELinuxChangePolicy', key, value: use.policy, otherKey, otherValue: other.policy }, context)
    }
    if (areAtOdds(use.label, other.label)) {
      tellBoth({ property: 'SELinuxLabel', key, value: use.label, otherKey, otherValue: other.label }, context)
    }
  }
}

/** What a node fills in, when it is left out, is no reason to quarrel; the level it never fills in. */
export function areAtOdds(one: string, other: string): boolean {
  const parts = (label: string): string[] => {
    const [user = '', role = '', type = '', ...level] = label.split(':')
    return [user, role, type, level.join(':')]
  }
  const others = parts(other)
  return parts(one).some((part, at) => {
    const counterpart = others[at] ?? ''
    return part !== counterpart && (at === 3 || (part !== '' && counterpart !== ''))
  })
}

interface Conflict {
  readonly property: 'SELinuxChangePolicy' | 'SELinuxLabel'
  readonly key: string
  readonly value: string
  readonly otherKey: string
  readonly otherValue: string
}

function tellBoth(conflict: Conflict, context: ControllerContext): void {
  const { property, key, value, otherKey, otherValue } = conflict
  tell(conflict, context)
  tell({ property, key: otherKey, value: otherValue, otherKey: key, otherValue: value }, context)
}

/** Names of other namespaces are nobody's business. */
function tell({ property, key, value, otherKey, otherValue }: Conflict, { cache, event }: ControllerContext): void {
  const pod = cache.get(Pods, key)
  if (pod === undefined) return
  const end = 'If both pods land on the same node, only one of them may access the volume.'
  const other = splitKey(otherKey)
  const message =
    splitKey(key).namespace === other.namespace
      ? `${property} "${value}" conflicts with pod ${other.name} that uses the same volume as this pod with ${property} "${otherValue}". ${end}`
      : `${property}"${value}" conflicts with another pod that uses the same volume as this pod with a different ${property}. ${end}`
  event(pod, { type: 'Normal', reason: `${property}Conflict`, message })
}
