/** Creates, updates and deletes the RBAC objects of the management server in a managed cluster. */
import { ClusterRoleBindings, ClusterRoles, RoleBindings } from '#apis/rbac/v1.ts'
import type { ApiClient } from '#client/api-client.ts'

import { type AccessObjects, MANAGED_LABEL } from './access-objects.ts'
import { applyKind } from './apply-kind.ts'

export async function applyAccess(client: ApiClient, wanted: AccessObjects, signal: AbortSignal): Promise<void> {
  const options = { label: MANAGED_LABEL, signal }
  await applyKind({ client, kind: ClusterRoles, ...options }, wanted.clusterRoles)
  await applyKind({ client, kind: ClusterRoleBindings, ...options }, wanted.clusterRoleBindings)
  await applyKind({ client, kind: RoleBindings, ...options }, wanted.roleBindings)
}
