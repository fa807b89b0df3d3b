/** Bind-mounts a directory of the node into the volumes of a pod. Several pods may share the directory. */
import { mkdir, rmdir, stat } from 'node:fs/promises'

import { type MountPoint, mountsBelow } from '#lib/files/mount-table.ts'
import { goQuote } from '#lib/go/text.ts'

import { setOwnership } from '../ownership.ts'
import { VolumeFault } from '../volume-fault.ts'
import type { Mounter } from './mounter.ts'

export interface BindRequest {
  readonly from: string
  readonly dir: string
  /** The parent of all pod directories, to find other pods that use the source. */
  readonly podsDir: string
  readonly readOnly: boolean
  readonly options: readonly string[]
  readonly fsGroup: number | undefined
  readonly policy: string | undefined
}

export async function setUpBind(request: BindRequest, mounter: Mounter): Promise<void> {
  const { from, dir, readOnly, options, fsGroup, policy } = request
  await checkSource(from)
  if ((await mounter.list()).some(({ path }) => path === dir)) return
  await mkdir(dir, { recursive: true, mode: 0o750 })
  try {
    await mounter.mount({ source: from, target: dir, options: ['bind', ...(readOnly ? ['ro'] : []), ...options] })
    // The first pod that uses the directory has already set the ownership.
    if (!readOnly && !(await isShared(request, mounter))) await setOwnership(dir, { fsGroup, readOnly, policy })
  } catch (error) {
    if ((await mounter.list()).some(({ path }) => path === dir)) await mounter.unmount(dir)
    await rmdir(dir)
    throw error
  }
}

async function checkSource(path: string): Promise<void> {
  const found = await stat(path).catch((error: NodeJS.ErrnoException) => {
    const text = error.code === 'ENOENT' ? `path ${goQuote(path)} does not exist` : error.message
    throw new VolumeFault('MountVolume.NewMounter initialization failed', text)
  })
  if (found.isDirectory()) return
  throw new VolumeFault('MountVolume.NewMounter initialization failed', 'only directory and block device are supported')
}

async function isShared({ dir, podsDir }: BindRequest, mounter: Mounter): Promise<boolean> {
  const mounts = await mounter.list()
  const own = mounts.findLast(({ path }) => path === dir)
  const isSame = ({ device, root, path }: MountPoint): boolean =>
    path !== dir && device === own?.device && root === own.root
  return mountsBelow(mounts, podsDir).some(isSame)
}
