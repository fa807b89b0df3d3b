/** Builds encryption at rest from the settings, or from the default configuration. */
import { dirname, join, resolve } from 'node:path'

import { createLiveFiles } from '#component/live-files.ts'
import { ProgramError } from '#lib/program.ts'
import type { Backend } from '#storage/backend.ts'
import type { AtRest } from '#storage/encryption/at-rest.ts'
import { defaultEncryption, type EncryptionConfig, NO_ENCRYPTION } from '#storage/encryption/config.ts'
import { prepareValues } from '#storage/encryption/prepared-backend.ts'
import { openAtRest } from '#storage/encryption/providers.ts'

import { parseEncryptionConfig } from './config/encryption-config.ts'
import type { Environment } from './environment.ts'

export interface RestingBackend {
  readonly atRest: AtRest
  /** Returns values only after their keys are available. */
  readonly backend: Backend
}

/** Throws ProgramError for an unusable configuration. */
export async function openEncryption(environment: Environment, backend: Backend): Promise<RestingBackend> {
  const { settings, files, closing } = environment
  const file = settings['encryption-provider-config']
  const isFollowed = settings['encryption-provider-config-automatic-reload']
  // A configuration without reload is read once, through files that are never polled again.
  const source = isFollowed ? files : createLiveFiles(environment)
  const parse = ([text = '']: readonly string[]): EncryptionConfig => parseEncryptionConfig(file, text)
  const config =
    file === '' ? await defaultConfig(environment) : (await source.open([file], parse, (next) => open.reload(next)))()
  const open = await openAtRest(config, environment)
  closing.defer(() => open.close())
  const usesPlugins = config.resources.some(({ providers }) => providers.some(({ type }) => type === 'kms'))
  if (usesPlugins || isFollowed) return { atRest: open, backend: prepareValues(backend, open) }
  return { atRest: { ...open, check: undefined }, backend }
}

/**
 * Secrets in our own file store are encrypted with a key beside it unless another is configured; owners of an etcd
 * cluster decide for themselves.
 */
async function defaultConfig({ settings, plan, cwd, random }: Environment): Promise<EncryptionConfig> {
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
