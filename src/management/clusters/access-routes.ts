/** The HTTP routes for the members and projects of a cluster, which owners of the cluster may change. */
import type { KubeObject } from '#meta/object.ts'
import { badRequestError, conflictError, notFoundError } from '#meta/status-errors.ts'
import { dns1123Label } from '#meta/validation/names.ts'

import { type Member, Members, type Project, Projects, Roles } from '../kinds/access.ts'
import type { Cluster } from '../kinds/cluster.ts'
import { GROUP } from '../kinds/definition.ts'
import type { ManagementObjects } from '../objects.ts'
import type { Reply, Route } from '../port/route.ts'
import {
  type ClusterAccess,
  ownedCluster,
  type PersonCall,
  personRoute,
  refuseUnknown,
  textField,
  viewOf,
  visibleCluster,
} from './requests.ts'

export function accessRoutes(options: ClusterAccess): readonly Route[] {
  return [
    personRoute('GET', '/v3/clusters/:cluster/members', (call) => listMembers(options, call)),
    personRoute('POST', '/v3/clusters/:cluster/members', (call) => addMember(options, call)),
    personRoute('DELETE', '/v3/clusters/:cluster/members/:member', (call) => removeMember(options, call)),
    personRoute('GET', '/v3/clusters/:cluster/projects', (call) => listProjects(options, call)),
    personRoute('POST', '/v3/clusters/:cluster/projects', (call) => createProject(options, call)),
    personRoute('PATCH', '/v3/clusters/:cluster/projects/:project', (call) => changeProject(options, call)),
    personRoute('DELETE', '/v3/clusters/:cluster/projects/:project', (call) => removeProject(options, call)),
  ]
}

function listMembers(options: ClusterAccess, call: PersonCall): Reply {
  const { metadata } = visibleCluster(options, call)
  return {
    status: 200,
    body: { items: membersOfCluster(options.objects, metadata.name ?? '').map((object) => viewOf(object)) },
  }
}

function membersOfCluster(objects: ManagementObjects, cluster: string): readonly Member[] {
  return objects.list(Members).filter(({ spec }) => {
    if (spec.cluster !== undefined) return spec.cluster === cluster
    return spec.project !== undefined && objects.get(Projects, spec.project)?.spec.cluster === cluster
  })
}

/** Owners have every right in the cluster, so that they can give every role of it. */
async function addMember(options: ClusterAccess, call: PersonCall): Promise<Reply> {
  const { objects } = options
  const cluster = ownedCluster(options, call)
  const { role: roleName, user, group, project, ...unknown } = await call.readBody()
  refuseUnknown(unknown)
  const role = typeof roleName === 'string' ? objects.get(Roles, roleName) : undefined
  const scope = project === undefined ? 'cluster' : 'project'
  if (role === undefined || role.spec.scope !== scope) throw badRequestError(`role must name a role of scope ${scope}`)
  if (project !== undefined) {
    const found = typeof project === 'string' ? objects.get(Projects, project) : undefined
    if (found?.spec.cluster !== cluster.metadata.name)
      throw badRequestError('project must name a project of the cluster')
  }
  const subject = { ...textField('user', user), ...textField('group', group) }
  if (Object.keys(subject).length !== 1) throw badRequestError('set either user or group')
  const spec = { role: role.metadata.name ?? '', ...subject, ...(typeof project === 'string' && { project }) }
  return { status: 201, body: viewOf(await createMember(objects, cluster, spec)) }
}

async function removeMember(options: ClusterAccess, call: PersonCall): Promise<Reply> {
  const { metadata } = ownedCluster(options, call)
  const { member = '' } = call.params
  const isHere = membersOfCluster(options.objects, metadata.name ?? '').some((one) => one.metadata.name === member)
  if (!isHere) throw notFoundError({ group: GROUP, resource: 'members' }, member)
  await options.objects.delete(Members, member)
  return { status: 200, body: {} }
}

export function createMember(objects: ManagementObjects, cluster: Cluster, spec: Member['spec']): Promise<Member> {
  const ownerReferences = [ownerOf('Cluster', cluster)]
  const where = spec.project === undefined ? { cluster: cluster.metadata.name ?? '' } : {}
  return objects.create(Members, { metadata: { generateName: 'm-', ownerReferences }, spec: { ...spec, ...where } })
}

