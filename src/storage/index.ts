/** Opens the backend of a store's location: memory, a SQLite file or etcd's URLs. */
import type { Clock } from '#lib/clock.ts'
import type { Random } from '#lib/random.ts'

import type { Backend } from './backend.ts'
import type { EtcdOptions } from './etcd.ts'
import { createMemoryBackend } from './memory.ts'

export interface OpenBackendOptions {
  readonly clock: Clock
  readonly random: Random
  /** Receives messages for operators. */
  readonly log?: (message: string) => void
  /** The history window; default 5 minutes. */
  readonly historyMs?: number
  /** The credentials for an etcd cluster. */
  readonly etcd?: Pick<EtcdOptions, 'tls' | 'credentials' | 'timeoutMs'>
}

/** Opens the store at `location`: `memory`, `sqlite:PATH`, or the URLs of an etcd cluster separated by commas. */
export async function openBackend(location: string, options: OpenBackendOptions): Promise<Backend> {
  return (await loadBackend(location))(options)
}

/**
 * Returns the opener of the store at `location`, after its code has been loaded: each backend has code that others do
 * not need. The opener starts at once when called.
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
