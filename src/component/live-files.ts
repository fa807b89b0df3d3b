/**
 * Reloads files when they change, because certificates are renewed and keys are rotated while the server runs. Their
 * content is polled every few seconds, which works on every file system and through the links of mounted Secrets.
 */
import { type Clock, every, type Timer } from '#lib/clock.ts'
import type { Logger } from '#lib/log/log.ts'
import { ProgramError } from '#lib/program.ts'

export interface LiveFilesOptions {
  readonly clock: Clock
  readonly readFile: (path: string) => Promise<string>
  readonly log: Logger
}

export interface LiveFiles {
  /**
   * Reads the files and keeps the result of `parse`. The same value is returned until a file changes; an unusable
   * change keeps the old value and is logged. `changed` receives new values and may reject them by throwing. Throws
   * ProgramError if the files are unusable now.
   */
  open<T>(
    paths: readonly string[],
    parse: (texts: readonly string[]) => T,
    changed?: (value: T) => void | Promise<void>,
  ): Promise<() => T>
  /** Polls all files once. */
  poll(): Promise<void>
  /** Polls all files until `close`. `changed` is called after a poll that found new values. */
  start(changed: () => void): void
  close(): void
}

/** Much shorter than the life of any certificate, long enough to cost nothing. */
const POLL_MS = 5_000

export function createLiveFiles({ clock, readFile, log }: LiveFilesOptions): LiveFiles {
  const opened: (() => Promise<void>)[] = []
  let timer: Timer | undefined
  let notify = (): void => undefined
  let hasChanged = false
  let polling: Promise<void> | undefined
  const readAll = (paths: readonly string[]): Promise<string[]> => Promise.all(paths.map((path) => readFile(path)))
  const poll = async (): Promise<void> => {
    for (const refresh of opened) await refresh()
    if (hasChanged) notify()
    hasChanged = false
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
          hasChanged = true
          log.info('Reloaded changed file', { files: paths.join(', ') })
        } catch (error) {
          log.error(error, 'Failed to reload changed file; keeping its previous content', {
            files: paths.join(', '),
          })
        }
      })
      return () => value
    },
    poll,
    start(changed) {
      notify = changed
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
