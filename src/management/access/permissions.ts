/**
 * The permissions that a user has in the management server, in a cluster and in a project. No user can grant
 * permissions beyond these.
 */
import type { PolicyRule } from '#apis/rbac/v1.ts'

import { type Member, type Project, Projects, type Role, type RoleSpec, Roles } from '../kinds/access.ts'
import type { User } from '../kinds/user.ts'
import type { ManagementObjects } from '../objects.ts'
import type { Memberships } from './memberships.ts'
import { allows, covers, EVERYTHING, grantedRules, ownedRules, type RouteVerb } from './role-rules.ts'

type Rules = readonly PolicyRule[]

export class Permissions {
  readonly #objects: Pick<ManagementObjects, 'get'>
  readonly #memberships: Memberships

  constructor(objects: Pick<ManagementObjects, 'get'>, memberships: Memberships) {
    this.#objects = objects
    this.#memberships = memberships
  }

  ofServer(user: User): Rules {
    return this.#rules(user, ({ spec }) => spec.scope === 'global')
  }

  inCluster(user: User, cluster: string): Rules {
    const names = this.#memberships.clusterRoles(user, cluster)
    return names.flatMap((name) => {
      const role = this.#objects.get(Roles, name)
      return role === undefined ? [] : ownedRules(role.spec)
    })
  }

  /** Those in its cluster too. */
  inProject(user: User, project: Project): Rules {
    const own = this.#rules(user, (_role, { spec }) => spec.project === project.metadata.name)
    return [...this.inCluster(user, project.spec.cluster), ...own]
  }

  /** In the server. */
  may(user: User, verb: RouteVerb, resource: string): boolean {
    return allows(this.ofServer(user), verb, resource)
  }

  /** Where the Member gives its role. Nothing, for a project that does not exist. */
  at(user: User, { cluster, project }: Pick<Member['spec'], 'cluster' | 'project'>): Rules {
    if (cluster !== undefined) return this.inCluster(user, cluster)
    if (project === undefined) return this.ofServer(user)
    const found = this.#objects.get(Projects, project)
    return found === undefined ? [] : this.inProject(user, found)
  }

  /** The rules of each place in which the user has a role of this scope or of a wider one. */
  anywhere(user: User, scope: RoleSpec['scope']): readonly Rules[] {
    if (scope === 'global') return [this.ofServer(user)]
    if (this.#memberships.isAdministrator(user)) return [EVERYTHING]
    const members = this.#memberships.membersOf(user).map(({ member }) => member.spec)
    const places = members.filter(({ cluster, project }) => {
      return cluster !== undefined || (scope === 'project' && project !== undefined)
    })
    return places.map((place) => this.at(user, place))
  }

  /** True if the user has each right of the other user. */
  coversUser(user: User, other: User): boolean {
    return this.#memberships
      .membersOf(other)
      .every(({ member, role }) => covers(this.at(user, member.spec), grantedRules(role.spec)))
  }

  #rules(user: User, isMeant: (role: Role, member: Member) => boolean): Rules {
    return this.#memberships
      .membersOf(user)
      .flatMap(({ member, role }) => (isMeant(role, member) ? ownedRules(role.spec) : []))
  }
}
