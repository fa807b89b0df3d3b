/** The kinds Role, Member and Project: who may do what in the server, in a cluster or in a group of namespaces. */
import type { Kind } from '#apis/kinds.ts'
import type { PolicyRule } from '#apis/rbac/v1.ts'
import type { KubeObject } from '#meta/object.ts'

import {
  BOOLEAN,
  defineManagementKind,
  type ManagementKind,
  immutable,
  list,
  NAME,
  oneOf,
  record,
  TEXT,
} from './definition.ts'

export type Scope = 'global' | 'cluster' | 'project'

export interface Role extends KubeObject {
  readonly spec: RoleSpec
}

export interface RoleSpec {
  readonly scope: Scope
  readonly displayName?: string
  readonly description?: string
  /**
   * RBAC rules: of the management API for the scope `global`, of the cluster for `cluster`, and of each namespace of the
   * project for `project`.
   */
  readonly rules: readonly PolicyRule[]
  /** The name of a ClusterRole of the cluster, such as `edit`, whose rules the members get instead of `rules`. */
  readonly inherits?: string
  /** New users get this global role. */
  readonly isDefault?: boolean
}

export interface Member extends KubeObject {
  readonly spec: MemberSpec
}

/** Either `user` or `group` is set. The scope of the role decides whether `cluster` or `project` is set. */
export interface MemberSpec {
  readonly role: string
  readonly user?: string
  /** A group of an identity provider, as `<provider>:<group>`. */
  readonly group?: string
  readonly cluster?: string
  readonly project?: string
}

export interface Project extends KubeObject {
  readonly spec: ProjectSpec
}

export interface ProjectSpec {
  readonly cluster: string
  readonly displayName: string
  readonly description?: string
  /** A namespace belongs to at most one project of its cluster. */
  readonly namespaces?: readonly string[]
}

const RULES = list(
  record(
    {
      apiGroups: list(TEXT),
      resources: list(TEXT),
      verbs: list(TEXT),
      resourceNames: list(TEXT),
      nonResourceURLs: list(TEXT),
    },
    ['verbs'],
  ),
)

export const ROLE: ManagementKind<Role> = defineManagementKind<Role>({
  kind: 'Role',
  plural: 'roles',
  description: 'A set of rules that members get, in the server, in a cluster or in a project.',
  spec: record(
    {
      scope: immutable(oneOf('global', 'cluster', 'project')),
      displayName: TEXT,
      description: TEXT,
      rules: RULES,
      inherits: TEXT,
      isDefault: BOOLEAN,
    },
    ['scope', 'rules'],
  ),
  columns: [
    { name: 'Scope', jsonPath: '.spec.scope' },
    { name: 'Display Name', jsonPath: '.spec.displayName' },
  ],
})
export const Roles: Kind<Role> = ROLE.kind

export const MEMBER: ManagementKind<Member> = defineManagementKind<Member>({
  kind: 'Member',
  plural: 'members',
  description: 'Gives a role to a user or to a group of an identity provider.',
  spec: {
    ...record({ role: NAME, user: TEXT, group: TEXT, cluster: TEXT, project: TEXT }, ['role']),
    'x-kubernetes-validations': [
      { rule: 'has(self.user) != has(self.group)', message: 'exactly one of user and group must be set' },
      { rule: '!(has(self.cluster) && has(self.project))', message: 'at most one of cluster and project may be set' },
      { rule: 'self == oldSelf', message: 'a Member is immutable; delete it and create another' },
    ],
  },
  columns: [
    { name: 'Role', jsonPath: '.spec.role' },
    { name: 'User', jsonPath: '.spec.user' },
    { name: 'Group', jsonPath: '.spec.group' },
    { name: 'Cluster', jsonPath: '.spec.cluster' },
    { name: 'Project', jsonPath: '.spec.project' },
  ],
})
export const Members: Kind<Member> = MEMBER.kind

export const PROJECT: ManagementKind<Project> = defineManagementKind<Project>({
  kind: 'Project',
  plural: 'projects',
  description: 'A group of namespaces of one cluster with members of its own.',
  spec: record({ cluster: immutable(NAME), displayName: NAME, description: TEXT, namespaces: list(NAME) }, [
    'cluster',
    'displayName',
  ]),
  columns: [
    { name: 'Cluster', jsonPath: '.spec.cluster' },
    { name: 'Display Name', jsonPath: '.spec.displayName' },
  ],
})
export const Projects: Kind<Project> = PROJECT.kind