/** Owners see all projects of the cluster, others those in which they have a role. */
function listProjects(options: ClusterAccess, call: PersonCall): Reply {
  const { objects, memberships } = options
  const cluster = visibleCluster(options, call)
  const name = cluster.metadata.name ?? ''
  const isOwner = memberships.clusterRoles(call.person.user, name).length > 0
  const own = new Set(memberships.membersOf(call.person.user).map(({ member }) => member.spec.project))
  const items = projectsOf(objects, cluster).filter(({ metadata }) => isOwner || own.has(metadata.name))
  return { status: 200, body: { items: items.map((project) => viewOf(project)) } }
}

async function createProject(options: ClusterAccess, call: PersonCall): Promise<Reply> {
  const cluster = ownedCluster(options, call)
  const { displayName, namespaces = [], description, ...unknown } = await call.readBody()
  refuseUnknown(unknown)
  if (typeof displayName !== 'string' || displayName === '') throw badRequestError('displayName must be a text')
  const spec: Project['spec'] = {
    cluster: cluster.metadata.name ?? '',
    displayName,
    ...textField('description', description),
    namespaces: freeNamespaces(options.objects, cluster, { namespaces, project: undefined }),
  }
  const metadata = { generateName: 'p-', ownerReferences: [ownerOf('Cluster', cluster)] }
  return { status: 201, body: viewOf(await options.objects.create(Projects, { metadata, spec })) }
}

/** Changes `displayName`, `description` or the whole list of `namespaces`. */
async function changeProject(options: ClusterAccess, call: PersonCall): Promise<Reply> {
  const { objects } = options
  const cluster = ownedCluster(options, call)
  const { metadata } = projectOf(objects, cluster, call)
  const { displayName, namespaces, description, ...unknown } = await call.readBody()
  refuseUnknown(unknown)
  const project = metadata.name ?? ''
  const changes = {
    ...textField('displayName', displayName),
    ...textField('description', description),
    ...(namespaces !== undefined && { namespaces: freeNamespaces(objects, cluster, { namespaces, project }) }),
  }
  const changed = await objects.change(Projects, project, (now) => ({ ...now, spec: { ...now.spec, ...changes } }))
  return { status: 200, body: viewOf(changed) }
}

/** The namespaces stay; the rights of the members end. */
async function removeProject({ objects, memberships }: ClusterAccess, call: PersonCall): Promise<Reply> {
  const cluster = ownedCluster({ objects, memberships }, call)
  const { metadata } = projectOf(objects, cluster, call)
  await objects.delete(Projects, metadata.name ?? '')
  for (const member of objects.list(Members))
    if (member.spec.project === metadata.name) await objects.delete(Members, member.metadata.name ?? '')
  return { status: 200, body: {} }
}

function projectsOf(objects: ManagementObjects, { metadata }: Cluster): readonly Project[] {
  return objects.list(Projects).filter(({ spec }) => spec.cluster === metadata.name)
}

/** Throws StatusError 404 for a project of another cluster too. */
function projectOf(objects: ManagementObjects, cluster: Cluster, { params }: PersonCall): Project {
  const found = projectsOf(objects, cluster).find(({ metadata }) => metadata.name === params['project'])
  if (found === undefined) throw notFoundError({ group: GROUP, resource: 'projects' }, params['project'] ?? '')
  return found
}

/** Throws StatusError if one of the namespaces belongs to another project of the cluster. */
function freeNamespaces(
  objects: ManagementObjects,
  cluster: Cluster,
  { namespaces, project }: { readonly namespaces: unknown; readonly project: string | undefined },
): readonly string[] {
  const names = Array.isArray(namespaces) ? [...new Set(namespaces as unknown[])] : [undefined]
  const isValid = (name: unknown): name is string => typeof name === 'string' && dns1123Label(name).length === 0
  if (!names.every(isValid)) throw badRequestError('namespaces must be a list of names of namespaces')
  for (const { metadata, spec } of projectsOf(objects, cluster)) {
    const taken = metadata.name === project ? undefined : spec.namespaces?.find((name) => names.includes(name))
    if (taken === undefined) continue
    const why = `namespace "${taken}" belongs to project "${spec.displayName}"`
    throw conflictError({ group: GROUP, resource: 'projects' }, project ?? '', why)
  }
  return names
}

function ownerOf(
  kind: string,
  { metadata }: KubeObject,
): { apiVersion: string; kind: string; name: string; uid: string } {
  return { apiVersion: `${GROUP}/v1`, kind, name: metadata.name ?? '', uid: metadata.uid ?? '' }
}
