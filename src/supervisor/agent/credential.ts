/**
 * The credential of this machine: a random text that the agent makes and shows to the server when it registers. The
 * registration token, which others may know, is of no use after that.
 */
import type { Random } from '#lib/random.ts'

import type { Host } from '../host.ts'

const BYTES = 32

/** Only the owner of the file may read it. */
export async function openCredential(
  { files, layout }: Pick<Host, 'files' | 'layout'>,
  random: Random,
): Promise<string> {
  const stored = (await files.read(layout.credential))?.trim() ?? ''
  if (stored !== '') return stored
  const made = Buffer.from(random.bytes(BYTES)).toString('base64url')
  await files.write(layout.credential, `${made}\n`)
  return made
}
