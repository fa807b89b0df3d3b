/** Mounting, as the node does it. The only place that starts `mount` and `umount`, and none of them through a shell. */
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

export interface Mounter {
  mount(ask: MountAsk): Promise<void>
  /** Never follows a link, and never forces: who is still in there keeps it. */
  unmount(target: string): Promise<void>
  /** In the order in which they were mounted. */
  list(): Promise<readonly MountPoint[]>
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
