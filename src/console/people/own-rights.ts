/**
 * Computes the permissions of the user at the routes of the server in one cluster and its projects. Pages offer only
 * what they permit. The server checks each request again.
 */
import type { PolicyRule } from '#apis/rbac/v1.ts'
import { ruleRequestOf, RuleTable } from '#model/rule-table.ts'

import type { SessionUser } from '../browser/session.ts'
import type { Member } from './members.ts'
import type { ServerRole } from './roles.ts'

const GROUP = 'management.hyperkube.io'
const EVERYTHING: readonly PolicyRule[] = [{ verbs: ['*'], apiGroups: ['*'], resources: ['*'] }]

/** Without a project: in the cluster, which includes all its projects. */
export type OwnRights = (verb: 'create' | 'list' | 'manage', resource: string, project?: string) => boolean

/** `members` are those that the server shows to the user: the user's own are among them. */
export function ownRights(
  { name, groups = [], isAdministrator = false }: SessionUser,
  members: readonly Member[],
  roles: readonly ServerRole[],
): OwnRights {
  const byName = new Map(roles.map((role) => [role.metadata.name, role.spec]))
  const own = members.filter(({ spec }) => spec.user === name || (spec.group && groups.includes(spec.group)))
  return (verb, resource, project) => {
    const access = { verb, group: GROUP, resource, subresource: '', name: '', isResource: true, path: '' }
    const rules = own
      .filter(({ spec }) => spec.project === undefined || spec.project === project)
      .flatMap(({ spec }) => rulesOf(byName.get(spec.role)))
    return new RuleTable(isAdministrator ? EVERYTHING : rules).allows(ruleRequestOf(access))
  }
}

/** The ClusterRole of administrators is the only one that has rights at the routes of the server. */
function rulesOf(spec: ServerRole['spec'] | undefined): readonly PolicyRule[] {
  return spec?.inherits === 'cluster-admin' ? EVERYTHING : (spec?.rules ?? [])
}
