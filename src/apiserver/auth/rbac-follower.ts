/** Updates the RBAC index with every change of the stored roles and bindings. */
import type { Kind } from '#apis/kinds.ts'
import { ClusterRoleBindings, ClusterRoles, RoleBindings, Roles } from '#apis/rbac/v1.ts'
import type { RbacIndex } from '#auth/authorizers/rbac/rbac.ts'
import type { KubeObject } from '#meta/object.ts'

import type { Entry } from '../registry/entry.ts'
import { follow, type Following, joinFollowings } from '../registry/follow.ts'
import type { Registry } from '../registry/registry.ts'

/** Throws if one of the four resources is not served. */
export function followRbac(registry: Pick<Registry, 'storeOf'>, index: RbacIndex): Following {
  const part = <T extends KubeObject>(
    kind: Kind<T>,
    set: (object: T) => void,
    remove: (gone: Entry) => void,
  ): Following => {
    const store = registry.storeOf(kind)
    if (store === undefined) throw new Error(`RBAC needs the resource "${kind.plural}" to be served`)
    return follow(store.collection, { set: ({ object }) => set(object as T), remove })
  }
  const unbind = ({ namespace, name }: Entry): void => index.removeBinding(namespace, name)
  return joinFollowings([
    part(
      Roles,
      (role) => index.setRole(role),
      ({ namespace, name }) => index.removeRole(namespace, name),
    ),
    part(
      ClusterRoles,
      (role) => index.setClusterRole(role),
      ({ name }) => index.removeClusterRole(name),
    ),
    part(RoleBindings, (binding) => index.setBinding(binding), unbind),
    part(ClusterRoleBindings, (binding) => index.setBinding(binding), unbind),
  ])
}
