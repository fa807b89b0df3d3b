/** Mounts and formats volumes on the node. Only this file runs `mount`, `umount` and disk tools, without a shell. */
import { execFile } from 'node:child_process'
import { release } from 'node:os'

import { type MountPoint, readMountTable } from '#lib/files/mount-table.ts'

export interface MountRequest {
  readonly source: string
  readonly target: string
  /** `tmpfs`; unset for a bind mount. */
  readonly type?: string
  readonly options: readonly string[]
}

/** A program that inspects, repairs or formats a disk. */
export type DiskTool = 'blkid' | 'fsck' | `mkfs.${string}`

export interface ToolResult {
  /** Undefined when the program did not finish; `output` then has the reason. */
  readonly exitCode: number | undefined
  /** Output of both streams. */
  readonly output: string
}

export interface Mounter {
  mount(request: MountRequest): Promise<void>
  /** Never follows links and never forces: a busy mount stays. */
  unmount(target: string): Promise<void>
  /** In mount order. */
  list(): Promise<readonly MountPoint[]>
  /** Never rejects. */
  runDiskTool(this: void, tool: DiskTool, args: readonly string[]): Promise<ToolResult>
  /** True if the kernel supports `noswap` for tmpfs. */
  readonly hasNoSwap: boolean
}

export function createMounter(): Mounter {
  return {
    mount,
    unmount: (target) => run('umount', ['--no-canonicalize', target]),
    list: readMountTable,
    runDiskTool: (tool, args) => runTool(tool, args, TOOL_TIMEOUT_MS),
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

async function mount({ source, target, type, options }: MountRequest): Promise<void> {
  const args = [
    ...(type === undefined ? [] : ['-t', type]),
    ...(options.length === 0 ? [] : ['-o', options.join(',')]),
    source,
    target,
  ]
  const { exitCode, output } = await runTool('mount', ['--no-canonicalize', ...args], TIMEOUT_MS)
  if (exitCode !== 0) throw new Error(mountFailure(args, { exitCode, output }))
}

/** Upstream's message. Pure. */
export function mountFailure(args: readonly string[], { exitCode, output }: ToolResult): string {
  const why = exitCode === undefined ? output : `exit status ${exitCode}`
  const lines = [`mount failed: ${why}`, 'Mounting command: mount', `Mounting arguments: ${args.join(' ')}`]
  return [...lines, `Output: ${exitCode === undefined ? '' : output}`].join('\n')
}

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

function runTool(tool: string, args: readonly string[], timeout: number): Promise<ToolResult> {
  return new Promise((resolve) => {
    execFile(tool, args, { timeout }, (error, stdout, stderr) => {
      const output = `${stdout}${stderr}`
      if (error === null) return resolve({ exitCode: 0, output })
      const { code } = error
      resolve(typeof code === 'number' ? { exitCode: code, output } : { exitCode: undefined, output: error.message })
    })
  })
}
