/** How values rest on the disk, as the settings want it, and the default where they say nothing. */
import { dirname, join, resolve } from 'node:path'

import { ProgramError } from '#lib/program.ts'
import type { Backend } from '#storage/backend.ts'
import type { AtRest } from '#storage/encryption/at-rest.ts'
import { defaultEncryption, type EncryptionConfig, NO_ENCRYPTION } from '#storage/encryption/config.ts'
import { prepareValues } from '#storage/encryption/prepared-backend.ts'
import { openAtRest } from '#storage/encryption/providers.ts'

import { parseEncryptionConfig } from './config/encryption-config.ts'
import { createLiveFiles } from './live-files.ts'
import type { Site } from './site.ts'

interface Encryption {
  readonly atRest: AtRest
  /** Hands out values that can be opened. */
  readonly backend: Backend
}

/** Throws ProgramError for a configuration that cannot be used. */
export async function openEncryption(site: Site, backend: Backend): Promise<Encryption> {
  const { settings, files, closing } = site
  const file = settings['encryption-provider-config']
  const isFollowed = settings['encryption-provider-config-automatic-reload']
  // A configuration that is not followed is read once, through files that are never looked at again.
  const source = isFollowed ? files : createLiveFiles(site)
  const parse = ([text = '']: readonly string[]): EncryptionConfig => parseEncryptionConfig(file, text)
  const config =
    file === '' ? await defaultConfig(site) : (await source.open([file], parse, (next) => open.reload(next)))()
  const open = await openAtRest(config, site)
  closing.defer(() => open.close())
  const usesPlugins = config.resources.some(({ providers }) => providers.some(({ type }) => type === 'kms'))
  if (usesPlugins || isFollowed) return { atRest: open, backend: prepareValues(backend, open) }
  return { atRest: { ...open, check: undefined }, backend }
}

/**
 * Secrets in a file of ours are sealed with a key beside it unless another is named: an etcd cluster has owners who decide
 * for themselves.
 */
async function defaultConfig({ settings, plan, cwd, random }: Site): Promise<EncryptionConfig> {
  const { location } = plan.datastore
  const beside = location.startsWith('sqlite:') ? join(dirname(location.slice('sqlite:'.length)), 'encryption.key') : ''
  const keyFile = settings['encryption-key-file'] || beside
  if (keyFile === '') return NO_ENCRYPTION
  try {
    return await defaultEncryption(resolve(cwd, keyFile), random)
  } catch (cause) {
    throw new ProgramError(`Cannot use the key of the datastore: ${(cause as Error).message}`, { cause })
  }
}
