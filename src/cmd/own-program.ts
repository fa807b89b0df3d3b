/** Where this program is: what is started as a service, and what services start. */
import { fileURLToPath } from 'node:url'

export const OWN_PROGRAM: string = fileURLToPath(new URL('../../bin/hyperkube', import.meta.url))

/** For Node itself, where there is no shell that could run the other. */
export const OWN_ENTRY: string = fileURLToPath(new URL('../../bin/entry.cjs', import.meta.url))
