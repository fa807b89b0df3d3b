/**
 * Creates, starts, stops and forks clusters of `hyperkube up` on the machine of the server. Creating one starts processes of
 * the server's user, so only administrators may do it.
 */
import { badRequestError, forbiddenError } from '#meta/status-errors.ts'

import { createMember } from '../access/members.ts'
import { CLUSTER_OWNER } from '../access/memberships.ts'
import {
  type ClusterAccess,
  CLUSTERS,
  ownedCluster,
  type PersonCall,
  personRoute,
  refuseUnknown,
  viewOf,
} from '../clusters/requests.ts'
import type { ClusterDraft, ClusterSource } from '../clusters/source.ts'
import { type Cluster, Clusters, type UpSettings } from '../kinds/cluster.ts'
import type { Reply, Route } from '../port/route.ts'
import { UP_FINALIZER } from './controller.ts'

/** Rejects bodies of `POST /v3/clusters` with StatusErrors. */
export function upSource(options: ClusterAccess): ClusterSource {
  return { name: 'up', draft: (call, fields) => draft(options, call, fields) }
}

export function upRoutes(options: ClusterAccess): readonly Route[] {
  const action = (name: string, isRunning: boolean): Route =>
    personRoute('POST', `/v3/clusters/:cluster/${name}`, (call) => setRunning(options, call, isRunning))
  return [
    action('start', true),
    action('stop', false),
    personRoute('POST', '/v3/clusters/:cluster/fork', (call) => fork(options, call)),
  ]
}

const MAX_NODES = 1000

function draft(
  { memberships }: ClusterAccess,
  { person }: PersonCall,
  { runtime = 'simulated', nodes = 1, ...unknown }: Readonly<Record<string, unknown>>,
): ClusterDraft {
  if (!memberships.isAdministrator(person.user))
    throw forbiddenError(CLUSTERS, '', 'only administrators may run clusters on the machine of the server')
  refuseUnknown(unknown)
  if (runtime !== 'simulated' && runtime !== 'containerd')
    throw badRequestError('runtime must be "simulated" or "containerd"')
  if (typeof nodes !== 'number' || !Number.isInteger(nodes) || nodes < 0 || nodes > MAX_NODES)
    throw badRequestError(`nodes must be a whole number from 0 to ${MAX_NODES}`)
  return { spec: { up: { runtime, nodes } }, finalizers: [UP_FINALIZER] }
}

async function setRunning(options: ClusterAccess, call: PersonCall, running: boolean): Promise<Reply> {
  const { metadata } = ownedUpCluster(options, call)
  refuseUnknown(await call.readBody())
  const changed = await options.objects.change(Clusters, metadata.name ?? '', (now) =>
    now.spec.up === undefined ? undefined : { ...now, spec: { ...now.spec, up: { ...now.spec.up, running } } },
  )
  return { status: 200, body: viewOf(changed) }
}

/** The copy inherits no members. Its creator is its owner. */
async function fork(options: ClusterAccess, call: PersonCall): Promise<Reply> {
  const { objects } = options
  const origin = ownedUpCluster(options, call)
  const { runtime, nodes } = origin.spec.up
  const { displayName = `${origin.spec.displayName} (fork)`, ...fields } = await call.readBody()
  if (typeof displayName !== 'string' || displayName === '') throw badRequestError('displayName must be a text')
  const { spec, finalizers = [] } = draft(options, call, { runtime, nodes, ...fields })
  const forkOf = origin.metadata.name ?? ''
  const up: UpSettings = { runtime, nodes, ...spec.up, forkOf }
  const cluster = await objects.create(Clusters, {
    metadata: { generateName: 'c-', finalizers: [...finalizers] },
    spec: { displayName, source: 'up', up },
  })
  await createMember(objects, cluster, { role: CLUSTER_OWNER, user: call.person.user.metadata.name ?? '' })
  return { status: 201, body: { cluster: viewOf(cluster) } }
}

function ownedUpCluster(options: ClusterAccess, call: PersonCall): Cluster & { spec: { up: UpSettings } } {
  const cluster = ownedCluster(options, call)
  const { up } = cluster.spec
  if (up === undefined) throw badRequestError('the cluster does not run on the machine of the server')
  return { ...cluster, spec: { ...cluster.spec, up } }
}
