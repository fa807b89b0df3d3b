/** Defines the service that runs the cluster agent, which connects a built cluster to its management server. Pure. */
import { type ClusterFile, type ManagementServer } from '../cluster.ts'
import { certificatePaths, CONFIG_FILES, hostPath } from '../host-paths.ts'
import * as pki from '../pki/plan.ts'

/** Also the name of the program. */
export const AGENT_SERVICE = 'cluster-agent'

export function agentArguments(
  cluster: Pick<ClusterFile, 'prefix_path'>,
  { url, certificateAuthority }: ManagementServer,
): string[] {
  return [
    AGENT_SERVICE,
    `--server=${url}`,
    `--kubeconfig=${certificatePaths(cluster, pki.CLUSTER_AGENT).kubeconfig}`,
    `--credential-file=${hostPath(cluster, CONFIG_FILES.agentCredential)}`,
    ...(certificateAuthority === ''
      ? []
      : [`--certificate-authority=${hostPath(cluster, CONFIG_FILES.agentAuthority)}`]),
  ]
}
