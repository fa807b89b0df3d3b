/**
 * SELinux warnings: pods that share a volume with conflicting mount labels cannot run on one node. Both pods get an
 * event, even on different nodes. The uses of each pod are remembered until it ends, so that each conflict is reported
 * once.
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
import type { Cache } from '#reconcile/cache.ts'
import { EVENTS, related, rule } from '#reconcile/controller.ts'

import { perRun } from '../controller.ts'
import { type Controller, type ControllerContext, defineController } from '../controller.ts'
import { type Attachable, attachableFor } from './attachable.ts'
import { PODS_BY_CLAIM } from './pods-by-claim.ts'

/** How a pod mounts a volume. */
interface Use {
  /** `user:role:type:level`; empty if the volume is not mounted with a label. */
  readonly label: string
  readonly policy: string
}

/** Uses by volume name and pod. */
const usesOf = perRun(() => new Map<string, Map<string, Use>>())

export const seLinuxWarningController: Controller = defineController({
  name: 'selinux-warning-controller',
  component: 'selinux_warning',
  isOptional: true,
  gates: ['SELinuxChangePolicy'],
  // One worker: of two concurrent pods, the second reports the conflict.
  workers: 1,
  watches: [
    // The other relevant fields are immutable.
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
    else checkPod(pod, context)
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

/** Throws if the pod has two labels for a volume; retried later, as upstream. */
function checkPod(pod: Pod, context: ControllerContext): void {
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

/** The labels of all containers that mount the volume; undefined if none does. */
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

/** Whether the volume supports mounting with a label: network disks do, CSI drivers declare it. */
function canMountWithLabel({ csi }: Attachable, cache: Cache): boolean {
  return csi === undefined || cache.get(CSIDrivers, csi.driver)?.spec.seLinuxMount === true
}

function useOf({ spec }: Pod, label: string, isMountable: boolean): Use {
  const { seLinuxChangePolicy: wanted = 'MountOption' } = spec.securityContext ?? {}
  if (!isMountable || wanted === 'Recursive' || label === '') return { label: '', policy: 'Recursive' }
  return { label, policy: wanted }
}

/** Records the pod's use, and reports new conflicts to both pods. */
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
      reportToBoth(
        { property: 'SELinuxChangePolicy', key, value: use.policy, otherKey, otherValue: other.policy },
        context,
      )
    }
    if (labelsConflict(use.label, other.label)) {
      reportToBoth({ property: 'SELinuxLabel', key, value: use.label, otherKey, otherValue: other.label }, context)
    }
  }
}

/** Empty components do not conflict, because the node fills them in; the level is compared even if empty. */
export function labelsConflict(one: string, other: string): boolean {
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

function reportToBoth(conflict: Conflict, context: ControllerContext): void {
  const { property, key, value, otherKey, otherValue } = conflict
  reportConflict(conflict, context)
  reportConflict({ property, key: otherKey, value: otherValue, otherKey: key, otherValue: value }, context)
}

/** Names pods of the same namespace only. */
function reportConflict(
  { property, key, value, otherKey, otherValue }: Conflict,
  { cache, event }: ControllerContext,
): void {
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
