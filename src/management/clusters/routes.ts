/** The routes of clusters: list, import, kubeconfig, members, removal, and the manifest of the agent. */
import { stringifyYaml } from '#lib/yaml/write.ts'
import type { KubeObject } from '#meta/object.ts'
import { badRequestError, forbiddenError, notFoundError } from '#meta/status-errors.ts'

import { ADMINISTRATOR, CLUSTER_OWNER, type Memberships } from '../access/memberships.ts'
import { type Member, Members, Projects, Roles } from '../kinds/access.ts'
import { type Cluster, Clusters, LOCAL_CLUSTER } from '../kinds/cluster.ts'
import { GROUP } from '../kinds/definition.ts'
import type { TunnelHub } from '../links/tunnel-hub.ts'
import type { ManagementObjects } from '../objects.ts'
import type { Person } from '../person.ts'
import type { Reply, Route, RouteCall } from '../port/route.ts'
import { AGENT_NAMESPACE, agentManifest } from './agent-manifest.ts'
import { clusterClient } from './cluster-client.ts'
import { createRegistrationToken, isRegistrationToken } from './registration.ts'
import { removeFromCluster } from './remove-from-cluster.ts'
import { userKubeconfig } from './user-kubeconfig.ts'

export interface ClusterRoutesOptions {
  readonly objects: ManagementObjects
  readonly memberships: Memberships
  readonly hub: TunnelHub
  /** `https://manager.example`. */
  readonly serverUrl: () => string
  /** PEM; undefined: the certificate of the server is from a public authority. */
  readonly ca: () => string | undefined
  readonly agentImage: string
  /** Creates an API token for the person and returns its text. */
  readonly createToken: (person: Person, description: string, cluster: string | undefined) => Promise<string>
}

type Handler = (call: RouteCall & { readonly person: Person }) => Promise<Reply> | Reply

export function clusterRoutes(options: ClusterRoutesOptions): readonly Route[] {
  const route = (method: string, path: string, serve: Handler): Route => ({
    method,
    path,
    access: 'person',
    serve(call) {
      if (call.person === undefined) throw new Error('The route needs a person')
      return serve({ ...call, person: call.person })
    },
  })
  return [
    route('GET', '/v3/clusters', ({ person }) => listClusters(options, person)),
    route('POST', '/v3/clusters', (call) => createCluster(options, call)),
    route('GET', '/v3/clusters/:cluster', (call) => ({ status: 200, body: viewOf(visibleCluster(options, call)) })),
    route('DELETE', '/v3/clusters/:cluster', (call) => removeCluster(options, call)),
    route('POST', '/v3/clusters/:cluster/registration', (call) => register(options, call)),
    route('POST', '/v3/clusters/:cluster/kubeconfig', (call) => kubeconfig(options, call)),
    route('GET', '/v3/clusters/:cluster/members', (call) => listMembers(options, call)),
    route('POST', '/v3/clusters/:cluster/members', (call) => addMember(options, call)),
    route('DELETE', '/v3/clusters/:cluster/members/:member', (call) => removeMember(options, call)),
    {
      method: 'GET',
      path: '/v3/import/:file',
      access: 'agent',
      serve: (call) => importManifest(options, call),
    },
  ]
}

type PersonCall = RouteCall & { readonly person: Person }

const CLUSTERS = { group: GROUP, resource: 'clusters' }

/** Only clusters in which the person has a role. */
function listClusters({ objects, memberships }: ClusterRoutesOptions, { user }: Person): Reply {
  const isAdministrator = memberships.isAdministrator(user)
  const items = objects
    .list(Clusters)
    .filter(({ metadata }) => isAdministrator || memberships.userIn(user, metadata.name ?? '') !== undefined)
  return { status: 200, body: { items: items.map((object) => viewOf(object)) } }
}

/** Without the bookkeeping of the API server. */
function viewOf(object: KubeObject): object {
  const metadata = Object.entries(object.metadata).filter(([field]) => field !== 'managedFields')
  return { ...object, metadata: Object.fromEntries(metadata) }
}

/** Throws StatusError: an unknown cluster and one without rights look the same. */
function visibleCluster({ objects, memberships }: ClusterRoutesOptions, { params, person }: PersonCall): Cluster {
  const { cluster = '' } = params
  const found = objects.get(Clusters, cluster)
  const isVisible = memberships.isAdministrator(person.user) || memberships.userIn(person.user, cluster) !== undefined
  if (found === undefined || !isVisible) throw notFoundError(CLUSTERS, cluster)
  return found
}

function ownedCluster(options: ClusterRoutesOptions, call: PersonCall): Cluster {
  const cluster = visibleCluster(options, call)
  const name = cluster.metadata.name ?? ''
  const roles = options.memberships.clusterRoles(call.person.user, name)
  const isOwner =
    name === LOCAL_CLUSTER ? options.memberships.isAdministrator(call.person.user) : roles.includes(CLUSTER_OWNER)
  if (!isOwner) throw forbiddenError(CLUSTERS, name, 'only owners of the cluster may do this')
  return cluster
}

const CREATORS = new Set([ADMINISTRATOR, 'clusters-create'])

async function createCluster(options: ClusterRoutesOptions, call: PersonCall): Promise<Reply> {
  const { person } = call
  const { objects, memberships } = options
  const may = memberships.membersOf(person.user).some(({ role }) => CREATORS.has(role.metadata.name ?? ''))
  if (!may) throw forbiddenError(CLUSTERS, '', 'creating clusters needs the global role clusters-create')
  const { displayName, description = '', ...unknown } = await call.readBody()
  refuseUnknown(unknown)
  if (typeof displayName !== 'string' || displayName === '' || typeof description !== 'string')
    throw badRequestError('displayName must be a text')
  const cluster = await objects.create(Clusters, {
    metadata: { generateName: 'c-' },
    spec: { displayName, description, source: 'imported' },
  })
  await createMember(objects, cluster, { role: CLUSTER_OWNER, user: person.user.metadata.name ?? '' })
  return { status: 201, body: { cluster: viewOf(cluster), ...(await registrationOf(options, cluster, person)) } }
}

