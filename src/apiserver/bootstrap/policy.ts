/** Creates the default RBAC roles and bindings, and updates existing ones. */
import type { Kind } from '#apis/kinds.ts'
import { ClusterRoleBindings, ClusterRoles, RoleBindings, Roles } from '#apis/rbac/v1.ts'
import type { ClusterRole, ClusterRoleBinding, Role, RoleBinding } from '#apis/rbac/v1.ts'
import { isAlreadyExists, isNotFound } from '#meta/status.ts'

import type { Registry } from '../registry/registry.ts'
import { planReconcile } from './reconcile.ts'
import { bootstrapPolicy } from './roles.ts'

type PolicyObject = Role | ClusterRole | RoleBinding | ClusterRoleBinding

/** Namespaces must exist. Kinds that are not served are skipped. */
export async function ensurePolicy(registry: Registry, isEnabled: (gate: string) => boolean): Promise<void> {
  const { clusterRoles, clusterRoleBindings, roles, roleBindings } = bootstrapPolicy(isEnabled)
  const lists: [Kind, readonly PolicyObject[]][] = [
    [ClusterRoles, clusterRoles],
    [ClusterRoleBindings, clusterRoleBindings],
    [Roles, roles],
    [RoleBindings, roleBindings],
  ]
  for (const [kind, wanted] of lists) {
    // Concurrently per kind: the store groups concurrent commits.
    await Promise.all(wanted.map((object) => reconcile(registry, kind, object)))
  }
}

/** The maximum number of attempts while another client creates and deletes the same object. */
const TRIES = 3

async function reconcile(registry: Registry, kind: Kind, wanted: PolicyObject): Promise<void> {
  for (let tries = TRIES; ; tries--) {
    try {
      await reconcileOnce(registry, kind, wanted)
      return
    } catch (error) {
      if (tries === 1 || !(isAlreadyExists(error) || isNotFound(error))) throw error
    }
  }
}

async function reconcileOnce(registry: Registry, kind: Kind, wanted: PolicyObject): Promise<void> {
  const { writer } = registry
  const { namespace = '', name = '' } = wanted.metadata
  const existing = (await writer.get(kind, namespace, name)) as PolicyObject | undefined
  const plan = planReconcile(existing, wanted)
  if (plan.action === 'none') return
  if (plan.action === 'update') {
    await writer.update(kind, { namespace, name }, (live) => {
      const again = planReconcile(live as PolicyObject, wanted)
      return again.action === 'update' ? again.object : live
    })
    return
  }
  if (plan.action === 'recreate') await writer.delete(kind, { namespace, name })
  await writer.create(kind, plan.object)
}
