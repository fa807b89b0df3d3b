/** Mounting and formatting, as the node does it. Only this file starts `mount`, `umount` and tools for disks, without a shell. */
import { execFile } from 'node:child_process'
import { release } from 'node:os'

import { type MountPoint, readMountTable } from '#lib/mount-table.ts'

export interface MountAsk {
  readonly source: string
  readonly target: string
  /** `tmpfs`; none for a bind mount. */
  readonly type?: string
  readonly options: readonly string[]
}

/** A program that looks at a disk, repairs it or formats it. */
export type DiskTool = 'blkid' | 'fsck' | `mkfs.${string}`

export interface ToolResult {
  /** Undefined when the program did not run to its end: `output` has the reason. */
  readonly exitCode: number | undefined
  /** What it wrote to both its streams. */
  readonly output: string
}

export interface Mounter {
  mount(ask: MountAsk): Promise<void>
  /** Never follows a link, and never forces: who is still in there keeps it. */
  unmount(target: string): Promise<void>
  /** In the order in which they were mounted. */
  list(): Promise<readonly MountPoint[]>
  /** Never rejects. */
  runDiskTool(this: void, tool: DiskTool, args: readonly string[]): Promise<ToolResult>
  /** Whether a tmpfs can be told never to swap. */
  readonly hasNoSwap: boolean
}

export function createMounter(): Mounter {
  return {
    mount: ({ source, target, type, options }) =>
      run('mount', [
        '--no-canonicalize',
        ...(type === undefined ? [] : ['-t', type]),
        ...(options.length === 0 ? [] : ['-o', options.join(',')]),
        source,
        target,
      ]),
    unmount: (target) => run('umount', ['--no-canonicalize', target]),
    list: readMountTable,
    runDiskTool,
    hasNoSwap: isAtLeast(release(), NO_SWAP_KERNEL),
  }
}

/** Linux 6.4. */
const NO_SWAP_KERNEL = [6, 4] as const

function isAtLeast(text: string, [major, minor]: readonly [number, number]): boolean {
  const [, own = '0', sub = '0'] = /^(\d+)\.(\d+)/.exec(text) ?? []
  return Number(own) > major || (Number(own) === major && Number(sub) >= minor)
}

const TIMEOUT_MS = 120_000

function run(command: string, args: readonly string[]): Promise<void> {
  return new Promise((resolve, reject) => {
    execFile(command, args, { timeout: TIMEOUT_MS }, (error, stdout, stderr) => {
      if (error === null) return resolve()
      const output = `${stdout}${stderr}`.trim()
      reject(new Error(`${command} failed: ${output === '' ? error.message : output}`, { cause: error }))
    })
  })
}

/** Enough for mkfs and fsck on a disk of terabytes. */
const TOOL_TIMEOUT_MS = 30 * 60_000

function runDiskTool(tool: DiskTool, args: readonly string[]): Promise<ToolResult> {
  return new Promise((resolve) => {
    execFile(tool, args, { timeout: TOOL_TIMEOUT_MS }, (error, stdout, stderr) => {
      const output = `${stdout}${stderr}`
      if (error === null) return resolve({ exitCode: 0, output })
      const { code } = error
      resolve(typeof code === 'number' ? { exitCode: code, output } : { exitCode: undefined, output: error.message })
    })
  })
}
