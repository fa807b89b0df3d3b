/**
 * Proxies requests of the management server to the API server of this machine, with its kubeconfig. The agent of the
 * cluster (`src/cluster-agent`) does the same for its cluster.
 */
import { access, readFile as readLocalFile } from 'node:fs/promises'

import { programConfig } from '#client/connection/config.ts'
import { openConnection } from '#client/connection/connection.ts'
import { type ApiProxy, createApiProxy } from '#cluster-agent/api-proxy.ts'
import type { Clock } from '#lib/clock.ts'
import type { Logger } from '#lib/log/log.ts'

export interface ApiServiceOptions {
  /** Of a user who may impersonate others. The file may appear later. */
  readonly kubeconfig: string
  readonly cwd: string
  readonly clock: Clock
  readonly log: Logger
}

/** Rejects without the kubeconfig. */
export async function openApiService(
  { kubeconfig, cwd, clock, log }: ApiServiceOptions,
  closing: AsyncDisposableStack,
): Promise<ApiProxy> {
  await access(kubeconfig).catch((cause: unknown) => {
    throw new Error(`this machine has no kubeconfig for requests to its API server: ${kubeconfig}`, { cause })
  })
  const readFile = (path: string): Promise<string> => readLocalFile(path, 'utf8')
  const config = await programConfig({ kubeconfig, master: '' }, { env: {}, cwd, readFile })
  const connection = await openConnection(config, { clock, readFile })
  closing.defer(() => connection.close())
  const proxy = createApiProxy({ connection, clock, log })
  closing.defer(() => proxy.close())
  return proxy
}
