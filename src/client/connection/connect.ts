/**
 * Opens a connection to the API server. Settings come from the given options, else from KUBECONFIG, the files of a pod
 * or `~/.kube/config`.
 */
import { readFile } from 'node:fs/promises'
import process from 'node:process'

import type { BucketOptions } from '#lib/backoff.ts'
import { type Clock, realClock } from '#lib/clock.ts'
import { writeFileAtomically } from '#lib/files/atomic-file.ts'
import type { ClientConfig } from '#model/kubeconfig/reading.ts'

import { ApiClient } from '../api-client.ts'
import { type ConfigSources, inClusterConfig, userConfig } from './config.ts'
import { openConnection } from './connection.ts'

export interface ConnectOptions extends Partial<ConfigSources> {
  /** The server takes the first word as field manager: `my-operator/v1`. */
  readonly userAgent: string
  /** A kubeconfig file, and a context in it. */
  readonly kubeconfig?: string
  readonly context?: string
  /** Default: no client-side limit; the server applies priority and fairness. */
  readonly limits?: BucketOptions
  readonly clock?: Clock
  /** Called when credentials cannot be renewed. */
  readonly onError?: (error: unknown) => void
}

export interface Connected extends AsyncDisposable {
  readonly client: ApiClient
  /** The namespace of the context; empty if it has none. */
  readonly namespace: string
  /** Closes all connections. */
  close(): void
}

/** Throws ConfigError. */
export async function connect(options: ConnectOptions): Promise<Connected> {
  const { userAgent, limits, clock = realClock, onError } = options
  const sources = {
    env: process.env,
    cwd: process.cwd(),
    readFile: (path: string) => readFile(path, 'utf8'),
    ...options,
  }
  const config = await findConfig(options, sources)
  const writeFile = (path: string, text: string): Promise<void> => writeFileAtomically(path, text, { mode: 0o600 })
  const connection = await openConnection(config, { ...sources, clock, writeFile, ...(onError && { onError }) })
  const client = new ApiClient({ ...connection, clock, userAgent, ...(limits !== undefined && { limits }) })
  return {
    client,
    namespace: config.namespace,
    close: () => connection.close(),
    [Symbol.asyncDispose]: async () => connection.close(),
  }
}

function findConfig({ kubeconfig = '', context }: ConnectOptions, sources: ConfigSources): Promise<ClientConfig> {
  const { KUBECONFIG: files = '', KUBERNETES_SERVICE_HOST: host = '' } = sources.env
  const isPod = kubeconfig === '' && files === '' && context === undefined && host !== ''
  return isPod ? inClusterConfig(sources) : userConfig(kubeconfig, context === undefined ? {} : { context }, sources)
}
