/** Mounting, as the node does it. The only place that starts `mount` and `umount`, and none of them through a shell. */
import { execFile } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { release } from 'node:os'

export interface MountAsk {
  readonly source: string
  readonly target: string
  /** `tmpfs`; none for a bind mount. */
  readonly type?: string
  readonly options: readonly string[]
}

export interface MountPoint {
  readonly path: string
  readonly type: string
  /** Which file system it is, `0:45`, and which directory of it: two mounts that have both show the same thing. */
  readonly device: string
  readonly root: string
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
    list: async () => parseMountInfo(await readFile('/proc/self/mountinfo', 'utf8')),
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

/** `36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root rw,errors=continue`. */
export function parseMountInfo(text: string): MountPoint[] {
  return text.split('\n').flatMap((line) => {
    const [, , device = '', root = '', path = '', ...rest] = line.split(' ')
    const type = rest[rest.indexOf('-') + 1] ?? ''
    return path === '' ? [] : [{ path: unescape(path), type, device, root: unescape(root) }]
  })
}

/** Blanks, tabs, line ends and backslashes are written in octal. */
const unescape = (text: string): string =>
  text.replaceAll(/\\([0-7]{3})/g, (_, octal: string) => String.fromCharCode(Number.parseInt(octal, 8)))

/** Those at or below a path, the newest first: the order in which they can be unmounted. */
export function mountsBelow(mounts: readonly MountPoint[], path: string): MountPoint[] {
  return mounts.filter((mount) => mount.path === path || mount.path.startsWith(`${path}/`)).toReversed()
}
