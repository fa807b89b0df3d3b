/**
 * The HTTP routes for projects of a cluster. A namespace moves to another project only if the caller manages the
 * namespaces of both.
 */
import { badRequestError, conflictError, forbiddenError, notFoundError } from '#meta/status-errors.ts'
import { dns1123Label } from '#meta/validation/names.ts'

import { PROJECT_OWNER } from '../access/built-in-roles.ts'
import { createMember, ownerOf, projectsOf } from '../access/members.ts'
import { allows, type RouteVerb } from '../access/role-rules.ts'
import {
  type ClusterAccess,
  type PersonCall,
  personRoute,
  refuseUnknown,
  textField,
  viewOf,
  visibleCluster,
} from '../clusters/requests.ts'
import { Members, type Project, Projects } from '../kinds/access.ts'
import type { Cluster } from '../kinds/cluster.ts'
import { GROUP } from '../kinds/definition.ts'
import type { ManagementObjects } from '../objects.ts'
import type { Reply, Route } from '../port/route.ts'
import type { Turns } from '../turns.ts'

const RESOURCE = { group: GROUP, resource: 'projects' }

export interface ProjectRoutesOptions extends ClusterAccess {
  /** For all changes of the namespaces of projects: a namespace is never in two. */
  readonly namespaceTurns: Turns
}

export function projectRoutes(options: ProjectRoutesOptions): readonly Route[] {
  return [
    personRoute('GET', '/v3/clusters/:cluster/projects', (call) => listProjects(options, call)),
    personRoute('POST', '/v3/clusters/:cluster/projects', (call) => createProject(options, call)),
    personRoute('PATCH', '/v3/clusters/:cluster/projects/:project', (call) => changeProject(options, call)),
    personRoute('DELETE', '/v3/clusters/:cluster/projects/:project', (call) => removeProject(options, call)),
  ]
}

/** Readers of the projects of the cluster see all, others those in which they have a role. */
function listProjects(options: ClusterAccess, call: PersonCall): Reply {
  const { objects, memberships, permissions } = options
  const { metadata } = visibleCluster(options, call)
  const { user } = call.person
  const seesAll = allows(permissions.inCluster(user, metadata.name ?? ''), 'list', 'projects')
  const own = new Set(memberships.membersOf(user).map(({ member }) => member.spec.project))
  const items = projectsOf(objects, metadata.name ?? '').filter(({ metadata: { name } }) => seesAll || own.has(name))
  return { status: 200, body: { items: items.map((project) => viewOf(project)) } }
}

/** A caller who is no owner of the cluster becomes owner of the project. */
async function createProject(options: ProjectRoutesOptions, call: PersonCall): Promise<Reply> {
  const { objects, permissions } = options
  const cluster = visibleCluster(options, call)
  const name = cluster.metadata.name ?? ''
  requireInCluster(options, call, { cluster: name, verb: 'create' })
  const { displayName, namespaces = [], description, ...unknown } = await call.readBody()
  refuseUnknown(unknown)
  if (typeof displayName !== 'string' || displayName === '') throw badRequestError('displayName must be a text')
  const names = namesField(namespaces)
  const spec: Project['spec'] = {
    cluster: name,
    displayName,
    ...textField('description', description),
    namespaces: names,
  }
  const metadata = { generateName: 'p-', ownerReferences: [ownerOf('Cluster', cluster)] }
  const project = await options.namespaceTurns.take(() => {
    refuseTaken(objects, cluster, { names, project: undefined })
    requireNamespaces(options, call, { cluster: name, names })
    return objects.create(Projects, { metadata, spec })
  })
  if (!allows(permissions.inProject(call.person.user, project), 'manage', 'projects')) {
    const { name: user = '' } = call.person.user.metadata
    await createMember(objects, cluster, { role: PROJECT_OWNER, user, project: project.metadata.name ?? '' })
  }
  return { status: 201, body: viewOf(project) }
}

