/**
 * Mounts a file system on a block device once for all pods, and formats an empty device. It never formats a device on
 * which blkid finds anything.
 */
import { mkdir, rmdir, stat } from 'node:fs/promises'

import { mountsBelow } from '#lib/files/mount-table.ts'
import { goQuote } from '#lib/go/text.ts'
import type { Logger } from '#lib/log/log.ts'

import type { KeyedMutex } from '../keyed-mutex.ts'
import { VolumeFault } from '../volume-fault.ts'
import { podsDir } from '../volume-paths.ts'
import type { Mounter } from './mounter.ts'

export interface DeviceMountRequest {
  /** `/dev/sdb1`. */
  readonly device: string
  /** The mount shared by all pods. */
  readonly target: string
  readonly fsType: string
  readonly readOnly: boolean
  readonly options: readonly string[]
}

interface DeviceMountTools {
  readonly mounter: Mounter
  readonly log: Logger
}

const DEFAULT_FS_TYPE = 'ext4'
/** Part of a program name: `mkfs.ext4`. */
const FS_TYPE = /^[\w-]+$/

const deviceMountsDir = (rootDir: string): string => `${rootDir}/plugins/kubernetes.io/local-volume/mounts`

/** The path of the shared mount of a device. Undefined when the path is no block device. */
export async function deviceMountPath(rootDir: string, path: string, volume: string): Promise<string | undefined> {
  const found = await stat(path).catch(() => undefined)
  return found?.isBlockDevice() === true ? `${deviceMountsDir(rootDir)}/${volume}` : undefined
}

/** Formats the device unless something is on it, and mounts it unless it is mounted. */
export async function mountDevice(request: DeviceMountRequest, tools: DeviceMountTools): Promise<void> {
  const { device, target, fsType } = request
  if ((await tools.mounter.list()).some(({ path }) => path === target)) return
  await mkdir(target, { recursive: true, mode: 0o750 })
  try {
    await formatAndMount(request, tools)
  } catch (error) {
    await rmdir(target).catch(() => undefined)
    const text = `failed to mount device ${device} at ${target} (fstype: ${fsType})`
    throw new VolumeFault('MountVolume.MountDevice failed', `local: ${text}, error ${(error as Error).message}`)
  }
}

async function formatAndMount(request: DeviceMountRequest, tools: DeviceMountTools): Promise<void> {
  const { device, target, readOnly } = request
  const { mounter, log } = tools
  const fsType = request.fsType === '' ? DEFAULT_FS_TYPE : request.fsType
  if (!FS_TYPE.test(fsType)) throw new Error(`invalid fsType ${goQuote(fsType)}`)
  const options = [...(readOnly ? ['ro'] : []), ...request.options, 'defaults']
  const mayWrite = !options.includes('ro')
  const existing = await formatOf(device, mounter)
  if (existing === '') {
    if (!mayWrite) {
      throw new Error(`cannot mount unformatted disk ${device} as we are manipulating it in read-only mode`)
    }
    await format({ ...request, fsType, options }, tools)
  } else {
    if (existing !== fsType) log.info('Disk has a different file system than configured', { device, fsType, existing })
    if (mayWrite) await repair(device, tools)
  }
  await mounter.mount({ source: device, target, type: fsType, options })
}

/** blkid's exit code for devices without a signature. */
const NOTHING_FOUND = 2

/** Returns '' for a device without anything that blkid knows. */
async function formatOf(device: string, { runDiskTool }: Mounter): Promise<string> {
  const { exitCode, output } = await runDiskTool('blkid', ['-p', '-s', 'TYPE', '-s', 'PTTYPE', '-o', 'export', device])
  if (exitCode === NOTHING_FOUND) return ''
  const failed = `failed to get disk format of disk ${device}:`
  if (exitCode !== 0) throw new Error(`${failed} ${exitCode === undefined ? output : `exit status ${exitCode}`}`)
  const pairs = output
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => line.split('='))
  if (pairs.some(({ length }) => length !== 2)) throw new Error(`${failed} blkid returns invalid output: ${output}`)
  const found = new Map(pairs.map(([key = '', value = '']) => [key, value]))
  return found.has('PTTYPE') ? 'unknown data, probably partitions' : (found.get('TYPE') ?? '')
}

/** Force flags, since no one can answer questions, and no blocks reserved for root. */
const FORMAT_OPTIONS: ReadonlyMap<string, readonly string[]> = new Map([
  ['ext3', ['-F', '-m0']],
  ['ext4', ['-F', '-m0']],
  ['xfs', ['-f']],
])

async function format(request: DeviceMountRequest, { mounter, log }: DeviceMountTools): Promise<void> {
  const { device, target, fsType, options } = request
  const args = [...(FORMAT_OPTIONS.get(fsType) ?? []), device]
  log.info('Disk appears to be unformatted, attempting to format', { device, fsType, options: args.join(' ') })
  const { exitCode, output } = await mounter.runDiskTool(`mkfs.${fsType}`, args)
  if (exitCode === 0) return log.info('Disk successfully formatted (mkfs)', { device, fsType, target })
  const what = `type:(${goQuote(fsType)}) target:(${goQuote(target)}) options:(${goQuote(options.join(','))})`
  const why = exitCode === undefined ? output : `exit status ${exitCode}`
  throw new Error(`format of disk ${goQuote(device)} failed: ${what} errcode:(${why}) output:(${output.trim()})`)
}

/** fsck's exit code for uncorrected errors. */
const ERRORS_UNCORRECTED = 4

async function repair(device: string, { mounter, log }: DeviceMountTools): Promise<void> {
  const { exitCode, output } = await mounter.runDiskTool('fsck', ['-a', device])
  if (exitCode === ERRORS_UNCORRECTED) {
    throw new Error(`'fsck' found errors on device ${device} but could not correct them: ${output}`)
  }
  if (exitCode !== 0) log.info('fsck reported a problem', { device, exitCode, output })
}

/** Unmounts devices that no pod uses. */
export async function unmountUnusedDevices(rootDir: string, mounter: Mounter, mutex: KeyedMutex): Promise<void> {
  for (const { path } of mountsBelow(await mounter.list(), deviceMountsDir(rootDir))) {
    await mutex.run(path, async () => {
      const mounts = await mounter.list()
      const own = mounts.findLast((mount) => mount.path === path)
      if (own === undefined || mountsBelow(mounts, podsDir(rootDir)).some(({ device }) => device === own.device)) return
      await mounter.unmount(path)
      await rmdir(path)
    })
  }
}
