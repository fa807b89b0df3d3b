/** Stores records of published CSI volumes on disk, so that a restarted kubelet can unpublish them. */
import { mkdir, readdir, readFile, rm, rmdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'

import { podPaths, podsDir } from '../volume-paths.ts'
import { CSI_PLUGIN, type CsiPaths, DATA_FILE } from './csi-names.ts'

/** `vol_data.json`, in upstream's format. */
export interface VolumeRecord {
  readonly driverName: string
  readonly volumeHandle: string
  readonly specVolID?: string
  readonly nodeName?: string
  readonly attachmentID?: string
  readonly volumeLifecycleMode?: string
}

export async function writeRecord(dir: string, record: VolumeRecord): Promise<void> {
  await mkdir(dir, { recursive: true, mode: 0o750 })
  const sorted = Object.fromEntries(Object.entries(record).sort(([a], [b]) => (a < b ? -1 : 1)))
  await writeFile(join(dir, DATA_FILE), `${JSON.stringify(sorted)}\n`)
}

/** Undefined when it is missing or unreadable. */
export async function readRecord(dir: string): Promise<VolumeRecord | undefined> {
  try {
    return JSON.parse(await readFile(join(dir, DATA_FILE), 'utf8')) as VolumeRecord
  } catch {
    return undefined
  }
}

/** Removes the empty mount directory and the record. Fails while something is mounted. */
export async function removeRecord(dir: string, mount: string): Promise<void> {
  await rmdir(join(dir, mount)).catch(unlessGone)
  await rm(join(dir, DATA_FILE), { force: true })
  await rmdir(dir).catch(unlessGone)
}

/** Ignores missing files. */
export function unlessGone(error: unknown): void {
  if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
}

export const namesIn = (dir: string): Promise<string[]> => readdir(dir).catch(() => [])

/** A published volume of a pod, found on disk. */
export interface PodVolumeRecord {
  readonly uid: string
  /** The volume directory, or the link to the device. */
  readonly path: string
  /** The name in the path. */
  readonly name: string
  readonly isBlock: boolean
  readonly record: VolumeRecord
}

const FOLDER = CSI_PLUGIN.replaceAll('/', '~')

/** The volumes of one pod. A directory without a record was never passed to a driver. */
export async function recordsOfPod(rootDir: string, uid: string, paths: CsiPaths): Promise<PodVolumeRecord[]> {
  const { volumes, devices: links } = podPaths(rootDir, uid)
  const found: PodVolumeRecord[] = []
  const note = async (path: string, dataDir: string, name: string, isBlock: boolean): Promise<void> => {
    const record = await readRecord(dataDir)
    if (record !== undefined) found.push({ uid, path, name, isBlock, record })
  }
  const files = join(volumes, FOLDER)
  for (const name of await namesIn(files)) await note(join(files, name), join(files, name), name, false)
  const devices = join(links, FOLDER)
  for (const name of await namesIn(devices)) await note(join(devices, name), paths.blockData(name), name, true)
  return found
}

export async function recordsOfPods(rootDir: string, paths: CsiPaths): Promise<PodVolumeRecord[]> {
  const uids = await namesIn(podsDir(rootDir))
  return (await Promise.all(uids.map((uid) => recordsOfPod(rootDir, uid, paths)))).flat()
}

/** The link through which a container gets a block device. */
export const deviceLink = (rootDir: string, uid: string, plugin: string, name: string): string =>
  join(podPaths(rootDir, uid).devices, plugin.replaceAll('/', '~'), name)
