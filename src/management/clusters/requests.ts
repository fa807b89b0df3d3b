/**
 * Functions that the HTTP routes for clusters share: they find the cluster of a request, parse the body and format
 * responses.
 */
import type { KubeObject } from '#meta/object.ts'
import { badRequestError, forbiddenError, notFoundError } from '#meta/status-errors.ts'

import { CLUSTER_OWNER, type Memberships } from '../access/memberships.ts'
import type { Permissions } from '../access/permissions.ts'
import { type Cluster, Clusters, LOCAL_CLUSTER } from '../kinds/cluster.ts'
import { GROUP } from '../kinds/definition.ts'
import type { User } from '../kinds/user.ts'
import type { ManagementObjects } from '../objects.ts'
import type { Person } from '../person.ts'
import type { Reply, Route, RouteCall } from '../port/route.ts'

export interface ClusterAccess {
  readonly objects: ManagementObjects
  readonly memberships: Memberships
  readonly permissions: Permissions
}

export type PersonCall = RouteCall & { readonly person: Person }

export const CLUSTERS: { readonly group: string; readonly resource: string } = { group: GROUP, resource: 'clusters' }

/** A route for users who are logged in. */
export function personRoute(method: string, path: string, serve: (call: PersonCall) => Promise<Reply> | Reply): Route {
  return {
    method,
    path,
    access: 'person',
    serve(call) {
      if (call.person === undefined) throw new Error('The route needs a person')
      return serve({ ...call, person: call.person })
    },
  }
}

/** Without the bookkeeping of the API server. */
export function viewOf(object: KubeObject): object {
  const metadata = Object.entries(object.metadata).filter(([field]) => field !== 'managedFields')
  return { ...object, metadata: Object.fromEntries(metadata) }
}

/** Throws StatusError: an unknown cluster and one without rights look the same. */
export function visibleCluster(
  { objects, memberships }: Omit<ClusterAccess, 'permissions'>,
  { params, person }: PersonCall,
): Cluster {
  const { cluster = '' } = params
  const found = objects.get(Clusters, cluster)
  const isVisible = memberships.isAdministrator(person.user) || memberships.userIn(person.user, cluster) !== undefined
  if (found === undefined || !isVisible) throw notFoundError(CLUSTERS, cluster)
  return found
}

/** Throws StatusError if the person is no owner of the cluster. */
export function ownedCluster(options: Omit<ClusterAccess, 'permissions'>, call: PersonCall): Cluster {
  const cluster = visibleCluster(options, call)
  if (!ownsCluster(options, call.person.user, cluster))
    throw forbiddenError(CLUSTERS, cluster.metadata.name ?? '', 'only owners of the cluster may do this')
  return cluster
}

export function ownsCluster(
  { memberships }: Pick<ClusterAccess, 'memberships'>,
  user: User,
  { metadata: { name = '' } }: Cluster,
): boolean {
  if (name === LOCAL_CLUSTER) return memberships.isAdministrator(user)
  return memberships.clusterRoles(user, name).includes(CLUSTER_OWNER)
}

/** The field as a record, empty for an absent field. Throws StatusError for another type. */
export function textField<K extends string>(name: K, value: unknown): Partial<Record<K, string>> {
  if (value === undefined) return {}
  if (typeof value !== 'string' || value === '') throw badRequestError(`${name} must be a text`)
  return { [name]: value } as Record<K, string>
}

export function refuseUnknown(fields: Readonly<Record<string, unknown>>): void {
  const [unknown] = Object.keys(fields)
  if (unknown !== undefined) throw badRequestError(`unknown field "${unknown}"`)
}
