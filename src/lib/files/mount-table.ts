/** Reads the mounts of this process's mount namespace from /proc. */
import { execFile } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { promisify } from 'node:util'

export interface MountPoint {
  readonly path: string
  readonly type: string
  /** Which file system it is, `0:45`, and which directory of it: two mounts that have both show the same thing. */
  readonly device: string
  readonly root: string
}

/** In the order in which they were mounted. */
export async function readMountTable(): Promise<MountPoint[]> {
  return parseMountTable(await readFile('/proc/self/mountinfo', 'utf8'))
}

/** `36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root rw,errors=continue`. */
export function parseMountTable(text: string): MountPoint[] {
  return text.split('\n').flatMap((line) => {
    const [, , device = '', root = '', path = '', ...rest] = line.split(' ')
    const type = rest[rest.indexOf('-') + 1] ?? ''
    return path === '' ? [] : [{ path: unescape(path), type, device, root: unescape(root) }]
  })
}

/** Blanks, tabs, line ends and backslashes are written in octal. */
const unescape = (text: string): string =>
  text.replaceAll(/\\([0-7]{3})/g, (_, octal: string) => String.fromCharCode(Number.parseInt(octal, 8)))

/** Those at or below one of the folders, the newest first: the order in which they can be unmounted. */
export function mountsBelow(mounts: readonly MountPoint[], ...folders: readonly string[]): MountPoint[] {
  const isBelow = (path: string): boolean => folders.some((one) => path === one || path.startsWith(`${one}/`))
  return mounts.filter(({ path }) => isBelow(path)).toReversed()
}

/** Lazily: a busy mount is detached when it is no longer used. */
export async function unmountBelow(folders: readonly string[]): Promise<void> {
  const mounts = await readMountTable().catch(() => [])
  for (const { path } of mountsBelow(mounts, ...folders))
    await promisify(execFile)('umount', ['--lazy', path]).catch(() => undefined)
}
