/** Archives of images that lie in a folder, and those that come into it: each is given on once, one after the other. */
import { watch } from 'node:fs'
import { mkdir, readdir } from 'node:fs/promises'
import { join } from 'node:path'

/** What is on its way has another ending. */
const ENDING = '.tar'

/** Resolves when it follows the folder, which is made if need be. `load` does not reject. Ends with `closing`, after the archive it is at. */
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
