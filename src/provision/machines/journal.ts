/**
 * Records every change of a machine before it is made, so that `restore` can undo all of them. It keeps copies of files
 * that existed before.
 */
import { copyFile, lstat, mkdir, open, readdir, readFile, rm, rmdir } from 'node:fs/promises'
import { dirname, join } from 'node:path'

import { unmountBelow } from '#lib/files/mount-table.ts'

import { sha256 } from '../service-digest.ts'

interface Entry {
  readonly path: string
  /** A folder is deleted if it is empty; a tree is deleted recursively; of a shelf only new entries are deleted. */
  readonly kind: 'file' | 'folder' | 'tree' | 'shelf'
  /** The earlier entries of a shelf. */
  readonly had?: readonly string[]
  /** The path of the copy. */
  readonly kept?: string
}

export interface Journal {
  /** Call it before writing a file. Creates its folders. */
  file(path: string): Promise<void>
  /** Call it for paths that others will create. Creates the parent folders. */
  tree(path: string): Promise<void>
  /** The same for everything that others will create in a folder, which may exist. */
  shelf(path: string): Promise<void>
  /** Undoes everything in reverse order, then deletes the journal. */
  undo(): Promise<void>
}

/** `home`: the folder of the journal. */
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
  // Serialized: two writes to one folder would both find it missing.
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
  // The previous line may be incomplete.
  await handle.writeFile(`\n${JSON.stringify(entry)}\n`)
  await handle.sync()
}

async function keep(path: string, home: string): Promise<string> {
  const kept = join(home, 'kept', sha256(path))
  await mkdir(dirname(kept), { recursive: true, mode: 0o700 })
  await copyFile(path, kept)
  // After the overwrite, the copy is the only original.
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

/** True if the path itself or a tree above it is recorded. */
function isWithin(path: string, entries: ReadonlyMap<string, Entry>): boolean {
  if (entries.has(path)) return true
  for (let above = dirname(path); above !== dirname(above); above = dirname(above))
    if (entries.get(above)?.kind === 'tree') return true
  return false
}

/** The last line may be incomplete after a crash: its change was not made. */
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
