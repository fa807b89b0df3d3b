/**
 * Sets up volumes on the disk of the node: a table with one function for each kind of volume plan. CSI drivers set up
 * their own volumes.
 */
import { mkdir, rm, rmdir, symlink } from 'node:fs/promises'
import { dirname } from 'node:path'

import type { Pod } from '#apis/core/v1.ts'
import type { Logger } from '#lib/log/log.ts'

import { deviceLink } from './csi/csi-records.ts'
import { checkHostPath } from './host-path-check.ts'
import type { KeyedMutex } from './keyed-mutex.ts'
import { setUpBind } from './mounts/bind-directory.ts'
import { deviceMountPath, mountDevice } from './mounts/device-mount.ts'
import { nestedMounts } from './mounts/nested-mounts.ts'
import { type DirectoryTools, setUpDirectory } from './mounts/pod-directory.ts'
import type { MountedVolume } from './volume-manager.ts'
import { podPaths, podsDir } from './volume-paths.ts'
import type { VolumePlan, VolumePlugin } from './volume-plugin.ts'

/** A volume of a pod, and where it belongs. */
export interface VolumeTarget {
  readonly pod: Pod
  /** The name of the volume, or of the PersistentVolume. */
  readonly name: string
  readonly plugin: VolumePlugin
  /** The root directory of the kubelet, without links. */
  readonly root: string
}

export interface SetUpTools extends DirectoryTools {
  readonly log: Logger
  /** Serializes pods that share a directory of the node, so that the first one sets the ownership. */
  readonly bindMutex: KeyedMutex
}

/** Plans that need no CSI driver. */
export type DiskPlan = Exclude<VolumePlan, { readonly at: 'driver' }>

type SetUp<At extends DiskPlan['at']> = (
  plan: Extract<DiskPlan, { readonly at: At }>,
  target: VolumeTarget,
  tools: SetUpTools,
) => Promise<MountedVolume>

/** Existing parts are left unchanged. */
export function setUpVolume(plan: DiskPlan, target: VolumeTarget, tools: SetUpTools): Promise<MountedVolume> {
  return (SET_UPS[plan.at] as SetUp<DiskPlan['at']>)(plan, target, tools)
}

const SET_UPS: { readonly [At in DiskPlan['at']]: SetUp<At> } = {
  node: async ({ path, type, readOnly }) => {
    await checkHostPath(path, type)
    return { hostPath: path, readOnly }
  },

  runtime: async ({ image }) => ({ hostPath: '', readOnly: true, image }),

  device: async ({ path, readOnly }, { pod, name, plugin, root }) => {
    await checkHostPath(path, 'BlockDevice')
    const link = deviceLink(root, pod.metadata.uid ?? '', plugin.name, name)
    await mkdir(dirname(link), { recursive: true, mode: 0o750 })
    await rm(link, { force: true })
    await symlink(path, link)
    return { hostPath: link, isDevice: true, readOnly }
  },

  pod: async (plan, target, tools) => {
    const { pod, name, plugin, root } = target
    const { isContent } = plugin
    const dir = await directoryOf(target)
    const ready = podPaths(root, pod.metadata.uid ?? '').ready(isContent ? `wrapped_${name}` : name)
    const { fsGroup } = pod.spec.securityContext ?? {}
    await setUpDirectory({ ...plan, dir, ready, fsGroup, nested: nestedMounts(pod, name) }, tools)
    return { hostPath: dir, readOnly: isContent }
  },

  bind: async (plan, target, tools) => {
    const { readOnly, options } = plan
    const { root, pod } = target
    const { fsGroup, fsGroupChangePolicy: policy } = pod.spec.securityContext ?? {}
    const dir = await directoryOf(target)
    const mountPath = await deviceMountPath(root, plan.from, target.name)
    const from = mountPath ?? plan.from
    await tools.bindMutex.run(from, async () => {
      if (mountPath !== undefined) await mountDevice({ ...plan, device: plan.from, target: mountPath }, tools)
      await setUpBind({ from, dir, podsDir: podsDir(root), readOnly, options, fsGroup, policy }, tools.mounter)
    })
    return { hostPath: dir, readOnly }
  },

  mount: async ({ source, type, options, readOnly }, target, { mounter }) => {
    const dir = await directoryOf(target)
    const isMounted = async (): Promise<boolean> => (await mounter.list()).some(({ path }) => path === dir)
    if (await isMounted()) return { hostPath: dir, readOnly }
    await mkdir(dir, { recursive: true, mode: 0o750 })
    const all = new Set([...(readOnly ? ['ro'] : []), ...options])
    try {
      await mounter.mount({ source, target: dir, type, options: [...all].filter((option) => option !== '').sort() })
    } catch (error) {
      if (await isMounted()) await mounter.unmount(dir)
      await rmdir(dir)
      throw error
    }
    return { hostPath: dir, readOnly }
  },
}

/** The directory of the volume. Its parent exists afterwards. */
async function directoryOf({ pod, name, plugin, root }: VolumeTarget): Promise<string> {
  const paths = podPaths(root, pod.metadata.uid ?? '')
  await mkdir(paths.pod, { recursive: true, mode: 0o750 })
  return paths.volume(plugin.name, name)
}
