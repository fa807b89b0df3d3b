/**
 * Files that are read again when they change: certificates are renewed and keys are rotated while the server runs. They are
 * looked at every few seconds, by content: that works on every file system, and through the links of mounted Secrets.
 */
import { type Clock, every, type Timer } from '#lib/clock.ts'
import type { Logger } from '#lib/log.ts'
import { ProgramError } from '#lib/program.ts'

export interface LiveFilesOptions {
  readonly clock: Clock
  readonly readFile: (path: string) => Promise<string>
  readonly log: Logger
}

export interface LiveFiles {
  /**
   * Reads the files and keeps what `parse` makes of their texts. The same value is handed out until a file changes; what
   * cannot be read or parsed then leaves the old value in place and a line in the log. `changed` is told new values and
   * may refuse them by throwing or rejecting. Throws ProgramError when the files cannot be used now.
   */
  open<T>(
    paths: readonly string[],
    parse: (texts: readonly string[]) => T,
    changed?: (value: T) => void | Promise<void>,
  ): Promise<() => T>
  /** Looks at all files once. */
  poll(): Promise<void>
  /** Looks at all files from now on, until `close`. `changed` is told after a look that found new values. */
  start(changed: () => void): void
  close(): void
}

/** Much shorter than the life of any certificate, long enough to cost nothing. */
const POLL_MS = 5_000

export function createLiveFiles({ clock, readFile, log }: LiveFilesOptions): LiveFiles {
  const opened: (() => Promise<void>)[] = []
  let timer: Timer | undefined
  let tell = (): void => undefined
  let isNews = false
  let polling: Promise<void> | undefined
  const readAll = (paths: readonly string[]): Promise<string[]> => Promise.all(paths.map((path) => readFile(path)))
  const poll = async (): Promise<void> => {
    for (const refresh of opened) await refresh()
    if (isNews) tell()
    isNews = false
  }
  return {
    async open(paths, parse, changed) {
      let texts: readonly string[]
      let value: ReturnType<typeof parse>
      try {
        texts = await readAll(paths)
        value = parse(texts)
      } catch (cause) {
        throw new ProgramError(`Cannot use ${quoted(paths)}: ${(cause as Error).message}`, { cause })
      }
      opened.push(async () => {
        try {
          const now = await readAll(paths)
          if (now.every((text, at) => text === texts[at])) return
          const next = parse(now)
          await changed?.(next)
          texts = now
          value = next
          isNews = true
          log.info('File changed and was read again', { files: paths.join(', ') })
        } catch (error) {
          log.error(error, 'File changed and cannot be used; the old content stays in force', {
            files: paths.join(', '),
          })
        }
      })
      return () => value
    },
    poll,
    start(changed) {
      tell = changed
      timer = every(clock, POLL_MS, () => {
        polling ??= poll().finally(() => (polling = undefined))
      })
    },
    close: () => timer?.cancel(),
  }
}

/** Throws ProgramError, which begins with `place`. */
export async function readText(
  readFile: LiveFilesOptions['readFile'],
  file: string,
  place: string = '',
): Promise<string> {
  try {
    return await readFile(file)
  } catch (cause) {
    throw new ProgramError(`${place}Cannot read "${file}": ${(cause as Error).message}`, { cause })
  }
}

function quoted(paths: readonly string[]): string {
  return paths.map((path) => `"${path}"`).join(' and ')
}
