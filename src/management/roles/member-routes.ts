/**
 * The HTTP routes for members of the server, of clusters and of projects. Callers can grant and revoke only
 * permissions that they have.
 */
import { badRequestError, forbiddenError, notFoundError } from '#meta/status-errors.ts'

import { createMember, membersOfCluster } from '../access/members.ts'
import { allows, grantedRules, requireCovered } from '../access/role-rules.ts'
import {
  type ClusterAccess,
  type PersonCall,
  personRoute,
  refuseUnknown,
  textField,
  viewOf,
  visibleCluster,
} from '../clusters/requests.ts'
import { type Member, Members, type Project, Projects, type Role, Roles, type Scope } from '../kinds/access.ts'
import type { Cluster } from '../kinds/cluster.ts'
import { GROUP } from '../kinds/definition.ts'
import { Users } from '../kinds/user.ts'
import type { Reply, Route } from '../port/route.ts'

export interface MemberRoutesOptions extends ClusterAccess {
  /** False for the last Member with the role administrator. */
  readonly keepsAdministrator: (removed: Member) => boolean
}

const RESOURCE = { group: GROUP, resource: 'members' }

export function memberRoutes(options: MemberRoutesOptions): readonly Route[] {
  return [
    personRoute('GET', '/v3/members', (call) => listGlobal(options, call)),
    personRoute('POST', '/v3/members', (call) => addGlobal(options, call)),
    personRoute('DELETE', '/v3/members/:member', (call) => removeGlobal(options, call)),
    personRoute('GET', '/v3/clusters/:cluster/members', (call) => listMembers(options, call)),
    personRoute('POST', '/v3/clusters/:cluster/members', (call) => addMember(options, call)),
    personRoute('DELETE', '/v3/clusters/:cluster/members/:member', (call) => removeMember(options, call)),
  ]
}

function isGlobal({ spec }: Member): boolean {
  return spec.cluster === undefined && spec.project === undefined
}

function requireManager({ permissions }: ClusterAccess, { person }: PersonCall): void {
  if (permissions.may(person.user, 'manage', 'members')) return
  throw forbiddenError(RESOURCE, '', 'members of the server need the global role users-manage')
}

function listGlobal(options: MemberRoutesOptions, call: PersonCall): Reply {
  requireManager(options, call)
  return itemsReply(options.objects.list(Members).filter((member) => isGlobal(member)))
}

async function addGlobal(options: MemberRoutesOptions, call: PersonCall): Promise<Reply> {
  requireManager(options, call)
  const { role, user, group, ...unknown } = await call.readBody()
  refuseUnknown(unknown)
  const wanted = roleOf(options, role, 'global')
  const spec = { role: wanted.metadata.name ?? '', ...subjectOf(options, { user, group }) }
  requireRole(options, call, { role: wanted, spec })
  return {
    status: 201,
    body: viewOf(await options.objects.create(Members, { metadata: { generateName: 'm-' }, spec })),
  }
}

async function removeGlobal(options: MemberRoutesOptions, call: PersonCall): Promise<Reply> {
  requireManager(options, call)
  const found = options.objects.get(Members, call.params['member'] ?? '')
  if (found === undefined || !isGlobal(found)) throw notFoundError(RESOURCE, call.params['member'] ?? '')
  if (!options.keepsAdministrator(found)) {
    const why = 'the last administrator must stay; make another user administrator first'
    throw forbiddenError(RESOURCE, found.metadata.name ?? '', why)
  }
  return remove(options, call, found)
}

/** Those of the cluster for readers of its members; others see the members of projects that they may read, and their own. */
function listMembers(options: MemberRoutesOptions, call: PersonCall): Reply {
  const { objects, permissions, memberships } = options
  const { metadata } = visibleCluster(options, call)
  const { user } = call.person
  const own = new Set(memberships.membersOf(user).map(({ member }) => member.metadata.name))
  const members = membersOfCluster(objects, metadata.name ?? '')
  return itemsReply(
    members.filter(
      (member) => own.has(member.metadata.name) || allows(permissions.at(user, member.spec), 'list', 'members'),
    ),
  )
}

