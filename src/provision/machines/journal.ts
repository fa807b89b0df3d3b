/**
 * What was made on a machine, written down before it is made: whatever is interrupted, `restore` finds all of it. Files that
 * were there before are kept beside the journal, and put back.
 */
import { copyFile, lstat, mkdir, open, readdir, readFile, rm, rmdir } from 'node:fs/promises'
import { dirname, join } from 'node:path'

import { unmountBelow } from '#lib/mount-table.ts'

import { sha256 } from '../service-digest.ts'

interface Entry {
  readonly path: string
  /** A folder goes only if nothing is left in it; a tree goes with everything; of a shelf goes what was put onto it since. */
  readonly kind: 'file' | 'folder' | 'tree' | 'shelf'
  /** What was on a shelf before. */
  readonly had?: readonly string[]
  /** Where what was there before is kept. */
  readonly kept?: string
}

export interface Journal {
  /** To be called before a file is written. Makes its folders. */
  file(path: string): Promise<void>
  /** To be called for what others will make. Makes the folders above it. */
  tree(path: string): Promise<void>
  /** The same for all that others will put into a folder that may be there already. */
  shelf(path: string): Promise<void>
  /** Takes all of it away, newest first, and then what the journal itself keeps. */
  undo(): Promise<void>
}

/** `home`: the folder that it is kept in. */
export function openJournal(home: string): Journal {
  const file = join(home, 'made')
  let known: Map<string, Entry> | undefined
  let last: Promise<unknown> = Promise.resolve()
  const entries = async (): Promise<Map<string, Entry>> => (known ??= await readEntries(file))
  const note = async (entry: Entry): Promise<void> => {
    const all = await entries()
    await appendEntry(home, file, entry)
    all.set(entry.path, entry)
  }
  const folder = async (path: string): Promise<void> => {
    if (await exists(path)) return
    await folder(dirname(path))
    if (!isWithin(path, await entries())) await note({ path, kind: 'folder' })
    await mkdir(path, { recursive: true, mode: 0o755 })
  }
  // One after the other: two writes of one folder would both find it missing.
  const inTurn = (task: () => Promise<void>): Promise<void> => {
    const turn = last.then(task, task)
    last = turn.catch(() => undefined)
    return turn
  }
  const tree = async (path: string): Promise<void> => {
    if ((await exists(path)) || isWithin(path, await entries())) return
    await folder(dirname(path))
    await note({ path, kind: 'tree' })
  }
  return {
    file: (path) =>
      inTurn(async () => {
        if (isWithin(path, await entries())) return folder(dirname(path))
        const kept = (await exists(path)) ? await keep(path, home) : undefined
        await folder(dirname(path))
        await note({ path, kind: 'file', ...(kept !== undefined && { kept }) })
      }),
    tree: (path) => inTurn(() => tree(path)),
    shelf: (path) =>
      inTurn(async () => {
        if (!(await exists(path))) return tree(path)
        if (!isWithin(path, await entries())) await note({ path, kind: 'shelf', had: await readdir(path) })
      }),
    undo: () =>
      inTurn(async () => {
        for (const entry of [...(await entries()).values()].toReversed()) await takeAway(entry)
        await rm(file, { force: true })
        await rm(join(home, 'kept'), { recursive: true, force: true })
        known = undefined
      }),
  }
}

async function appendEntry(home: string, file: string, entry: Entry): Promise<void> {
  await mkdir(home, { recursive: true, mode: 0o755 })
  await using handle = await open(file, 'a', 0o600)
  // The line before may be a part of one.
  await handle.writeFile(`\n${JSON.stringify(entry)}\n`)
  await handle.sync()
}

async function keep(path: string, home: string): Promise<string> {
  const kept = join(home, 'kept', sha256(path))
  await mkdir(dirname(kept), { recursive: true, mode: 0o700 })
  await copyFile(path, kept)
  // It is all there is of the original once that is written over.
  await using handle = await open(kept, 'r')
  await handle.sync()
  return kept
}

async function takeAway({ path, kind, kept, had = [] }: Entry): Promise<void> {
  if (kind === 'shelf') {
    const added = (await readdir(path).catch(() => [])).filter((name) => !had.includes(name))
    for (const name of added) await rm(join(path, name), { recursive: true, force: true })
    return
  }
  if (kind === 'folder') {
    await rmdir(path).catch(() => undefined)
    return
  }
  if (kind === 'tree') await unmountBelow([path])
  await rm(path, { recursive: true, force: true })
  if (kept !== undefined) await copyFile(kept, path)
}

/** Whether it is known itself, or below what goes as a whole. */
function isWithin(path: string, entries: ReadonlyMap<string, Entry>): boolean {
  if (entries.has(path)) return true
  for (let above = dirname(path); above !== dirname(above); above = dirname(above))
    if (entries.get(above)?.kind === 'tree') return true
  return false
}

/** A line may be a part of one, where all ended while it was written: what it is about was not made. */
async function readEntries(file: string): Promise<Map<string, Entry>> {
  const text = await readFile(file, 'utf8').catch(() => '')
  const lines = text.split('\n').filter((line) => line.endsWith('}'))
  return new Map(lines.map((line) => JSON.parse(line) as Entry).map((entry) => [entry.path, entry]))
}

async function exists(path: string): Promise<boolean> {
  return lstat(path).then(
    () => true,
    () => false,
  )
}
