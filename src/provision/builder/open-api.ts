/** Opens the API of the cluster for the builder: one client, and kubectl for drains and manifests. */
import { connect } from '#client/connection/connect.ts'
import type { Clock } from '#lib/clock.ts'
import { userAgent } from '#model/version.ts'

import { clusterApi } from '../apply/cluster-api-client.ts'
import type { ClusterFile } from '../cluster.ts'
import type { OpenedApi, RunKubectl } from './session-options.ts'

export interface KubeconfigAccess {
  /** The file that `writeKubeconfig` of the session writes. */
  readonly kubeconfig: string
  readonly kubectl: RunKubectl
  readonly clock: Clock
  readonly env: Readonly<Record<string, string | undefined>>
  readonly cwd: string
}

export function apiOfKubeconfig(
  { clock, env, cwd, kubeconfig, kubectl: runKubectl }: KubeconfigAccess,
  cluster: ClusterFile,
  closing: AsyncDisposableStack,
): OpenedApi {
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
