/** Deletes everything that the management server has created in a managed cluster. */
import { Namespaces } from '#apis/core/v1.ts'
import type { Kind } from '#apis/kinds.ts'
import { ClusterRoleBindings, ClusterRoles } from '#apis/rbac/v1.ts'
import type { ApiClient } from '#client/api-client.ts'
import { isNotFound } from '#meta/status.ts'

import { clusterGroup, CLUSTER_OWNER } from '../access/memberships.ts'
import { AGENT_NAME, AGENT_NAMESPACE } from './agent-manifest.ts'
import { applyAccess } from './apply-access.ts'
import { removeAuthTokens } from './apply-auth-tokens.ts'

/** The rights by which the server acts in the cluster. They cannot be deleted one after the other through themselves. */
const OWN_RIGHTS: readonly (readonly [Kind, string])[] = [
  [ClusterRoles, AGENT_NAME],
  [ClusterRoleBindings, AGENT_NAME],
  [ClusterRoleBindings, clusterGroup(CLUSTER_OWNER)],
]

/** The last objects become dependents of the agent's namespace, so that the garbage collector deletes them with it. */
export async function removeFromCluster(client: ApiClient, signal: AbortSignal): Promise<void> {
  const binding = await client.get(ClusterRoleBindings, { name: clusterGroup(CLUSTER_OWNER) }, { signal })
  await applyAccess(client, { clusterRoles: [], clusterRoleBindings: [binding], roleBindings: [] }, signal)
  await removeAuthTokens(client, signal)
  const namespace = await client.get(Namespaces, { name: AGENT_NAMESPACE }, { signal }).catch((error: unknown) => {
    if (!isNotFound(error)) throw error
  })
  // Rancher's agent: the server acts with the permissions of its account.
  if (namespace === undefined)
    return client.delete(ClusterRoleBindings, { name: binding.metadata.name ?? '' }, { signal })
  const { uid = '' } = namespace.metadata
  const ownerReferences = [{ apiVersion: 'v1', kind: 'Namespace', name: AGENT_NAMESPACE, uid }]
  for (const [kind, name] of OWN_RIGHTS) {
    const change = client.patch(kind, { name }, { type: 'merge', value: { metadata: { ownerReferences } } }, { signal })
    await change.catch((error: unknown) => {
      if (!isNotFound(error)) throw error
    })
  }
  await client.delete(Namespaces, { name: AGENT_NAMESPACE }, { signal })
}