async function register(options: ClusterRoutesOptions, call: PersonCall): Promise<Reply> {
  const cluster = ownedCluster(options, call)
  if (cluster.spec.source !== 'imported') throw badRequestError('only imported clusters have an agent')
  return { status: 201, body: await registrationOf(options, cluster, call.person) }
}

/** The commands for the person who imports a cluster. The token is shown here only. */
async function registrationOf(
  { objects, serverUrl, ca }: ClusterRoutesOptions,
  cluster: Cluster,
  person: Person,
): Promise<object> {
  const token = await createRegistrationToken(objects, cluster, person.user.metadata.name ?? '')
  const manifestUrl = `${serverUrl()}/v3/import/${token}_${cluster.metadata.name ?? ''}.yaml`
  const isPublic = ca() === undefined
  const command = isPublic
    ? `kubectl apply -f ${manifestUrl}`
    : `curl --fail --silent --show-error --cacert hyperkube-ca.crt ${manifestUrl} | kubectl apply -f -`
  return { token, manifestUrl, command }
}

const FILE = /^([\w-]{20,100})_([a-z0-9][a-z0-9.-]{0,252})\.yaml$/

/** Whoever has an unused registration token gets the manifest. */
function importManifest(
  { objects, serverUrl, ca, agentImage: image }: ClusterRoutesOptions,
  { params }: RouteCall,
): Reply {
  const [, token = '', cluster = ''] = FILE.exec(params['file'] ?? '') ?? []
  if (!isRegistrationToken(objects, cluster, token)) throw notFoundError({ group: '', resource: 'manifests' }, '')
  const manifest = agentManifest({ serverUrl: serverUrl(), ca: ca(), registrationToken: token, image })
  const body = manifest.map((object) => `---\n${stringifyYaml(object)}`).join('')
  return { status: 200, headers: ['Content-Type', 'application/yaml'], body }
}

/** `{"scope":"cluster"}` binds the token to this cluster. */
async function kubeconfig(options: ClusterRoutesOptions, call: PersonCall): Promise<Reply> {
  const cluster = visibleCluster(options, call)
  const { scope = 'cluster', ...unknown } = await call.readBody()
  refuseUnknown(unknown)
  if (scope !== 'cluster' && scope !== 'all') throw badRequestError('scope must be "cluster" or "all"')
  const name = cluster.metadata.name ?? ''
  const bound = scope === 'cluster' ? name : undefined
  const token = await options.createToken(call.person, `kubeconfig for ${cluster.spec.displayName}`, bound)
  const ca = options.ca()
  const server = `${options.serverUrl()}/k8s/clusters/${name}`
  const body = userKubeconfig({ name: cluster.spec.displayName, server, ca, token })
  return { status: 200, headers: ['Content-Type', 'application/yaml'], body }
}

function listMembers(options: ClusterRoutesOptions, call: PersonCall): Reply {
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
async function addMember(options: ClusterRoutesOptions, call: PersonCall): Promise<Reply> {
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

async function removeMember(options: ClusterRoutesOptions, call: PersonCall): Promise<Reply> {
  const { metadata } = ownedCluster(options, call)
  const { member = '' } = call.params
  const isHere = membersOfCluster(options.objects, metadata.name ?? '').some((one) => one.metadata.name === member)
  if (!isHere) throw notFoundError({ group: GROUP, resource: 'members' }, member)
  await options.objects.delete(Members, member)
  return { status: 200, body: {} }
}

function createMember(objects: ManagementObjects, { metadata }: Cluster, spec: Member['spec']): Promise<Member> {
  const { name = '', uid = '' } = metadata
  const ownerReferences = [{ apiVersion: `${GROUP}/v1`, kind: 'Cluster', name, uid }]
  const where = spec.project === undefined ? { cluster: name } : {}
  return objects.create(Members, { metadata: { generateName: 'm-', ownerReferences }, spec: { ...spec, ...where } })
}

/** Removes what the server made in the cluster, if the agent is connected, and forgets the cluster. */
async function removeCluster(options: ClusterRoutesOptions, call: PersonCall): Promise<Reply> {
  const { objects, hub } = options
  const { metadata, spec } = ownedCluster(options, call)
  const name = metadata.name ?? ''
  if (spec.source === 'local') throw badRequestError('the cluster of the server itself cannot be removed')
  const left = await cleanCluster(options, name, call.exchange.signal).then(
    () => [],
    (error: Error) => [`namespace ${AGENT_NAMESPACE} and roles of the server (${error.message})`],
  )
  await objects.delete(Clusters, name)
  hub.disconnect(name)
  return { status: 200, body: { left } }
}

async function cleanCluster({ objects, hub }: ClusterRoutesOptions, name: string, signal: AbortSignal): Promise<void> {
  const link = hub.get(name)
  if (link === undefined) throw new Error('the agent is not connected')
  await removeFromCluster(clusterClient(link, objects.clock), signal)
}

function textField<K extends string>(name: K, value: unknown): Partial<Record<K, string>> {
  if (value === undefined) return {}
  if (typeof value !== 'string' || value === '') throw badRequestError(`${name} must be a text`)
  return { [name]: value } as Record<K, string>
}

function refuseUnknown(fields: Readonly<Record<string, unknown>>): void {
  const [unknown] = Object.keys(fields)
  if (unknown !== undefined) throw badRequestError(`unknown field "${unknown}"`)
}
