/** Opens the API of the cluster for `hyperkube build`: one client, and kubectl for drains and manifests. */
import { connect } from '#client/connection/connect.ts'
import { userAgent } from '#model/version.ts'

import { clusterApi } from '../apply/cluster-api-client.ts'
import type { ClusterApi } from '../apply/cluster-api.ts'
import type { ClusterFile } from '../cluster.ts'
import type { SessionOptions } from './session-options.ts'

/** `reopen` connects anew at the next request, because the kubeconfig has changed. */
export function openApi(
  { clock, env, cwd, kubectl: runKubectl }: SessionOptions,
  cluster: ClusterFile,
  kubeconfig: string,
  closing: AsyncDisposableStack,
): { readonly api: ClusterApi; reopen(): void } {
  let client: ReturnType<typeof connect> | undefined
  const kubectl = (args: readonly string[], signal: AbortSignal, input = ''): Promise<void> =>
    runKubectl({ args: [`--kubeconfig=${kubeconfig}`, ...args], input }, signal)
  const api = clusterApi({
    async client() {
      if (client === undefined) {
        const opening = connect({ kubeconfig, userAgent: userAgent('hyperkube-build'), clock, env, cwd })
        client = opening
        opening.then(
          (connected) => closing.defer(() => connected.close()),
          () => (client = undefined),
        )
      }
      return (await client).client
    },
    evict: (node, mode, signal) => kubectl(['drain', node, ...drainFlags(cluster, mode)], signal),
    change: (verb, manifest, signal) => kubectl(verb === 'apply' ? ['apply', '-f', '-'] : DELETE, signal, manifest),
  })
  return { api, reopen: () => (client = undefined) }
}

/** Draining a removed node includes all pods, because they would be lost with the machine. */
function drainFlags({ upgrade_strategy }: ClusterFile, mode: 'evict' | 'clear'): string[] {
  const { node_drain_input: drain } = upgrade_strategy
  const isGone = mode === 'clear'
  return [
    `--force=${isGone || drain.force}`,
    `--ignore-daemonsets=${isGone || drain.ignore_daemonsets}`,
    `--delete-emptydir-data=${isGone || drain.delete_local_data}`,
    `--grace-period=${drain.grace_period}`,
    `--timeout=${drain.timeout}s`,
  ]
}

/** Deletes dependents in the foreground, so that a disabled addon is gone when the command ends. */
const DELETE = ['delete', '--ignore-not-found', '--cascade=foreground', '-f', '-']
