/**
 * Clusters that start at the same moment do not see each other's links yet. Who first writes down that it takes a range has it, for as
 * long as its data directory says the same.
 */
import { mkdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'

import { rangesOf } from './asked-ranges.ts'
import { freeRanges, ownAddresses, type Ranges, readRuntimeFile } from './runtime-file.ts'

/** Gone after a reboot, as links are. */
const FOLDER = '/run/hyperkube/ranges'
/** By then a cluster that starts has written down what it took. */
const STARTING_MS = 60_000
const TRIES = 20

/** Ranges that nobody on this machine has. */
export async function claimRanges(dataDir: string, nowMs: number, folder: string = FOLDER): Promise<Ranges> {
  await mkdir(folder, { recursive: true })
  const taken = [...ownAddresses()]
  for (let tries = 0; ; tries++) {
    const ranges = freeRanges(taken)
    const file = join(folder, ranges.podCidr.replace('/', '-'))
    // Nothing is free: who comes then has to live with another.
    if ((await isClaimed(file, dataDir)) || tries === TRIES) return ranges
    if (await isHeld(file, ranges, nowMs)) taken.push(ranges.podCidr.split('/')[0] ?? '')
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

async function isHeld(file: string, { nodeCidr }: Ranges, nowMs: number): Promise<boolean> {
  const written = await stat(file).catch(() => undefined)
  if (written !== undefined && nowMs - written.mtimeMs < STARTING_MS) return true
  const has = (await readRuntimeFile(await holderOf(file)).catch(() => undefined))?.nodeCidr
  // Of the three it is the one that nobody chooses.
  return rangesOf(has ?? '')[0] === nodeCidr
}

function holderOf(file: string): Promise<string> {
  return readFile(file, 'utf8').catch(() => '')
}
