/**
 * Claims address ranges for a cluster, because clusters that start at the same moment do not see each other's network
 * links. The first to write a claim gets the range, as long as its data directory records it.
 */
import { mkdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'

import { rangesOf } from './address-ranges.ts'
import { freeRanges, ownAddresses, type Ranges, readRuntimeFile } from './runtime-file.ts'

/** Deleted by a reboot, like links. */
const FOLDER = '/run/hyperkube/ranges'
/** After this time a starting cluster has recorded its ranges. */
const STARTING_MS = 60_000
const TRIES = 20

/** Ranges that no other cluster on this machine uses. */
export async function claimRanges(dataDir: string, nowMs: number, folder: string = FOLDER): Promise<Ranges> {
  await mkdir(folder, { recursive: true })
  const taken = [...ownAddresses()]
  for (let tries = 0; ; tries++) {
    const ranges = freeRanges(taken)
    const file = join(folder, ranges.podCidr.replace('/', '-'))
    // Nothing is free: shares a range.
    if ((await isClaimed(file, dataDir)) || tries === TRIES) return ranges
    if (await isInUse(file, ranges, nowMs)) taken.push(ranges.podCidr.split('/')[0] ?? '')
    else await rm(file, { force: true })
  }
}

async function isClaimed(file: string, dataDir: string): Promise<boolean> {
  try {
    await writeFile(file, dataDir, { flag: 'wx', mode: 0o644 })
    return true
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
    return (await holderOf(file)) === dataDir
  }
}

async function isInUse(file: string, { nodeCidr }: Ranges, nowMs: number): Promise<boolean> {
  const written = await stat(file).catch(() => undefined)
  if (written !== undefined && nowMs - written.mtimeMs < STARTING_MS) return true
  const has = (await readRuntimeFile(await holderOf(file)).catch(() => undefined))?.nodeCidr
  // The node range, because users cannot choose it.
  return rangesOf(has ?? '')[0] === nodeCidr
}

function holderOf(file: string): Promise<string> {
  return readFile(file, 'utf8').catch(() => '')
}
