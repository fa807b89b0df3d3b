/** Mounts that are only noted, so that tests need not be root. What is mounted is the directory itself. */
import type { MountPoint } from '#lib/mount-table.ts'

import type { DiskTool, MountAsk, Mounter, ToolResult } from './mounter.ts'

export interface MemoryMounter extends Mounter {
  readonly asked: readonly MountAsk[]
  /** `mkfs.ext4 -F -m0 /dev/sdb`, in order. */
  readonly ran: readonly string[]
  /** What tools for disks answer. Default: blkid finds nothing, all others succeed. */
  readonly toolResults: Map<DiskTool, ToolResult>
  /** What unmounting fails with while it is set. */
  fault: string | undefined
}

export function createMemoryMounter(): MemoryMounter {
  const asked: MountAsk[] = []
  const ran: string[] = []
  const toolResults = new Map<DiskTool, ToolResult>([['blkid', { exitCode: 2, output: '' }]])
  let mounts: MountPoint[] = []
  const mounter: MemoryMounter = {
    asked,
    ran,
    toolResults,
    fault: undefined,
    hasNoSwap: true,
    async mount(ask) {
      asked.push(ask)
      mounts.push({ path: ask.target, type: ask.type ?? '', device: '0:1', root: ask.source })
    },
    async unmount(target) {
      if (mounter.fault !== undefined) throw new Error(mounter.fault)
      const at = mounts.findLastIndex(({ path }) => path === target)
      if (at === -1) throw new Error(`umount failed: umount: ${target}: not mounted.`)
      mounts = mounts.toSpliced(at, 1)
    },
    list: async () => mounts,
    async runDiskTool(tool, args) {
      ran.push([tool, ...args].join(' '))
      return toolResults.get(tool) ?? { exitCode: 0, output: '' }
    },
  }
  return mounter
}
