/**
 * Proxies `/k8s/clusters/<cluster>/…` to the API server of a managed cluster, with the identity of the user. The
 * user's credentials and all impersonation headers are removed.
 */
import { isReadableAs, isWithheldFromClusters, responseFilter } from '#component/forwarding/cluster-headers.ts'
import { forward } from '#component/forwarding/forward.ts'
import { refusalOfRest } from '#component/forwarding/request-path.ts'
import { tableWatch } from '#component/forwarding/table-watch.ts'
import type { Clock } from '#lib/clock.ts'
import type { Logger } from '#lib/log/log.ts'
import {
  badRequestError,
  failure,
  forbiddenError,
  notFoundError,
  serviceUnavailableError,
} from '#meta/status-errors.ts'

import type { Memberships } from '../access/memberships.ts'
import { Clusters, type ClusterSpec, type ClusterStatus, LOCAL_CLUSTER, UP_RUNNING } from '../kinds/cluster.ts'
import { GROUP } from '../kinds/definition.ts'
import type { ClusterLink, ClusterLinks, ClusterUser } from '../links/link.ts'
import type { ManagementObjects } from '../objects.ts'
import type { Person } from '../person.ts'
import type { Reply, Route, RouteCall } from '../port/route.ts'
import { impersonate, impersonationOf } from './impersonation.ts'
import type { OpenRequests } from './open-requests.ts'

export interface ClusterProxyOptions {
  readonly objects: Pick<ManagementObjects, 'get'>
  readonly memberships: Memberships
  readonly links: ClusterLinks
  readonly open: OpenRequests
  readonly clock: Clock
  readonly log: Logger
}

const RETRY_SECONDS = 2
/** Agents that lose their connection are usually back within this time. */
const RETURN_MS = 15_000

/** Paths of the API at the root of the server: `kubectl proxy` and others drop the path of a kubeconfig's server. */
const ROOT_PATHS = ['/api', '/api/*', '/apis', '/apis/*', '/version', '/openapi/*']

export function clusterProxyRoutes(options: ClusterProxyOptions): readonly Route[] {
  const route = (path: string, serve: Route['serve']): Route => ({
    method: '*',
    path,
    access: 'person',
    allowsClusterToken: true,
    serve,
  })
  return [
    route('/k8s/clusters/:cluster/*', (call) => serveCluster(options, call, call.params['cluster'] ?? '', call.rest)),
    ...ROOT_PATHS.map((path) =>
      route(path, (call) => {
        const cluster = call.person?.token.spec.cluster ?? LOCAL_CLUSTER
        return serveCluster(options, call, cluster, call.exchange.path)
      }),
    ),
  ]
}

async function serveCluster(
  options: ClusterProxyOptions,
  call: RouteCall,
  cluster: string,
  rest: string,
): Promise<Reply> {
  const { exchange, person } = call
  if (person === undefined) throw new Error('The route needs a person')
  const refusal = refusalOfRest(rest)
  if (refusal !== undefined) throw badRequestError(refusal)
  const user = userFor(options, person, cluster)
  // An unknown cluster and one without rights look the same.
  if (user === undefined) throw notFoundError({ group: GROUP, resource: 'clusters' }, cluster)
  const wanted = impersonationOf(exchange.rawHeaders)
  const link = linkTo(options, cluster)
  if (person.hasCookie && !isReadableAs(exchange.headers['sec-fetch-dest']))
    throw forbiddenError(
      { group: '', resource: '' },
      '',
      'pages of this server take no scripts or styles from clusters',
    )
  const current = (now: Person): ClusterUser | undefined => userFor(options, now, cluster)
  const served = await options.open.during({ person, user, current }, async (signal) => {
    const { clock } = options
    const sent = wanted === undefined ? user : await impersonate({ link, clock, caller: user, signal }, wanted)
    return passOn(options, call, { cluster, link, user: sent, rest, signal })
  })
  return { served, ...(wanted !== undefined && { impersonated: wanted.user }) }
}

/** Undefined: the person has no rights in the cluster. */
function userFor(
  { objects, memberships }: ClusterProxyOptions,
  { user }: Person,
  cluster: string,
): ClusterUser | undefined {
  if (cluster === LOCAL_CLUSTER) {
    const { name, groups } = memberships.userOfManagement(user)
    return { name, groups: [...new Set([...groups, ...(memberships.userIn(user, cluster)?.groups ?? [])])] }
  }
  return objects.get(Clusters, cluster) === undefined ? undefined : memberships.userIn(user, cluster)
}

function linkTo({ objects, links, clock }: ClusterProxyOptions, cluster: string): ClusterLink {
  const link = links.get(cluster)
  if (link !== undefined) return link
  const { spec, status } = objects.get(Clusters, cluster) ?? {}
  const since = status?.agent?.disconnectedAt
  const message = absence(spec, cluster, since)
  // kubectl repeats a request with Retry-After up to ten times before it shows the message.
  const isReturning = since !== undefined && clock.now() - Date.parse(since) < RETURN_MS
  const details = isReturning || isStarting(spec, status) ? { retryAfterSeconds: RETRY_SECONDS } : {}
  throw failure({ code: 503, reason: 'ServiceUnavailable', message, details })
}

/** True for a cluster of `hyperkube up` that must run and whose start has not failed. */
function isStarting(spec: ClusterSpec | undefined, status: ClusterStatus | undefined): boolean {
  if (spec?.up === undefined || spec.up.running === false) return false
  return !(status?.conditions ?? []).some(({ type, reason }) => type === UP_RUNNING && reason === 'StartFailed')
}

function absence(spec: ClusterSpec | undefined, cluster: string, since: string | undefined): string {
  const { displayName = cluster, source } = spec ?? {}
  if (source === 'up') return `cluster "${displayName}" is not running`
  return since === undefined
    ? `the agent of cluster "${displayName}" has not connected yet`
    : `the agent of cluster "${displayName}" has been disconnected since ${since}`
}

interface Passage {
  readonly cluster: string
  readonly link: ClusterLink
  readonly user: ClusterUser
  readonly rest: string
  readonly signal: AbortSignal
}

async function passOn(
  { clock, log }: ClusterProxyOptions,
  { exchange, auditId, address }: RouteCall,
  { cluster, link, user, rest, signal }: Passage,
): Promise<number> {
  const { path, headers: accept } = tableWatch(exchange, rest.startsWith('/') ? rest : `/${rest}`)
  const headers = {
    ...accept,
    ...link.identityHeaders(user),
    host: HOST,
    'audit-id': auditId,
    'x-forwarded-for': address,
  }
  try {
    const safe = responseFilter({ cluster, path, origin: link.url })
    const target = { client: link.client, clock, url: link.url, path, headers, signal }
    return await forward(exchange, { ...target, isWithheld: isWithheldFromClusters, filterResponse: safe })
  } catch (error) {
    if (exchange.isAnswered || exchange.signal.aborted) throw error
    log.info('Failed to reach a cluster', { user: user.name, err: (error as Error).message })
    throw serviceUnavailableError(`the cluster cannot be reached: ${(error as Error).message}`)
  }
}

/** API servers do not look at it, and the name of the management server is no business of theirs. */
const HOST = 'kubernetes.default.svc'
