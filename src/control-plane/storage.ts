/** Opens the store that the settings name. */
import { resolve } from 'node:path'

import { readText } from '#component/live-files.ts'
import { ProgramError } from '#lib/program.ts'
import type { Backend } from '#storage/backend.ts'
import { loadBackend } from '#storage/index.ts'

import type { Environment } from './environment.ts'

/** Returns the opener: it starts at once when called. Throws ProgramError if the store cannot be opened. */
export async function prepareStore(environment: Environment): Promise<() => Promise<Backend>> {
  const { plan, clock, random, log, cwd, readFile, closing } = environment
  const { location, historyMs, caFile, certFile, keyFile } = plan.datastore
  const read = (file: string): Promise<string | undefined> =>
    file === '' ? Promise.resolve(undefined) : readText(readFile, file)
  const [ca, certificate, key] = await Promise.all([caFile, certFile, keyFile].map(read))
  const tls = {
    ...(ca !== undefined && { ca }),
    ...(certificate !== undefined && { certificate }),
    ...(key !== undefined && { key }),
  }
  const where = location.startsWith('sqlite:') ? `sqlite:${resolve(cwd, location.slice('sqlite:'.length))}` : location
  const refuse = (cause: unknown): never => {
    throw new ProgramError(`Cannot open the datastore "${where}": ${(cause as Error).message}`, { cause })
  }
  const open = environment.openStore ?? (await loadBackend(where).catch(refuse))
  return async () => {
    const options = { clock, random, historyMs, log: (message: string) => log.info(message), etcd: { tls } }
    const backend = await open(options).catch(refuse)
    closing.defer(() => backend.close())
    return backend
  }
}
