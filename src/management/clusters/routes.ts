/** The HTTP routes for clusters: list, import, kubeconfig, members, removal, and the manifest of the agent. */
import { stringifyYaml } from '#lib/yaml/write.ts'
import { badRequestError, forbiddenError, notFoundError } from '#meta/status-errors.ts'

import { createMember } from '../access/members.ts'
import { CLUSTER_OWNER } from '../access/memberships.ts'
import { type Cluster, Clusters } from '../kinds/cluster.ts'
import type { ClusterLinks } from '../links/link.ts'
import type { TunnelHub } from '../links/tunnel-hub.ts'
import type { Person } from '../person.ts'
import type { Reply, Route, RouteCall } from '../port/route.ts'
import type { ClusterTurns } from '../turns.ts'
import type { ObjectWatches } from '../watches/object-watches.ts'
import { AGENT_NAMESPACE, agentManifest } from './agent-manifest.ts'
import { clusterClient } from './cluster-client.ts'
import { createRegistrationToken, isRegistrationToken } from './registration.ts'
import { removeFromCluster } from './remove-from-cluster.ts'
import {
  type ClusterAccess,
  CLUSTERS,
  ownedCluster,
  ownsCluster,
  type PersonCall,
  personRoute,
  refuseUnknown,
  viewOf,
  visibleCluster,
} from './requests.ts'
import type { ClusterDraft, ClusterSource } from './source.ts'
import { userKubeconfig } from './user-kubeconfig.ts'

export interface ClusterRoutesOptions extends ClusterAccess {
  readonly links: ClusterLinks
  readonly hub: TunnelHub
  readonly turns: ClusterTurns
  readonly watches: ObjectWatches
  /** `https://manager.example`. */
  readonly serverUrl: () => string
  /** PEM; undefined: the certificate of the server is from a public authority. */
  readonly ca: () => string | undefined
  readonly agentImage: string
  /** The sources of clusters besides agents. */
  readonly sources: readonly ClusterSource[]
  /** Creates an API token for the person and returns its text. */
  readonly createToken: (person: Person, description: string, cluster: string | undefined) => Promise<string>
}

export function clusterRoutes(options: ClusterRoutesOptions): readonly Route[] {
  return [
    personRoute('GET', '/v3/clusters', (call) => listClusters(options, call)),
    personRoute('POST', '/v3/clusters', (call) => createCluster(options, call)),
    personRoute('GET', '/v3/clusters/:cluster', (call) => ({
      status: 200,
      body: clusterView(options, call.person, visibleCluster(options, call)),
    })),
    personRoute('DELETE', '/v3/clusters/:cluster', (call) => removeCluster(options, call)),
    personRoute('POST', '/v3/clusters/:cluster/registration', (call) => register(options, call)),
    personRoute('POST', '/v3/clusters/:cluster/kubeconfig', (call) => kubeconfig(options, call)),
    {
      method: 'GET',
      path: '/v3/import/:file',
      access: 'agent',
      serve: (call) => importManifest(options, call),
    },
  ]
}

/** Only clusters in which the person has a role. */
function listClusters(options: ClusterRoutesOptions, call: PersonCall): Promise<Reply> {
  const { memberships, watches } = options
  const { person } = call
  const { user } = person
  return watches.serve(call, {
    kind: Clusters,
    isVisible: ({ metadata }) =>
      memberships.isAdministrator(user) || memberships.userIn(user, metadata.name ?? '') !== undefined,
    view: (cluster) => clusterView(options, person, cluster),
  })
}

/** The cluster file is for owners: it may have more than members should know. */
function clusterView(options: ClusterRoutesOptions, { user }: Person, cluster: Cluster): object {
  const { build, ...spec } = cluster.spec
  const isOwner = ownsCluster(options, user, cluster)
  const shown = build === undefined || isOwner ? cluster : { ...cluster, spec: { ...spec, build: {} } }
  return { ...viewOf(shown), isOwner }
}

/** A cluster file may have thousands of lines. */
const MAX_BODY_BYTES = 1 << 20

async function createCluster(options: ClusterRoutesOptions, call: PersonCall): Promise<Reply> {
  const { person } = call
  const { objects, permissions } = options
  if (!permissions.may(person.user, 'add', 'clusters'))
    throw forbiddenError(CLUSTERS, '', 'creating clusters needs the global role clusters-create')
  const {
    displayName,
    description = '',
    source: sourceName = 'imported',
    ...fields
  } = await call.readBody(MAX_BODY_BYTES)
  const source = sourceOf(options, sourceName)
  if (source === undefined) throw badRequestError(`source must be one of ${sourceNames(options)}`)
  if (typeof displayName !== 'string' || displayName === '' || typeof description !== 'string')
    throw badRequestError('displayName must be a text')
  const draft = await source.draft(call, fields)
  const cluster = await createDraft(options, draft, { displayName, description, source: source.name })
  await createMember(objects, cluster, { role: CLUSTER_OWNER, user: person.user.metadata.name ?? '' })
  return { status: 201, body: { cluster: viewOf(cluster), ...draft.reply, ...(await source.created?.(cluster, call)) } }
}

