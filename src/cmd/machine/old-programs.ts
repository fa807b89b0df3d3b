/**
 * `hyperkube machine old-programs`: removes copies of hyperkube that no process on this machine runs. It keeps the one
 * that executes the command.
 */
import { readdir, readFile, readlink, rm } from 'node:fs/promises'
import { basename, dirname, join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'

import { defineProgram, type Program, ProgramError } from '#lib/program.ts'

export const oldPrograms: Program = defineProgram({
  name: 'old-programs',
  long: 'old-programs removes copies of this program beside it that no process runs.',
  flags: {},
  async run({ stdout }) {
    const root = resolve(fileURLToPath(new URL('../../../', import.meta.url)))
    const folder = dirname(root)
    if (basename(folder) !== 'programs') throw new ProgramError(`${root} is not a copy that "hyperkube build" uploaded`)
    const running = await commandsHere()
    for (const name of oldNames(await readdir(folder), { own: basename(root), folder, running })) {
      await rm(join(folder, name), { recursive: true, force: true })
      stdout.write(`${name}\n`)
    }
    return 0
  },
})

/** The name of a copy: its digest, with a suffix while it is incomplete. */
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

/** A process that has ended in the meantime runs nothing. */
async function commandsHere(): Promise<string[]> {
  const ids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name))
  const found = ids.flatMap((id) => [
    readlink(`/proc/${id}/exe`).catch(() => ''),
    readFile(`/proc/${id}/cmdline`, 'utf8').catch(() => ''),
  ])
  return Promise.all(found)
}
