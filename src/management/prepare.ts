/**
 * Prepares the control plane of the management server: creates its kinds, namespace, built-in roles and the Cluster
 * `local`.
 */
import { Namespaces } from '#apis/core/v1.ts'
import { ClusterRoleBindings } from '#apis/rbac/v1.ts'
import type { ApiClient } from '#client/api-client.ts'
import type { Random } from '#lib/random.ts'
import { semanticEqual } from '#meta/object.ts'
import { isAlreadyExists, isConflict } from '#meta/status.ts'

import { BUILT_IN_ROLES } from './access/built-in-roles.ts'
import { ownerBinding } from './clusters/access-objects.ts'
import { installDefinitions } from './definitions.ts'
import { Roles, type RoleSpec } from './kinds/access.ts'
import { Clusters, LOCAL_CLUSTER } from './kinds/cluster.ts'
import { MANAGEMENT_KINDS } from './kinds/index.ts'
import { MANAGEMENT_NAMESPACE } from './objects.ts'

/** Creates the definitions, updates those of an older version, and waits until they are served. */
export async function installKinds(client: ApiClient, random: Random): Promise<void> {
  const definitions = MANAGEMENT_KINDS.map(({ definition }) => definition)
  await installDefinitions(client, definitions, { random })
}

export async function installObjects(client: ApiClient): Promise<void> {
  await ignoreExisting(client.create(Namespaces, { metadata: { name: MANAGEMENT_NAMESPACE } }))
  await ignoreExisting(client.create(ClusterRoleBindings, ownerBinding()))
  for (const [name, spec] of Object.entries(BUILT_IN_ROLES)) {
    const made = await ignoreExisting(client.create(Roles, { metadata: { name }, spec }))
    if (!made) await restoreRole(client, name, spec)
  }
  const local = { displayName: 'local', source: 'local' } as const
  await ignoreExisting(client.create(Clusters, { metadata: { name: LOCAL_CLUSTER }, spec: local }))
}

async function restoreRole(client: ApiClient, name: string, spec: RoleSpec): Promise<void> {
  const found = await client.get(Roles, { name })
  // Administrators choose the roles of new users.
  const { isDefault = false } = found.spec
  const wanted = { ...spec, ...(spec.scope === 'global' && { isDefault }) }
  if (semanticEqual(found.spec, wanted)) return
  try {
    await client.update(Roles, { ...found, spec: wanted })
  } catch (error) {
    // Another replica restores it too.
    if (!isConflict(error)) throw error
  }
}

/** True if the object was created. */
async function ignoreExisting(work: Promise<unknown>): Promise<boolean> {
  try {
    await work
    return true
  } catch (error) {
    if (isAlreadyExists(error)) return false
    throw error
  }
}
