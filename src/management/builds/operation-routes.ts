/** The HTTP routes of Operations: owners of the cluster list, request, approve, cancel and follow them. */
import { type Clock, sleep } from '#lib/clock.ts'
import type { ResponseWriter } from '#lib/http/exchange.ts'
import { badRequestError, conflictError, tooManyRequestsError } from '#meta/status-errors.ts'
import { checkSnapshotName } from '#provision/builder/snapshots.ts'
import { onceName } from '#provision/plan/snapshot-schedule.ts'

import {
  type ClusterAccess,
  CLUSTERS,
  type PersonCall,
  personRoute,
  refuseUnknown,
  viewOf,
} from '../clusters/requests.ts'
import {
  type Operation,
  OPERATION_TYPES,
  Operations,
  type OperationSpec,
  ROTATED_SERVICES,
} from '../kinds/operation.ts'
import type { ClusterUser } from '../links/link.ts'
import type { ManagementObjects } from '../objects.ts'
import type { Reply, Route } from '../port/route.ts'
import type { OpenRequests } from '../proxy/open-requests.ts'
import type { ObjectWatches } from '../watches/object-watches.ts'
import { fileDigest } from './build-file.ts'
import { operationName } from './context.ts'
import { isEnded } from './decide.ts'
import { logAfter, readLog } from './operation-log.ts'
import { type BuiltCluster, ownedBuild, ownedOperation } from './requests.ts'
import { clusterOwner } from './secrets.ts'

export interface OperationRoutesOptions extends ClusterAccess {
  readonly open: OpenRequests
  readonly watches: ObjectWatches
}

const ONE = '/v3/clusters/:cluster/operations/:operation'

export function operationRoutes(options: OperationRoutesOptions): readonly Route[] {
  const followers = { count: 0 }
  return [
    personRoute('GET', '/v3/clusters/:cluster/operations', (call) => list(options, call)),
    personRoute('POST', '/v3/clusters/:cluster/operations', (call) => request(options, call)),
    personRoute('GET', ONE, (call) => ({ status: 200, body: viewOf(ownedOperation(options, call)) })),
    personRoute('POST', `${ONE}/approve`, (call) => approve(options, call)),
    personRoute('POST', `${ONE}/cancel`, (call) =>
      change(options, call, (operation) => {
        if (isEnded(operation)) throw conflict(operation, 'it has ended')
        return { cancelled: true }
      }),
    ),
    personRoute('POST', `${ONE}/retry`, (call) =>
      change(options, call, (operation) => {
        if (operation.status?.phase !== 'Failed') throw conflict(operation, 'only failed operations can be retried')
        return { retries: (operation.spec.retries ?? 0) + 1 }
      }),
    ),
    personRoute('GET', `${ONE}/log`, (call) => sendLog(options, call, followers)),
  ]
}

/** Without stages and steps. */
function list(options: OperationRoutesOptions, call: PersonCall): Promise<Reply> {
  const { metadata } = ownedBuild(options, call)
  return options.watches.serve(call, {
    kind: Operations,
    isVisible: ({ spec }) => spec.cluster === metadata.name,
    view({ status, ...operation }) {
      const { stages: _, plan: __, ...short } = status ?? {}
      return viewOf({ ...operation, status: short } as Operation)
    },
    order: (one, other) => ((one.metadata.name ?? '') < (other.metadata.name ?? '') ? 1 : -1),
  })
}

async function request(options: ClusterAccess, call: PersonCall): Promise<Reply> {
  const { objects } = options
  const cluster = ownedBuild(options, call)
  const name = cluster.metadata.name ?? ''
  const spec = specOf(cluster, await call.readBody(), objects.clock)
  if (cluster.metadata.deletionTimestamp !== undefined)
    throw conflictError(CLUSTERS, name, 'the cluster is being removed')
  const same = objects
    .list(Operations)
    .find(
      (one) => one.spec.cluster === name && one.spec.type === spec.type && !isEnded(one) && one.spec.file === spec.file,
    )
  if (same !== undefined) throw conflict(same, 'it has not ended: approve, retry or cancel it')
  const made = await objects.create(Operations, {
    metadata: { name: operationName(objects), ownerReferences: [clusterOwner(cluster)] },
    spec: { ...spec, cluster: name, requestedBy: call.person.user.metadata.name ?? '' },
  })
  return { status: 201, body: viewOf(made) }
}

/** Only Apply waits for approval by default: others do what was asked for. Clusters are removed by DELETE. */
function specOf(
  { spec }: BuiltCluster,
  body: Readonly<Record<string, unknown>>,
  clock: Clock,
): Omit<OperationSpec, 'cluster' | 'requestedBy'> {
  const { type, approved = type !== 'Apply', ...more } = body
  if (typeof approved !== 'boolean') throw badRequestError('approved must be true or false')
  switch (type) {
    case 'Apply':
      refuseUnknown(more)
      return { type, approved, file: fileDigest(spec.build) }
    case 'SaveSnapshot':
    case 'RestoreSnapshot':
      return { type, approved, snapshot: snapshotOf(type, more, clock) }
    case 'RotateCertificates':
      return { type, approved, ...rotationOf(more) }
    case 'RotateEncryptionKey':
      refuseUnknown(more)
      return { type, approved }
    default: {
      const types = OPERATION_TYPES.filter((one) => one !== 'Remove')
      throw badRequestError(`type must be one of ${types.join(', ')}`)
    }
  }
}

