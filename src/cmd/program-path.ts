/** Finds the path of this program, for services that start it. */
import { fileURLToPath } from 'node:url'

export const OWN_PROGRAM: string = fileURLToPath(new URL('../../bin/hyperkube', import.meta.url))

/** The script for Node itself, for systems without a shell that runs OWN_PROGRAM. */
export const OWN_ENTRY: string = fileURLToPath(new URL('../../bin/entry.cjs', import.meta.url))
