/** An in-memory mounter for tests without root. It records mounts; the target is a plain directory. */
import type { DiskTool, Mounter, MountRequest, ToolResult } from '#kubelet/volumes/mounts/mounter.ts'
import type { MountPoint } from '#lib/files/mount-table.ts'

export interface MemoryMounter extends Mounter {
  readonly requests: readonly MountRequest[]
  /** Commands in order: `mkfs.ext4 -F -m0 /dev/sdb`. */
  readonly ran: readonly string[]
  /** Results of disk tools. Default: blkid finds nothing, all others succeed. */
  readonly toolResults: Map<DiskTool, ToolResult>
  /** While set, unmounting fails with it. */
  fault: string | undefined
}

export function createMemoryMounter(): MemoryMounter {
  const requests: MountRequest[] = []
  const ran: string[] = []
  const toolResults = new Map<DiskTool, ToolResult>([['blkid', { exitCode: 2, output: '' }]])
  let mounts: MountPoint[] = []
  const mounter: MemoryMounter = {
    requests,
    ran,
    toolResults,
    fault: undefined,
    hasNoSwap: true,
    async mount(request) {
      requests.push(request)
      mounts.push({ path: request.target, type: request.type ?? '', device: '0:1', root: request.source })
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
