/** Which backend keeps the state: chosen by where it lives. */
import type { Clock } from '#lib/clock.ts'
import type { Random } from '#lib/random.ts'

import type { Backend } from './backend.ts'
import type { EtcdOptions } from './etcd.ts'
import { createMemoryBackend } from './memory.ts'

export interface OpenBackendOptions {
  readonly clock: Clock
  readonly random: Random
  /** Told what an operator may want to know. */
  readonly log?: (message: string) => void
  /** How much history is kept; default 5 minutes. */
  readonly historyMs?: number
  /** How to be let in, when the store is an etcd cluster. */
  readonly etcd?: Pick<EtcdOptions, 'tls' | 'credentials' | 'timeoutMs'>
}

/** Opens the store at `location`: `memory`, `sqlite:PATH`, or the URLs of an etcd cluster separated by commas. */
export async function openBackend(location: string, options: OpenBackendOptions): Promise<Backend> {
  return (await loadBackend(location))(options)
}

/**
 * What opens the store at `location`, when its code has been loaded: each backend brings some that the others do not
 * need. Called, it begins at once, before anything is waited for.
 */
export async function loadBackend(location: string): Promise<(options: OpenBackendOptions) => Promise<Backend>> {
  if (location === 'memory') return async (options) => createMemoryBackend(options)
  if (location.startsWith('sqlite:') && location.length > 'sqlite:'.length) {
    const { openSqliteBackend } = await import('./sqlite.ts')
    return (options) => openSqliteBackend(location.slice('sqlite:'.length), options)
  }
  if (/^https?:/.test(location)) {
    const { openEtcdBackend } = await import('./etcd.ts')
    return (options) => openEtcdBackend(location.split(','), { ...options, ...options.etcd })
  }
  throw new TypeError(
    `"${location}" names no store; use "memory", "sqlite:PATH" or the URLs of an etcd cluster, separated by commas`,
  )
}
