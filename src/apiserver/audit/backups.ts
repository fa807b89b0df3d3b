/** Lists and removes the backups of a rotated audit log. Their names contain the time; the oldest ones are removed. */
import { createReadStream, createWriteStream } from 'node:fs'
import { access, readdir, rm, stat } from 'node:fs/promises'
import { join, parse } from 'node:path'
import { pipeline } from 'node:stream/promises'

import type { Clock } from '#lib/clock.ts'

export interface BackupOptions {
  readonly clock: Clock
  /** 0: for ever. */
  readonly maxAgeDays: number
  /** 0: any number. */
  readonly maxBackups: number
  readonly compress: boolean
  readonly onError?: (error: unknown) => void
}

export interface Backups {
  /** The path for the log that is rotated now. No file exists there. */
  nextName(): Promise<string>
  /** Removes and compresses due backups in the background. */
  tidy(): void
  /** Resolves when no clean-up is running. */
  tidied(): Promise<void>
}

interface Backup {
  readonly file: string
  readonly atMs: number
}

const DAY_MS = 86_400_000
const COMPRESSED = '.gz'

export function createBackups(path: string, options: BackupOptions): Backups {
  const { dir, name, ext } = parse(path)
  const place = { dir: dir === '' ? '.' : dir, prefix: `${name}-`, ext }
  let tidying: Promise<void> | undefined
  let isRequested = false
  const run = async (): Promise<void> => {
    while (isRequested) {
      isRequested = false
      await tidyUp(place, options).catch((error: unknown) => options.onError?.(error))
    }
    tidying = undefined
  }
  return {
    async nextName() {
      for (let atMs = options.clock.now(); ; atMs++) {
        const file = join(place.dir, `${place.prefix}${stampOf(atMs)}${ext}`)
        if (!(await exists(file)) && !(await exists(file + COMPRESSED))) return file
      }
    },
    tidy() {
      isRequested = true
      tidying ??= run()
    },
    tidied: async () => tidying,
  }
}

interface LogPath {
  readonly dir: string
  readonly prefix: string
  readonly ext: string
}

/** `2026-01-02T03-04-05.678`, in UTC. */
function stampOf(epochMs: number): string {
  return new Date(epochMs).toISOString().slice(0, -1).replaceAll(':', '-')
}

async function tidyUp(place: LogPath, { clock, maxAgeDays, maxBackups, compress }: BackupOptions): Promise<void> {
  const all = await findBackups(place)
  const youngest = [...new Set(all.map(({ atMs }) => atMs))].sort((a, b) => b - a)
  const kept = new Set(maxBackups > 0 ? youngest.slice(0, maxBackups) : youngest)
  const oldestMs = maxAgeDays > 0 ? clock.now() - maxAgeDays * DAY_MS : -Infinity
  for (const { file, atMs } of all) {
    if (!kept.has(atMs) || atMs < oldestMs) await rm(file, { force: true })
    else if (compress && !file.endsWith(COMPRESSED)) await compressFile(file)
  }
}

async function findBackups({ dir, prefix, ext }: LogPath): Promise<Backup[]> {
  return (await readdir(dir)).flatMap((name) => {
    const end = [ext, ext + COMPRESSED].find((one) => name.startsWith(prefix) && name.endsWith(one))
    const stamp = end === undefined ? undefined : name.slice(prefix.length, name.length - end.length)
    const parts = stamp === undefined ? null : /^(\d{4}-\d\d-\d\dT\d\d)-(\d\d)-(\d\d\.\d{3})$/.exec(stamp)
    const atMs = parts === null ? Number.NaN : Date.parse(`${parts[1]}:${parts[2]}:${parts[3]}Z`)
    return Number.isNaN(atMs) ? [] : [{ file: join(dir, name), atMs }]
  })
}

/** After a crash the log is intact; an incomplete compressed file is written again. */
async function compressFile(file: string): Promise<void> {
  const { mode } = await stat(file)
  const target = file + COMPRESSED
  await pipeline(
    createReadStream(file),
    process.getBuiltinModule('node:zlib').createGzip(),
    createWriteStream(target, { mode: mode & 0o777, flush: true }),
  )
  await rm(file)
}

async function exists(file: string): Promise<boolean> {
  return access(file).then(
    () => true,
    () => false,
  )
}
