/** Where objects are kept: the store that the settings name, and how secrets rest in it. */
import { resolve } from 'node:path'

import { ProgramError } from '#lib/program.ts'
import { parseYaml } from '#lib/yaml.ts'
import type { Backend } from '#storage/backend.ts'
import { type AtRest, createAtRest } from '#storage/encryption/at-rest.ts'
import {
  defaultEncryption,
  type EncryptionConfig,
  NO_ENCRYPTION,
  parseEncryptionConfig,
} from '#storage/encryption/config.ts'
import { loadBackend } from '#storage/index.ts'

import { createLiveFiles, readText } from './live-files.ts'
import type { Site } from './site.ts'

/** What opens it: called, it begins at once, before anything is waited for. Throws ProgramError when it cannot be opened. */
export async function prepareStore(site: Site): Promise<() => Promise<Backend>> {
  const { plan, clock, random, log, cwd, readFile, closing } = site
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
  const open = await loadBackend(where).catch(refuse)
  return async () => {
    const options = { clock, random, historyMs, log: (message: string) => log.info(message), etcd: { tls } }
    const backend = await open(options).catch(refuse)
    closing.defer(() => backend.close())
    return backend
  }
}

export async function openAtRest(site: Site): Promise<AtRest> {
  const { settings, files, random, cwd } = site
  const file = settings['encryption-provider-config']
  if (file === '') {
    const keyFile = settings['encryption-key-file']
    const config = keyFile === '' ? NO_ENCRYPTION : await defaultEncryption(resolve(cwd, keyFile), random)
    return createAtRest(config, random)
  }
  const isFollowed = settings['encryption-provider-config-automatic-reload']
  const parse = ([text = '']: readonly string[]): EncryptionConfig => parseEncryptionConfig(parseYaml(text))
  // A configuration that is not followed is read once, through files that are never looked at again.
  const source = isFollowed ? files : createLiveFiles(site)
  const config = await source.open([file], parse, (next) => atRest.reload(next))
  const atRest = createAtRest(config(), random)
  return atRest
}
