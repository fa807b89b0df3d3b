/** Imports a cluster into a management server, so that the tests reach it through the server and the agent. */
import { join } from 'node:path'

import { startManagementServer } from '../upstream/management-server.ts'
import type { Cluster } from './cluster.ts'

/** Both end with the returned cluster. */
export async function throughServer(inner: Cluster, folder: string): Promise<Cluster> {
  await using starting = new AsyncDisposableStack()
  starting.use(inner)
  const server = starting.use(await startManagementServer(join(folder, 'server')))
  const kubeconfig = await server.importCluster('conformance', inner.kubeconfig)
  const running = starting.move()
  return { kubeconfig, nodes: inner.nodes, [Symbol.asyncDispose]: () => running.disposeAsync() }
}
