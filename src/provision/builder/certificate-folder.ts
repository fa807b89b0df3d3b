/** Reads the folder with certificates of an external certificate authority. */
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'

import { ProgramError } from '#lib/program.ts'

import type { FolderFiles } from '../pki/custom.ts'

/** Throws ProgramError if the folder does not exist. */
export async function readCertificateFolder(folder: string): Promise<FolderFiles> {
  const names = await readdir(folder).catch((cause: NodeJS.ErrnoException) => {
    throw new ProgramError(`Cannot read the folder of certificates: ${cause.message}`, { cause })
  })
  const files = names.filter((name) => name.endsWith('.pem'))
  return new Map(
    await Promise.all(files.map(async (name) => [name, await readFile(join(folder, name), 'utf8')] as const)),
  )
}
