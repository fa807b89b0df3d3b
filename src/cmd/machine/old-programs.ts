/** `hyperkube machine old-programs`: copies of hyperkube that nothing on this machine runs any more go. The one that is asked stays. */
import { readdir, readFile, readlink, rm } from 'node:fs/promises'
import { basename, dirname, join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'

import { defineProgram, type Program, ProgramError } from '#lib/program.ts'

export const oldPrograms: Program = defineProgram({
  name: 'old-programs',
  long: 'old-programs removes copies of this program that lie beside it and that no process has been started from.',
  flags: {},
  async run({ stdout }) {
    const root = resolve(fileURLToPath(new URL('../../../', import.meta.url)))
    const folder = dirname(root)
    if (basename(folder) !== 'programs') throw new ProgramError(`${root} is no copy that a builder has sent`)
    const running = await commandsHere()
    for (const name of oldNames(await readdir(folder), { own: basename(root), folder, running })) {
      await rm(join(folder, name), { recursive: true, force: true })
      stdout.write(`${name}\n`)
    }
    return 0
  },
})

/** A digest, and what comes before it is whole. */
const COPY = /^[0-9a-f]{64}(?:\.part|\.new)?$/

/** Pure. `running`: programs and command lines of all processes. */
export function oldNames(
  names: readonly string[],
  { own, folder, running }: { readonly own: string; readonly folder: string; readonly running: readonly string[] },
): string[] {
  return names.filter(
    (name) => COPY.test(name) && name !== own && !running.some((text) => text.includes(`${folder}/${name}/`)),
  )
}

/** A process that has ended meanwhile runs nothing. */
async function commandsHere(): Promise<string[]> {
  const ids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name))
  const found = ids.flatMap((id) => [
    readlink(`/proc/${id}/exe`).catch(() => ''),
    readFile(`/proc/${id}/cmdline`, 'utf8').catch(() => ''),
  ])
  return Promise.all(found)
}