async function createDraft(
  { objects }: ClusterRoutesOptions,
  { name, finalizers = [], annotations, spec, discard }: ClusterDraft,
  common: Pick<Cluster['spec'], 'displayName' | 'description' | 'source'>,
): Promise<Cluster> {
  const naming = name === undefined ? { generateName: 'c-' } : { name }
  const metadata = { ...naming, finalizers: [...finalizers], ...(annotations && { annotations: { ...annotations } }) }
  try {
    return await objects.create(Clusters, { metadata, spec: { ...common, ...spec } })
  } catch (error) {
    await discard?.()
    throw error
  }
}

/** Clusters whose agent connects. */
function imported(options: ClusterRoutesOptions): ClusterSource {
  return {
    name: 'imported',
    draft(_call, { agent = 'hyperkube', ...unknown }) {
      refuseUnknown(unknown)
      if (agent !== 'hyperkube' && agent !== 'remotedialer')
        throw badRequestError('agent must be "hyperkube" or "remotedialer"')
      return { spec: agent === 'hyperkube' ? {} : { agent } }
    },
    created: (cluster, { person }) => registrationOf(options, cluster, person),
    remove: ({ metadata }, { exchange }) =>
      cleanCluster(options, metadata.name ?? '', exchange.signal).then(
        () => [],
        (error: Error) => [`namespace ${AGENT_NAMESPACE}, roles and tokens of the server (${error.message})`],
      ),
  }
}

function sourceOf(options: ClusterRoutesOptions, name: unknown): ClusterSource | undefined {
  return [imported(options), ...options.sources].find((source) => source.name === name)
}

function sourceNames({ sources }: ClusterRoutesOptions): string {
  return ['imported', ...sources.map(({ name }) => name)].map((name) => `"${name}"`).join(', ')
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
  // Our manifest installs our agent.
  if (cluster.spec.agent === 'remotedialer') return { token, server: serverUrl() }
  const manifestUrl = `${serverUrl()}/v3/import/${token}_${cluster.metadata.name ?? ''}.yaml`
  const isPublic = ca() === undefined
  const command = isPublic
    ? `kubectl apply -f ${manifestUrl}`
    : `curl --fail --silent --show-error --cacert hyperkube-ca.crt ${manifestUrl} | kubectl apply -f -`
  return { token, manifestUrl, command }
}

const FILE = /^([\w-]{20,100})_([a-z0-9][a-z0-9.-]{0,252})\.yaml$/

/** Returns the manifest to any client with an unused registration token. */
function importManifest(
  { objects, serverUrl, ca, agentImage: image }: ClusterRoutesOptions,
  { params }: RouteCall,
): Reply {
  const [, token = '', cluster = ''] = FILE.exec(params['file'] ?? '') ?? []
  const isForeign = objects.get(Clusters, cluster)?.spec.agent === 'remotedialer'
  if (isForeign || !isRegistrationToken(objects, cluster, token))
    throw notFoundError({ group: '', resource: 'manifests' }, '')
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
  const endpoint = bound === undefined ? undefined : cluster.spec.authorizedEndpoint
  const body = userKubeconfig({ name: cluster.spec.displayName, server, ca, token, endpoint })
  return { status: 200, headers: ['Content-Type', 'application/yaml'], body }
}

/** Removes what the server made in the cluster, as far as it can, and forgets the cluster. */
async function removeCluster(options: ClusterRoutesOptions, call: PersonCall): Promise<Reply> {
  const { objects, hub, turns } = options
  const cluster = ownedCluster(options, call)
  const name = cluster.metadata.name ?? ''
  if (cluster.spec.source === 'local') throw badRequestError('the cluster of the server itself cannot be removed')
  const source = sourceOf(options, cluster.spec.source)
  if (source?.beginRemoval !== undefined) {
    await source.beginRemoval(cluster, call)
    return { status: 202, body: {} }
  }
  const left = await turns.take(name, async () => {
    const kept = await source?.remove?.(cluster, call)
    await objects.delete(Clusters, name)
    hub.disconnect(name)
    return kept
  })
  return { status: 200, body: { left: left ?? [] } }
}

async function cleanCluster(
  { objects, links }: ClusterRoutesOptions,
  name: string,
  signal: AbortSignal,
): Promise<void> {
  const link = links.get(name)
  if (link === undefined) throw new Error('the agent is not connected')
  await removeFromCluster(clusterClient(link, objects.clock), signal)
}
