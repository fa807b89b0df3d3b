/** Watches a folder for image archives and calls back once for each, one after the other. */
import { watch } from 'node:fs'
import { mkdir, readdir } from 'node:fs/promises'
import { join } from 'node:path'

/** Incomplete files have another extension. */
const ENDING = '.tar'

/**
 * Resolves when it watches the folder, which it creates if needed. `load` does not reject. Ends with `closing`, after
 * the current archive.
 */
export async function followArchives(
  folder: string,
  load: (file: string) => Promise<void>,
  closing: AsyncDisposableStack,
): Promise<void> {
  const known = new Set<string>()
  let isClosed = false
  const look = async (): Promise<void> => {
    const names = await readdir(folder).catch(() => [])
    for (const name of names.filter((each) => each.endsWith(ENDING) && !known.has(each)).toSorted()) {
      if (isClosed) return
      known.add(name)
      await load(join(folder, name))
    }
  }
  await mkdir(folder, { recursive: true, mode: 0o755 })
  let last = Promise.resolve()
  const next = (): void => void (last = last.then(look))
  const watcher = watch(folder, next)
  closing.defer(async () => {
    isClosed = true
    watcher.close()
    await last
  })
  next()
}