function snapshotOf(type: string, { snapshot, ...unknown }: Readonly<Record<string, unknown>>, clock: Clock): string {
  refuseUnknown(unknown)
  const name = snapshot ?? (type === 'SaveSnapshot' ? onceName(clock.now()) : undefined)
  if (typeof name !== 'string') throw badRequestError('snapshot must be the name of a snapshot')
  try {
    checkSnapshotName(name)
  } catch (error) {
    throw badRequestError((error as Error).message)
  }
  return name
}

function rotationOf({
  service,
  rotatesAuthorities = false,
  ...unknown
}: Readonly<Record<string, unknown>>): Pick<OperationSpec, 'service' | 'rotatesAuthorities'> {
  refuseUnknown(unknown)
  if (typeof rotatesAuthorities !== 'boolean') throw badRequestError('rotatesAuthorities must be true or false')
  if (service === undefined) return { rotatesAuthorities }
  const found = ROTATED_SERVICES.find((one) => one === service)
  if (found === undefined) throw badRequestError(`service must be one of ${ROTATED_SERVICES.join(', ')}`)
  if (rotatesAuthorities) throw badRequestError('rotatesAuthorities applies to all services: omit service')
  return { service: found }
}

/** For the plan that the person has seen, or `plan` names. */
async function approve(options: ClusterAccess, call: PersonCall): Promise<Reply> {
  const { plan, ...unknown } = await call.readBody()
  refuseUnknown(unknown)
  return change(options, call, (operation) => {
    const { phase, plan: shown } = operation.status ?? {}
    if (phase !== 'Planned') throw conflict(operation, 'it has no plan that waits for approval')
    if (plan !== undefined && plan !== shown?.digest) throw conflict(operation, 'it has another plan by now')
    return { approved: true, ...(shown !== undefined && { approvedPlan: shown.digest }) }
  })
}

async function change(
  options: ClusterAccess,
  call: PersonCall,
  changeOf: (operation: Operation) => Partial<OperationSpec>,
): Promise<Reply> {
  const { metadata } = ownedOperation(options, call)
  const changed = await options.objects.change(Operations, metadata.name ?? '', (now) => ({
    ...now,
    spec: { ...now.spec, ...changeOf(now) },
  }))
  return { status: 200, body: viewOf(changed) }
}

function conflict({ metadata }: Operation, why: string): Error {
  return conflictError({ group: CLUSTERS.group, resource: 'operations' }, metadata.name ?? '', why)
}

const POLL_MS = 1000
/** Each reads the log again when it has grown. */
const MAX_FOLLOWERS = 100
const RETRY_SECONDS = 10

/** `follow=true`: goes on until the Operation has ended, or the person owns the cluster no more. */
async function sendLog(
  options: OperationRoutesOptions,
  call: PersonCall,
  followers: { count: number },
): Promise<Reply> {
  const { objects, memberships, open } = options
  const { metadata, spec } = ownedOperation(options, call)
  const name = metadata.name ?? ''
  if (call.query.get('follow') !== 'true') return { status: 200, body: (await readLog(objects.client, name)).text }
  if (followers.count >= MAX_FOLLOWERS) throw tooManyRequestsError('too many logs are followed', RETRY_SECONDS)
  const { person, exchange } = call
  // A removed cluster has no members: only the user who removed it can read the log.
  const gone = { name: person.user.metadata.name ?? '', groups: [] }
  const isGone = memberships.userIn(person.user, spec.cluster) === undefined
  const current = (now: PersonCall['person']): ClusterUser | undefined =>
    isGone ? gone : memberships.userIn(now.user, spec.cluster)
  followers.count++
  try {
    await open.during({ person, user: current(person) ?? gone, current }, (signal) =>
      follow({ options, call, name }, AbortSignal.any([signal, exchange.signal])),
    )
  } finally {
    followers.count--
  }
  return { served: 200 }
}

async function follow(
  {
    options: { objects },
    call: { exchange, auditId },
    name,
  }: { readonly options: ClusterAccess; readonly call: PersonCall; readonly name: string },
  signal: AbortSignal,
): Promise<void> {
  const headers = ['Content-Type', 'text/plain; charset=utf-8', 'X-Content-Type-Options', 'nosniff']
  const writer = exchange.stream(200, [...headers, 'Cache-Control', 'no-store', 'Audit-Id', auditId])
  try {
    for (let sent = 0; !writer.isClosed && !signal.aborted;) {
      const operation = objects.get(Operations, name)
      const hasMore = (operation?.status?.logBytes ?? 0) > sent
      if (!hasMore && (operation === undefined || isEnded(operation))) break
      if (hasMore) sent = await sendMore(objects, name, { writer, sent })
      else await sleep(objects.clock, POLL_MS, signal)
    }
  } catch (error) {
    if (!signal.aborted) throw error
  } finally {
    if (signal.aborted) writer.abort()
    else if (!writer.isClosed) writer.end()
  }
}

/** Returns how many bytes of the log are sent by now. */
async function sendMore(
  { client }: ManagementObjects,
  operation: string,
  { writer, sent }: { readonly writer: ResponseWriter; readonly sent: number },
): Promise<number> {
  const log = await readLog(client, operation)
  const text = logAfter(log, sent)
  if (text !== '' && !writer.write(Buffer.from(text))) await writer.drained()
  return log.bytes
}
