/**
 * Creates the cgroup of a pod before its sandbox and removes it afterwards. Limits of a pod apply to all its containers
 * together.
 */
import type { Pod } from '#apis/core/v1.ts'
import type { Clock } from '#lib/clock.ts'

import type { KubeletMeters } from '../metrics/kubelet-families.ts'
import { cgroupOfPods, cgroupParent } from '../pod/linux-resources.ts'
import type { PodFacts } from '../pod/pod-of-node.ts'
import { filesOf } from './cgroup-files.ts'
import type { CgroupTree } from './cgroup-tree.ts'

export interface PodCgroups {
  /** Creates the cgroup with the pod's limits. `hasExclusiveCpus`: no CPU quota. Rejects on failure. */
  ensure(pod: Pod, hasExclusiveCpus: boolean): Promise<void>
  /** Raises limits before containers grow; `ensure` lowers the others. */
  grow(pod: Pod, hasExclusiveCpus: boolean): Promise<void>
  /** Removes it with its descendants. A cgroup in use stays until the next sweep. */
  remove(pod: Pod): Promise<void>
  /** Removes cgroups of pods that are gone. */
  sweep(isGone: (uid: string) => boolean): Promise<void>
}

export const NO_CGROUPS: PodCgroups = {
  ensure: async () => undefined,
  grow: async () => undefined,
  remove: async () => undefined,
  sweep: async () => undefined,
}

/** Measures the duration of operations. */
export function countCgroups(cgroups: PodCgroups, meters: KubeletMeters, clock: Clock): PodCgroups {
  const durations = meters.family('kubelet_cgroup_manager_duration_seconds')
  const counted = async (operation: string, work: Promise<void>): Promise<void> => {
    const startMs = clock.elapsed()
    await work.finally(() => durations.labels(operation).observe((clock.elapsed() - startMs) / 1000))
  }
  return {
    ensure: (pod, hasExclusiveCpus) => counted('create', cgroups.ensure(pod, hasExclusiveCpus)),
    grow: (pod, hasExclusiveCpus) => counted('update', cgroups.grow(pod, hasExclusiveCpus)),
    remove: (pod) => counted('destroy', cgroups.remove(pod)),
    sweep: (isGone) => cgroups.sweep(isGone),
  }
}

export interface PodCgroupsOptions {
  readonly tree: CgroupTree
  readonly facts: Pick<PodFacts, 'cgroupDriver' | 'cgroupRoot' | 'pidsLimit' | 'cfsPeriodUs'>
  readonly clock: Clock
}

export function createPodCgroups({ tree, facts, clock }: PodCgroupsOptions): PodCgroups {
  const during = <T>(work: () => Promise<T>): Promise<T> => clock.during(work())
  const set = async (pod: Pod, hasExclusiveCpus: boolean, isOnlyMore: boolean): Promise<void> => {
    const path = cgroupParent(pod, facts)
    await tree.make(path)
    for (const file of filesOf(pod, tree.version, { ...facts, hasExclusiveCpus }))
      await tree.write(path, file, isOnlyMore)
  }
  const above = [cgroupOfPods([], facts), ...SHARED_CLASSES.map((name) => cgroupOfPods([name], facts))]
  return {
    ensure: (pod, hasExclusiveCpus) => during(() => set(pod, hasExclusiveCpus, false)),
    grow: (pod, hasExclusiveCpus) => during(() => set(pod, hasExclusiveCpus, true)),
    remove: (pod) => during(() => tree.remove(cgroupParent(pod, facts))),
    sweep: (isGone) =>
      during(async () => {
        for (const path of above) {
          for (const name of await tree.namesBelow(path)) {
            const uid = uidIn(name)
            if (uid !== undefined && isGone(uid)) await tree.remove(`${path}/${name}`)
          }
        }
      }),
  }
}

/** QoS classes with their own cgroup. */
export const SHARED_CLASSES = ['burstable', 'besteffort'] as const

/** The UID in `pod<uid>`, or in the name of a slice. */
function uidIn(name: string): string | undefined {
  return /^pod(.*)$/.exec(name)?.[1] ?? /-pod([^-]+)\.slice$/.exec(name)?.[1]?.replaceAll('_', '-')
}
