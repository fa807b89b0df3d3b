/** The routes of namespaces: creates one in a project, and moves one to another project. */
import { Namespaces } from '#apis/core/v1.ts'
import { badRequestError, conflictError, notFoundError, serviceUnavailableError } from '#meta/status-errors.ts'

import { projectsOf } from '../access/members.ts'
import { clusterClient } from '../clusters/cluster-client.ts'
import {
  type ClusterAccess,
  type PersonCall,
  personRoute,
  refuseUnknown,
  viewOf,
  visibleCluster,
} from '../clusters/requests.ts'
import { type Project, Projects } from '../kinds/access.ts'
import { type Cluster } from '../kinds/cluster.ts'
import { GROUP } from '../kinds/definition.ts'
import type { ClusterLinks } from '../links/link.ts'
import type { Reply, Route } from '../port/route.ts'
import { managedProject, namesField, requireNamespaces } from './project-routes.ts'

export interface NamespaceRoutesOptions extends ClusterAccess {
  readonly links: ClusterLinks
}

export function namespaceRoutes(options: NamespaceRoutesOptions): readonly Route[] {
  return [
    personRoute('POST', '/v3/clusters/:cluster/projects/:project/namespaces', (call) => createNamespace(options, call)),
    personRoute('POST', '/v3/clusters/:cluster/namespaces/:namespace/move', (call) => moveNamespace(options, call)),
  ]
}

/** Only a namespace that the cluster does not have: otherwise a project could take over those of others. */
async function createNamespace(options: NamespaceRoutesOptions, call: PersonCall): Promise<Reply> {
  const { objects, links } = options
  const cluster = visibleCluster(options, call)
  const found = managedProject(options, call, { cluster, verb: 'create', resource: 'namespaces' })
  const { name: wanted, ...unknown } = await call.readBody()
  refuseUnknown(unknown)
  const [name = ''] = namesField([wanted])
  const owner = projectWith(options, cluster, name)
  if (owner !== undefined) throw conflictError(RESOURCE, name, 'the namespace belongs to a project')
  const link = links.get(cluster.metadata.name ?? '')
  if (link === undefined) throw serviceUnavailableError('the agent of the cluster is not connected')
  const client = clusterClient(link, objects.clock)
  // Throws StatusError 409 if it exists.
  await client.create(Namespaces, { metadata: { name } }, { signal: call.exchange.signal })
  const project = await addTo(options, found.metadata.name ?? '', name)
  return { status: 201, body: viewOf(project) }
}

const RESOURCE = { group: '', resource: 'namespaces' }

/** `{"project":null}` takes the namespace out of its project. */
async function moveNamespace(options: NamespaceRoutesOptions, call: PersonCall): Promise<Reply> {
  const cluster = visibleCluster(options, call)
  const [name = ''] = namesField([call.params['namespace']])
  const { project: wanted, ...unknown } = await call.readBody()
  const from = projectWith(options, cluster, name)
  requireEnd(options, call, { cluster, project: from, name })
  refuseUnknown(unknown)
  if (wanted !== null && typeof wanted !== 'string') throw badRequestError('project must name a project, or be null')
  const to =
    wanted === null
      ? undefined
      : projectsOf(options.objects, cluster.metadata.name ?? '').find(({ metadata }) => metadata.name === wanted)
  if (wanted !== null && to === undefined) throw notFoundError({ group: GROUP, resource: 'projects' }, wanted)
  requireEnd(options, call, { cluster, project: to, name })
  if (from?.metadata.name === to?.metadata.name) return { status: 200, body: {} }
  // At no moment it is in two projects.
  if (from !== undefined) {
    await options.objects.change(Projects, from.metadata.name ?? '', (now) => ({
      ...now,
      spec: { ...now.spec, namespaces: (now.spec.namespaces ?? []).filter((one) => one !== name) },
    }))
  }
  if (to !== undefined) await addTo(options, to.metadata.name ?? '', name)
  return { status: 200, body: {} }
}

interface End {
  readonly cluster: Cluster
  /** Undefined: none. */
  readonly project: Project | undefined
  readonly name: string
}

/** Throws StatusError 403 if the caller may not take a namespace from the project, or give it one. */
function requireEnd(options: ClusterAccess, call: PersonCall, { cluster, project, name }: End): void {
  if (project === undefined) requireNamespaces(options, call, { cluster: cluster.metadata.name ?? '', names: [name] })
  else {
    const params = { ...call.params, project: project.metadata.name ?? '' }
    managedProject(options, { ...call, params }, { cluster, verb: 'manage', resource: 'namespaces' })
  }
}

function projectWith({ objects }: ClusterAccess, { metadata }: Cluster, namespace: string): Project | undefined {
  return projectsOf(objects, metadata.name ?? '').find(({ spec }) => spec.namespaces?.includes(namespace))
}

function addTo({ objects }: ClusterAccess, project: string, namespace: string): Promise<Project> {
  return objects.change(Projects, project, (now) => ({
    ...now,
    spec: { ...now.spec, namespaces: [...new Set([...(now.spec.namespaces ?? []), namespace])] },
  }))
}