/** Changes `displayName`, `description` or the whole list of `namespaces`. */
async function changeProject(options: ProjectRoutesOptions, call: PersonCall): Promise<Reply> {
  const { objects } = options
  const cluster = visibleCluster(options, call)
  const found = managedProject(options, call, { cluster, verb: 'manage', resource: 'projects' })
  const { displayName, namespaces, description, ...unknown } = await call.readBody()
  refuseUnknown(unknown)
  const project = found.metadata.name ?? ''
  const names = namespaces === undefined ? undefined : namesField(namespaces)
  const changes = { ...textField('displayName', displayName), ...textField('description', description) }
  const changed = await options.namespaceTurns.take(() =>
    objects.change(Projects, project, (now) => {
      if (names === undefined) return { ...now, spec: { ...now.spec, ...changes } }
      refuseTaken(objects, cluster, { names, project })
      const before = now.spec.namespaces ?? []
      // Those that are added or removed belong to no project before or after.
      const moved = [...names.filter((one) => !before.includes(one)), ...before.filter((one) => !names.includes(one))]
      requireNamespaces(options, call, { cluster: cluster.metadata.name ?? '', names: moved })
      return { ...now, spec: { ...now.spec, ...changes, namespaces: names } }
    }),
  )
  return { status: 200, body: viewOf(changed) }
}

/** The namespaces stay; the rights of the members end. */
async function removeProject(options: ClusterAccess, call: PersonCall): Promise<Reply> {
  const { objects } = options
  const cluster = visibleCluster(options, call)
  const { metadata } = managedProject(options, call, { cluster, verb: 'manage', resource: 'projects' })
  await objects.delete(Projects, metadata.name ?? '')
  for (const member of objects.list(Members))
    if (member.spec.project === metadata.name) await objects.delete(Members, member.metadata.name ?? '')
  return { status: 200, body: {} }
}

interface ProjectQuery {
  readonly cluster: Cluster
  readonly verb: RouteVerb
  readonly resource: 'projects' | 'namespaces'
}

/**
 * The project of the path. Throws StatusError: 403 for callers without the right in it; 404 if there is none, for those
 * with the right in the cluster. A project of another cluster does not exist here.
 */
export function managedProject(options: ClusterAccess, call: PersonCall, query: ProjectQuery): Project {
  const { objects, permissions } = options
  const { cluster, verb, resource } = query
  const name = cluster.metadata.name ?? ''
  const wanted = call.params['project'] ?? ''
  const found = projectsOf(objects, name).find(({ metadata }) => metadata.name === wanted)
  const { user } = call.person
  const rules = found === undefined ? permissions.inCluster(user, name) : permissions.inProject(user, found)
  if (!allows(rules, verb, resource))
    throw forbiddenError(RESOURCE, wanted, 'only owners of the project or of the cluster may do this')
  if (found === undefined) throw notFoundError(RESOURCE, wanted)
  return found
}

function requireInCluster(
  { permissions }: ClusterAccess,
  { person }: PersonCall,
  { cluster, verb }: { readonly cluster: string; readonly verb: RouteVerb },
): void {
  if (allows(permissions.inCluster(person.user, cluster), verb, 'projects')) return
  throw forbiddenError(RESOURCE, '', 'only owners of the cluster, and those with the role projects-create, may do this')
}

/** A namespace without a project belongs to the owners of the cluster. Throws StatusError 403. */
export function requireNamespaces(
  { permissions }: ClusterAccess,
  { person }: PersonCall,
  { cluster, names }: { readonly cluster: string; readonly names: readonly string[] },
): void {
  if (names.length === 0 || allows(permissions.inCluster(person.user, cluster), 'manage', 'namespaces')) return
  const why = `only owners of the cluster may add namespace "${names[0]}" to a project, or take it out`
  throw forbiddenError(RESOURCE, '', why)
}

/** Throws StatusError 400. */
export function namesField(value: unknown): readonly string[] {
  const names = Array.isArray(value) ? [...new Set(value as unknown[])] : [undefined]
  const isValid = (name: unknown): name is string => typeof name === 'string' && dns1123Label(name).length === 0
  if (!names.every(isValid)) throw badRequestError('namespaces must be a list of names of namespaces')
  return names
}

/** Throws StatusError 409 if one of the namespaces belongs to another project of the cluster. */
export function refuseTaken(
  objects: ManagementObjects,
  cluster: Cluster,
  { names, project }: { readonly names: readonly string[]; readonly project: string | undefined },
): void {
  for (const { metadata, spec } of projectsOf(objects, cluster.metadata.name ?? '')) {
    const taken = metadata.name === project ? undefined : spec.namespaces?.find((name) => names.includes(name))
    if (taken === undefined) continue
    const why = `namespace "${taken}" belongs to project "${spec.displayName}"; move it`
    throw conflictError(RESOURCE, project ?? '', why)
  }
}