async function addMember(options: MemberRoutesOptions, call: PersonCall): Promise<Reply> {
  const cluster = visibleCluster(options, call)
  const { role, user, group, project, ...unknown } = await call.readBody()
  const found = project === undefined ? undefined : projectNamed(options, cluster, project)
  const place = found === undefined ? { cluster: cluster.metadata.name ?? '' } : { project: found.metadata.name ?? '' }
  requirePlace(options, call, place)
  if (project !== undefined && found === undefined) throw badRequestError('project must name a project of the cluster')
  refuseUnknown(unknown)
  const wanted = roleOf(options, role, found === undefined ? 'cluster' : 'project')
  const spec = { role: wanted.metadata.name ?? '', ...subjectOf(options, { user, group }), ...place }
  requireRole(options, call, { role: wanted, spec })
  return { status: 201, body: viewOf(await createMember(options.objects, cluster, spec)) }
}

async function removeMember(options: MemberRoutesOptions, call: PersonCall): Promise<Reply> {
  const cluster = visibleCluster(options, call)
  const { member = '' } = call.params
  const name = cluster.metadata.name ?? ''
  const found = membersOfCluster(options.objects, name).find(({ metadata }) => metadata.name === member)
  requirePlace(options, call, found?.spec ?? { cluster: name })
  if (found === undefined) throw notFoundError(RESOURCE, member)
  return remove(options, call, found)
}

/** Throws StatusError 403 if the caller may not manage the members of a cluster or project. */
function requirePlace(
  { permissions }: ClusterAccess,
  { person }: PersonCall,
  place: Pick<Member['spec'], 'cluster' | 'project'>,
): void {
  if (allows(permissions.at(person.user, place), 'manage', 'members')) return
  throw forbiddenError(RESOURCE, '', 'only owners and managers of members may do this')
}

interface Grant {
  readonly role: Role
  readonly spec: Member['spec']
}

/** Throws StatusError 403 if the role gives more than the caller has at the same place. */
function requireRole({ permissions }: ClusterAccess, { person }: PersonCall, { role, spec }: Grant): void {
  const what = `the role "${role.metadata.name}"`
  requireCovered(permissions.at(person.user, spec), grantedRules(role.spec), what)
}

async function remove(options: ClusterAccess, call: PersonCall, member: Member): Promise<Reply> {
  const role = options.objects.get(Roles, member.spec.role)
  if (role !== undefined) requireRole(options, call, { role, spec: member.spec })
  await options.objects.delete(Members, member.metadata.name ?? '')
  return { status: 200, body: {} }
}

function projectNamed({ objects }: ClusterAccess, cluster: Cluster, project: unknown): Project | undefined {
  const found = typeof project === 'string' ? objects.get(Projects, project) : undefined
  return found?.spec.cluster === cluster.metadata.name ? found : undefined
}

/** Throws StatusError 400. */
function roleOf({ objects }: ClusterAccess, name: unknown, scope: Scope): Role {
  const role = typeof name === 'string' ? objects.get(Roles, name) : undefined
  if (role?.spec.scope !== scope) throw badRequestError(`role must name a role of scope ${scope}`)
  return role
}

/** Throws StatusError 400. */
function subjectOf(
  { objects }: ClusterAccess,
  { user, group }: { readonly user: unknown; readonly group: unknown },
): Pick<Member['spec'], 'user' | 'group'> {
  const subject = { ...textField('user', user), ...textField('group', group) }
  if (Object.keys(subject).length !== 1) throw badRequestError('set either user or group')
  if (subject.user !== undefined && objects.get(Users, subject.user) === undefined)
    throw badRequestError('user must be the name of a user, such as u-x7k2p')
  if (subject.group !== undefined && !/^[^:]+:./.test(subject.group))
    throw badRequestError('group must name a group of an identity provider, as <provider>:<group>')
  return subject
}

function itemsReply(items: readonly Member[]): Reply {
  return { status: 200, body: { items: items.map((member) => viewOf(member)) } }
}
