/**
 * Generates and stores the credential of this machine: a random text with which the agent registers at the management
 * server and connects later. The registration token is then no longer needed.
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
