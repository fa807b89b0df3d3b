/**
 * Generates the files with which a user can continue a built cluster with `hyperkube build`, without the server.
 * Pure.
 */
import { nodesOf } from '#provision/cluster.ts'
import { adminKubeconfig } from '#provision/pki/files.ts'
import { decodeState } from '#provision/state/state.ts'

import type { ClusterBuild } from '../kinds/cluster.ts'
import { readBuildFile } from './build-file.ts'
import type { BuildSecrets } from './secrets.ts'

/** By name. A function returns undefined while there is no such file. */
export function clusterFiles(
  build: ClusterBuild,
  { file, fields, state, knownHosts, sshKey }: BuildSecrets,
): Readonly<Record<string, () => string | undefined>> {
  return {
    'cluster.yml': () => file ?? readBuildFile(build, fields).text,
    'cluster.rkestate': () => state,
    'cluster.known_hosts': () => (knownHosts === '' ? undefined : knownHosts),
    'kube_config_cluster.yml': () => (state === undefined ? undefined : kubeconfigOf(state)),
    ssh_key: () => sshKey,
  }
}

function kubeconfigOf(state: string): string | undefined {
  const { desiredState } = decodeState(state)
  if (desiredState === undefined) return undefined
  const { rkeConfig, certificatesBundle } = desiredState
  const [first] = nodesOf(rkeConfig, 'controlplane')
  return first && adminKubeconfig(rkeConfig, certificatesBundle, first.address)
}
