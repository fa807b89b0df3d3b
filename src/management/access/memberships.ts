/**
 * Finds the roles of a user from the Member objects, by user or by group of an identity provider. A cluster receives
 * each role as a group: `hk:cluster:<role>` or `hk:project:<project>:<role>`. So a changed Member applies to the next
 * request, and a cluster needs RBAC bindings for these groups only.
 */
import type { KubeObject } from '#meta/object.ts'

import { type Member, Members, type Project, Projects, type Role, Roles, type Scope } from '../kinds/access.ts'
import type { User } from '../kinds/user.ts'
import type { ClusterUser } from '../links/link.ts'
import type { ManagementObjects } from '../objects.ts'

/** Has every right in the server and in each cluster. */
export const ADMINISTRATOR = 'administrator'
export const CLUSTER_OWNER = 'cluster-owner'

type Objects = Pick<ManagementObjects, 'get' | 'list' | 'listen'>

interface UsedMember {
  readonly member: Member
  readonly role: Role
}

export class Memberships {
  readonly #objects: Objects
  readonly #bySubject = new Map<string, Map<string, Member>>()

  constructor(objects: Objects) {
    this.#objects = objects
    objects.listen(Members, (member, isDeleted) => this.#learn(member, isDeleted))
  }

  /** All Members of the user whose role still exists. */
  membersOf(user: User): readonly UsedMember[] {
    const subjects = [`user/${nameOf(user)}`, ...(user.status?.groups ?? []).map((group) => `group/${group}`)]
    return subjects.flatMap((subject) =>
      [...(this.#bySubject.get(subject)?.values() ?? [])].flatMap((member) => {
        const role = this.#objects.get(Roles, member.spec.role)
        return role === undefined || !fits(member, role.spec.scope) ? [] : [{ member, role }]
      }),
    )
  }

  isAdministrator(user: User): boolean {
    return this.membersOf(user).some(({ role }) => role.metadata.name === ADMINISTRATOR)
  }

  /** The names of the roles that the user has in a cluster, not in its projects. */
  clusterRoles(user: User, cluster: string, members: readonly UsedMember[] = this.membersOf(user)): readonly string[] {
    const roles = members.filter(({ member }) => member.spec.cluster === cluster).map(({ role }) => nameOf(role))
    const isAdministrator = members.some(({ role }) => role.metadata.name === ADMINISTRATOR)
    return [...new Set([...(isAdministrator ? [CLUSTER_OWNER] : []), ...roles])]
  }

  /** The user as a cluster sees it; undefined for a user without any role there. */
  userIn(user: User, cluster: string): ClusterUser | undefined {
    const members = this.membersOf(user)
    const groups = [
      ...this.clusterRoles(user, cluster, members).map((role) => clusterGroup(role)),
      ...members.flatMap(({ member, role }) => {
        const project = this.#project(member)
        return project?.spec.cluster === cluster ? [projectGroup(nameOf(project), nameOf(role))] : []
      }),
    ]
    if (groups.length === 0) return undefined
    return { name: nameOf(user), groups: [...new Set(groups), 'system:authenticated'] }
  }

  /** The user as the management API sees it. */
  userOfManagement(user: User): ClusterUser {
    // Administrators have every right already, and often made every cluster; headers are limited.
    const members = this.membersOf(user)
    const isAdministrator = members.some(({ role }) => role.metadata.name === ADMINISTRATOR)
    const needed = isAdministrator ? members.filter(({ role }) => role.spec.scope === 'global') : members
    const groups = needed.map(({ member: { spec }, role }) => {
      if (spec.cluster !== undefined) return `hk:in:${spec.cluster}:${nameOf(role)}`
      if (spec.project !== undefined) return projectGroup(spec.project, nameOf(role))
      return globalGroup(nameOf(role))
    })
    return { name: nameOf(user), groups: [...new Set(groups), 'system:authenticated'] }
  }

  #project({ spec }: Member): Project | undefined {
    return spec.project === undefined ? undefined : this.#objects.get(Projects, spec.project)
  }

  #learn(member: Member, isDeleted: boolean): void {
    const { user, group } = member.spec
    const subject = user === undefined ? `group/${group}` : `user/${user}`
    const known = this.#bySubject.get(subject) ?? new Map<string, Member>()
    this.#bySubject.set(subject, known)
    if (isDeleted) known.delete(nameOf(member))
    else known.set(nameOf(member), member)
    if (known.size === 0) this.#bySubject.delete(subject)
  }
}

function nameOf({ metadata }: KubeObject): string {
  return metadata.name ?? ''
}

/** A Member whose scope is not that of its role gives nothing. */
function fits({ spec }: Member, scope: Scope): boolean {
  if (scope === 'cluster') return spec.cluster !== undefined
  if (scope === 'project') return spec.project !== undefined
  return spec.cluster === undefined && spec.project === undefined
}

export function globalGroup(role: string): string {
  return `hk:global:${role}`
}

export function clusterGroup(role: string): string {
  return `hk:cluster:${role}`
}

export function projectGroup(project: string, role: string): string {
  return `hk:project:${project}:${role}`
}
