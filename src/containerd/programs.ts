/** Finds the programs that a private containerd needs. It never installs them. */
import { execFile } from 'node:child_process'
import { access, constants, readFile, statfs } from 'node:fs/promises'
import { delimiter, join } from 'node:path'
import { promisify } from 'node:util'

import { CNI_PLUGINS } from './network.ts'

export interface Programs {
  readonly containerd: string
  readonly major: number
  readonly version: string
  readonly runc: string
  readonly plugins: string
  /** PATH of child processes, with the directories of all programs. */
  readonly path: string
}

type Env = Readonly<Record<string, string | undefined>>

const SYSTEM_FOLDERS = ['/usr/local/sbin', '/usr/local/bin', '/usr/sbin', '/usr/bin', '/sbin', '/bin']
const CNI_FOLDERS = ['/opt/cni/bin', '/usr/lib/cni', '/usr/libexec/cni']

/** Throws an error that lists missing programs and how to install them. `folder` is searched first. */
export async function findPrograms(env: Env, folder?: string): Promise<Programs> {
  const own = (env['PATH'] ?? '').split(delimiter).filter((one) => one !== '')
  const folders = [...new Set([...(folder === undefined ? [] : [folder]), ...own, ...SYSTEM_FOLDERS])]
  const [containerd, shim, runc, iptables, ip, nft] = await Promise.all(
    ['containerd', 'containerd-shim-runc-v2', 'runc', 'iptables', 'ip', 'nft'].map((name) =>
      firstWith(folders, [name]),
    ),
  )
  const plugins = await firstWith([...(folder === undefined ? [] : [join(folder, 'cni')]), ...CNI_FOLDERS], CNI_PLUGINS)
  const missing = [
    [containerd, 'containerd'],
    [shim, 'containerd-shim-runc-v2'],
    [runc, 'runc'],
    [iptables, 'iptables'],
    [ip, 'ip'],
    [nft, 'nft'],
    [plugins, `the CNI plugins (${CNI_PLUGINS.join(', ')})`],
  ].flatMap(([found, name]) => (found === undefined ? [name] : []))
  if (containerd === undefined || runc === undefined || plugins === undefined || missing.length > 0)
    throw new Error(
      `There is no ${missing.join(', no ')} on this machine (Debian: apt-get install containerd runc containernetworking-plugins iptables iproute2 nftables)`,
    )
  const program = join(containerd, 'containerd')
  const version = versionIn((await promisify(execFile)(program, ['--version'])).stdout)
  return {
    containerd: program,
    version,
    major: Number(version.split('.')[0]),
    runc: join(runc, 'runc'),
    plugins,
    path: folders.join(delimiter),
  }
}

/** Version 1.6.20 of `containerd github.com/containerd/containerd 1.6.20~ds1 …`. Throws without a version. */
export function versionIn(text: string): string {
  const found = /\sv?(\d+\.\d+\.\d+)/.exec(text)?.[1]
  if (found === undefined) throw new Error(`containerd reports no version: ${JSON.stringify(text.trim())}`)
  return found
}

async function firstWith(folders: readonly string[], names: readonly string[]): Promise<string | undefined> {
  for (const folder of folders) {
    const all = names.map((name) => access(join(folder, name), constants.X_OK))
    if ((await Promise.allSettled(all)).every(({ status }) => status === 'fulfilled')) return folder
  }
  return undefined
}

const CAP_SYS_RESOURCE = 24n

export async function mayLowerOomScore(): Promise<boolean> {
  const capabilities = /^CapEff:\s*([0-9a-f]+)$/m.exec(await readFile('/proc/self/status', 'utf8'))?.[1] ?? '0'
  return ((BigInt(`0x${capabilities}`) >> CAP_SYS_RESOURCE) & 1n) === 1n
}

const OVERLAY_MAGIC = 0x794c7630

/** An overlay cannot be mounted on an overlay, so a cluster inside a container copies instead. */
export async function snapshotterFor(folder: string): Promise<'overlayfs' | 'native'> {
  const isKnown = /\toverlay$/m.test(await readFile('/proc/filesystems', 'utf8'))
  return isKnown && (await statfs(folder)).type !== OVERLAY_MAGIC ? 'overlayfs' : 'native'
}
