/** Brings the RBAC objects of a cluster to the wanted state: creates, changes, and deletes those that are not wanted. */
import type { Kind } from '#apis/kinds.ts'
import { ClusterRoleBindings, ClusterRoles, type RoleBinding, RoleBindings } from '#apis/rbac/v1.ts'
import type { ApiClient } from '#client/api-client.ts'
import { type KubeObject, objectKey, semanticEqual } from '#meta/object.ts'
import { isNotFound } from '#meta/status.ts'

import { type AccessObjects, MANAGED_LABEL } from './access-objects.ts'

export async function applyAccess(client: ApiClient, wanted: AccessObjects, signal: AbortSignal): Promise<void> {
  await applyKind(client, ClusterRoles, wanted.clusterRoles, signal)
  await applyKind(client, ClusterRoleBindings, wanted.clusterRoleBindings, signal)
  await applyKind(client, RoleBindings, wanted.roleBindings, signal)
}

async function applyKind<T extends KubeObject>(
  client: ApiClient,
  kind: Kind<T>,
  wanted: readonly T[],
  signal: AbortSignal,
): Promise<void> {
  const { items } = await client.list(kind, { labelSelector: `${MANAGED_LABEL}=true`, signal })
  const found = new Map(items.map((object) => [objectKey(object), object]))
  for (const object of wanted) {
    const current = found.get(objectKey(object))
    found.delete(objectKey(object))
    if (current === undefined || !isSame(current, object)) await write(client, kind, { object, current, signal })
  }
  for (const { metadata } of found.values()) {
    const { namespace, name = '' } = metadata
    await ignoreMissing(client.delete(kind, { namespace, name }, { signal }))
  }
}

interface Write<T extends KubeObject> {
  readonly object: T
  readonly current: T | undefined
  readonly signal: AbortSignal
}

/** A binding cannot change its role: it is made anew. All else is updated, so that no right is missing for a moment. */
async function write<T extends KubeObject>(
  client: ApiClient,
  kind: Kind<T>,
  { object, current, signal }: Write<T>,
): Promise<void> {
  const { namespace, name = '' } = object.metadata
  if (current !== undefined && semanticEqual(roleOf(current), roleOf(object))) {
    await client.update(kind, object, { signal })
    return
  }
  if (current !== undefined) await ignoreMissing(client.delete(kind, { namespace, name }, { signal }))
  try {
    await client.create(kind, object, { signal })
  } catch (error) {
    // The namespace of a RoleBinding does not exist yet.
    if (namespace === undefined || !isNotFound(error)) throw error
  }
}

function roleOf(object: KubeObject): unknown {
  return (object as Partial<RoleBinding>).roleRef
}

function isSame(current: KubeObject, wanted: KubeObject): boolean {
  const { metadata: _, ...now } = current as KubeObject & Record<string, unknown>
  const { metadata: __, ...then } = wanted as KubeObject & Record<string, unknown>
  return Object.keys(then).every(
    (field) => ['kind', 'apiVersion'].includes(field) || semanticEqual(now[field], then[field]),
  )
}

async function ignoreMissing(work: Promise<void>): Promise<void> {
  try {
    await work
  } catch (error) {
    if (!isNotFound(error)) throw error
  }
}
