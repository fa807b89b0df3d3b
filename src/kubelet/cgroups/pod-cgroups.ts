/**
 * The cgroups of pods, made before their sandboxes and taken away after them: a pod's limits hold for all its containers
 * together, and nothing is left of who has gone. For the driver cgroupfs; systemd makes and removes its slices by itself.
 */
import { mkdir, readdir, readFile, rmdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'

import type { Pod } from '#apis/core/v1.ts'
import type { Clock } from '#lib/clock.ts'

import type { KubeletMeters } from '../metrics/kubelet-families.ts'
import { cgroupParent } from '../pods/linux-resources.ts'
import type { PodFacts } from '../pods/pod-of-node.ts'
import { allowance, type CgroupFile, filesOf } from './cgroup-files.ts'

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
  /** Where they are mounted: `/sys/fs/cgroup`. */
  readonly root: string
  readonly version: 1 | 2
  readonly facts: Pick<PodFacts, 'cgroupDriver' | 'cgroupRoot' | 'pidsLimit' | 'cfsPeriodUs'>
  readonly clock: Clock
}

const CONTROLLERS = '+cpu +memory +pids'

export function createPodCgroups({ root, version, facts, clock }: PodCgroupsOptions): PodCgroups {
  if (facts.cgroupDriver !== 'cgroupfs') return NO_CGROUPS
  const during = <T>(work: () => Promise<T>): Promise<T> => clock.during(work())
  const dirOf = (path: string, controller: string): string => join(root, version === 1 ? controller : '', path)
  /** Every hierarchy: runtimes make their cgroups in all of them. */
  const hierarchies = async (): Promise<string[]> =>
    version === 2 ? [root] : (await readdir(root)).map((name) => join(root, name))
  const make = async (path: string): Promise<void> => {
    if (version === 2) return makeDelegated(root, path)
    const own = facts.pidsLimit === undefined ? ['cpu', 'memory'] : ['cpu', 'memory', 'pids']
    for (const controller of own) await mkdir(dirOf(path, controller), { recursive: true })
  }
  const write = async (path: string, { controller, name, value }: CgroupFile, isOnlyMore: boolean): Promise<void> => {
    const file = join(dirOf(path, controller), name)
    const now = (await readFile(file, 'utf8')).trim()
    if (now === value || (isOnlyMore && allowance(now) >= allowance(value))) return
    await writeFile(file, value)
  }
  const set = async (pod: Pod, hasOwnCpus: boolean, isOnlyMore: boolean): Promise<void> => {
    const path = cgroupParent(pod, facts)
    await make(path)
    for (const file of filesOf(pod, version, { ...facts, hasOwnCpus })) await write(path, file, isOnlyMore)
  }
  const removeAt = async (path: string): Promise<void> => {
    for (const hierarchy of await hierarchies()) await removeTree(join(hierarchy, path))
  }
  const above = `/${[...(facts.cgroupRoot ?? '').split('/').filter(Boolean), 'kubepods'].join('/')}`
  return {
    ensure: (pod, hasOwnCpus) => during(() => set(pod, hasOwnCpus, false)),
    grow: (pod, hasOwnCpus) => during(() => set(pod, hasOwnCpus, true)),
    remove: (pod) => during(() => removeAt(cgroupParent(pod, facts))),
    sweep: (isGone) =>
      during(async () => {
        const tops = (await hierarchies()).map((hierarchy) => join(hierarchy, above))
        const dirs = tops.flatMap((top) => [top, join(top, 'burstable'), join(top, 'besteffort')])
        for (const dir of dirs) {
          for (const uid of await uidsIn(dir)) if (isGone(uid)) await removeTree(join(dir, `pod${uid}`))
        }
      }),
  }
}

async function uidsIn(dir: string): Promise<string[]> {
  const names = await readdir(dir).catch(() => [])
  return names.filter((name) => name.startsWith('pod')).map((name) => name.slice('pod'.length))
}

/** In version 2 a cgroup has only what all above it pass on. */
async function makeDelegated(root: string, path: string): Promise<void> {
  let dir = root
  for (const part of path.split('/').filter((each) => each !== '')) {
    // The containers' cgroups are made by the runtime, which passes on to them what it needs.
    await writeFile(join(dir, 'cgroup.subtree_control'), CONTROLLERS).catch(() => undefined)
    dir = join(dir, part)
    await mkdir(dir).catch((error: NodeJS.ErrnoException) => {
      if (error.code !== 'EEXIST') throw error
    })
  }
}

/** From the bottom up. What has processes is left, and so is what is above it. */
async function removeTree(dir: string): Promise<void> {
  const entries = await readdir(dir, { withFileTypes: true }).catch(() => [])
  for (const entry of entries) if (entry.isDirectory()) await removeTree(join(dir, entry.name))
  await rmdir(dir).catch(() => undefined)
}
