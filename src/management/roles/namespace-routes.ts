/** The HTTP routes that create a namespace in a project and move a namespace to another project. */
import { Namespaces } from '#apis/core/v1.ts'
import { badRequestError, notFoundError, serviceUnavailableError } from '#meta/status-errors.ts'

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
import {
  managedProject,
  namesField,
  type ProjectRoutesOptions,
  refuseTaken,
  requireNamespaces,
} from './project-routes.ts'

export interface NamespaceRoutesOptions extends ProjectRoutesOptions {
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
  const { objects, links, namespaceTurns } = options
  const cluster = visibleCluster(options, call)
  const found = managedProject(options, call, { cluster, verb: 'create', resource: 'namespaces' })
  const { name: wanted, ...unknown } = await call.readBody()
  refuseUnknown(unknown)
  const names = namesField([wanted])
  const [name = ''] = names
  refuseTaken(objects, cluster, { names, project: undefined })
  const link = links.get(cluster.metadata.name ?? '')
  if (link === undefined) throw serviceUnavailableError('the agent of the cluster is not connected')
  const client = clusterClient(link, objects.clock)
  // Throws StatusError 409 if it exists.
  await client.create(Namespaces, { metadata: { name } }, { signal: call.exchange.signal })
  const project = await namespaceTurns.take(() => {
    refuseTaken(objects, cluster, { names, project: undefined })
    return addTo(options, found.metadata.name ?? '', name)
  })
  return { status: 201, body: viewOf(project) }
}

/** `{"project":null}` takes the namespace out of its project. */
async function moveNamespace(options: NamespaceRoutesOptions, call: PersonCall): Promise<Reply> {
  const cluster = visibleCluster(options, call)
  const [name = ''] = namesField([call.params['namespace']])
  const { project, ...unknown } = await call.readBody()
  return options.namespaceTurns.take(async () => {
    const from = projectWith(options, cluster, name)
    requireEnd(options, call, { cluster, project: from, name })
    refuseUnknown(unknown)
    const to = project === null ? undefined : destination(options, cluster, project)
    requireEnd(options, call, { cluster, project: to, name })
    if (from?.metadata.name !== to?.metadata.name) await move(options, { name, from, to })
    return { status: 200, body: {} }
  })
}

/** Throws StatusError: 400 for anything but a name, 404 for an unknown project. */
function destination({ objects }: ClusterAccess, { metadata }: Cluster, wanted: unknown): Project {
  if (typeof wanted !== 'string') throw badRequestError('project must name a project, or be null')
  const found = projectsOf(objects, metadata.name ?? '').find((one) => one.metadata.name === wanted)
  if (found === undefined) throw notFoundError({ group: GROUP, resource: 'projects' }, wanted)
  return found
}

interface Move {
  readonly name: string
  readonly from: Project | undefined
  readonly to: Project | undefined
}

/** At no moment it is in two projects. */
async function move(options: ClusterAccess, { name, from, to }: Move): Promise<void> {
  if (from !== undefined) {
    await options.objects.change(Projects, from.metadata.name ?? '', (now) => ({
      ...now,
      spec: { ...now.spec, namespaces: (now.spec.namespaces ?? []).filter((one) => one !== name) },
    }))
  }
  if (to !== undefined) await addTo(options, to.metadata.name ?? '', name)
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
