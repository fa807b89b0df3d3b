/**
 * The cgroups of pods, made before their sandboxes and taken away after them: a pod's limits hold for all its containers
 * together, and nothing is left of who has gone.
 */
import type { Pod } from '#apis/core/v1.ts'
import type { Clock } from '#lib/clock.ts'

import type { KubeletMeters } from '../metrics/kubelet-families.ts'
import { cgroupOfPods, cgroupParent } from '../pods/linux-resources.ts'
import type { PodFacts } from '../pods/pod-of-node.ts'
import { filesOf } from './cgroup-files.ts'
import type { CgroupTree } from './cgroup-tree.ts'

export interface PodCgroups {
  /** It is there, with what the pod is granted. `hasOwnCpus`: no limit of processors binds it. Rejects when that cannot be. */
  ensure(pod: Pod, hasOwnCpus: boolean): Promise<void>
  /** Whatever is to grow does, before containers grow into it; `ensure` does the rest. */
  grow(pod: Pod, hasOwnCpus: boolean): Promise<void>
  /** With all below it. What is still in use stays, for the next sweep. */
  remove(pod: Pod): Promise<void>
  /** Takes away those of pods that have gone. */
  sweep(isGone: (uid: string) => boolean): Promise<void>
}

export const NO_CGROUPS: PodCgroups = {
  ensure: async () => undefined,
  grow: async () => undefined,
  remove: async () => undefined,
  sweep: async () => undefined,
}

/** Counts how long its work takes. */
export function countCgroups(cgroups: PodCgroups, meters: KubeletMeters, clock: Clock): PodCgroups {
  const durations = meters.family('kubelet_cgroup_manager_duration_seconds')
  const counted = async (operation: string, work: Promise<void>): Promise<void> => {
    const startMs = clock.elapsed()
    await work.finally(() => durations.labels(operation).observe((clock.elapsed() - startMs) / 1000))
  }
  return {
    ensure: (pod, hasOwnCpus) => counted('create', cgroups.ensure(pod, hasOwnCpus)),
    grow: (pod, hasOwnCpus) => counted('update', cgroups.grow(pod, hasOwnCpus)),
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
  const set = async (pod: Pod, hasOwnCpus: boolean, isOnlyMore: boolean): Promise<void> => {
    const path = cgroupParent(pod, facts)
    await tree.make(path)
    for (const file of filesOf(pod, tree.version, { ...facts, hasOwnCpus })) await tree.write(path, file, isOnlyMore)
  }
  const above = [cgroupOfPods([], facts), ...SHARED_CLASSES.map((name) => cgroupOfPods([name], facts))]
  return {
    ensure: (pod, hasOwnCpus) => during(() => set(pod, hasOwnCpus, false)),
    grow: (pod, hasOwnCpus) => during(() => set(pod, hasOwnCpus, true)),
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

/** Those whose pods have a cgroup between them and all pods. */
export const SHARED_CLASSES = ['burstable', 'besteffort'] as const

/** `pod<uid>`, or a slice that ends so, where dashes come between parts. */
function uidIn(name: string): string | undefined {
  return /^pod(.*)$/.exec(name)?.[1] ?? /-pod([^-]+)\.slice$/.exec(name)?.[1]?.replaceAll('_', '-')
}
