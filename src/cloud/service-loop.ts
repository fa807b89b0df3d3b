/** Upstream's `service-lb-controller`: maintains load balancers of Services, with its events and finalizer. */
import { type LoadBalancerStatus, type Node, Nodes, type Service, Services } from '#apis/core/v1.ts'
import { type EndpointSlice, EndpointSlices } from '#apis/discovery/v1.ts'
import { isBeingDeleted, objectKey } from '#meta/object.ts'
import { isNotFound } from '#meta/status.ts'
import { rule, type Controller, EVENTS, type ControllerContext, related } from '#reconcile/controller.ts'

import { changesBalance, isBalanced } from './balanced-nodes.ts'
import { type BalancerRequest, type ClusterView, ImplementedElsewhere, type LoadBalancer, Refused } from './provider.ts'

const FINALIZER = 'service.kubernetes.io/load-balancer-cleanup'

export interface ServiceLoopOptions {
  readonly balancer: LoadBalancer
  readonly clusterName: string
  readonly workers?: number
}

/** A Service with a loadBalancerClass belongs to another controller. */
export function wantsBalancer({ spec }: Service): boolean {
  return spec.type === 'LoadBalancer' && spec.loadBalancerClass === undefined
}

const hasFinalizer = ({ metadata }: Service): boolean => metadata.finalizers?.includes(FINALIZER) ?? false

/** The next step for a Service. */
export function stepFor(service: Service): 'ensure' | 'clean up' | 'nothing' {
  if (isBeingDeleted(service)) return hasFinalizer(service) ? 'clean up' : 'nothing'
  if (wantsBalancer(service)) return 'ensure'
  return hasFinalizer(service) ? 'clean up' : 'nothing'
}

/** The last applied state, to skip unchanged Services. */
interface AppliedState {
  readonly inputs: string
  readonly nodeNames: string
}

export function createServiceLoop({ balancer, clusterName, workers = 1 }: ServiceLoopOptions): Controller {
  const done = new Map<string, AppliedState>()
  const all = (cache: ClusterView): string[] => Array.from(cache.list(Services)).filter(isOurs).map(objectKey)
  const ofService = (service: Service, cache: ClusterView): string[] =>
    balancer.isFree === true && isOurs(service)
      ? [...new Set([objectKey(service), ...all(cache)])]
      : [objectKey(service)]
  return {
    name: 'service-lb-controller',
    aliases: ['service'],
    account: 'service-controller',
    component: 'service-controller',
    workers,
    retry: { baseMs: 5000, capMs: 300_000 },
    watches: [
      related(Services, ofService),
      related(Nodes, (_, cache) => all(cache), changesBalance),
      ...(balancer.isFree === true ? [related(EndpointSlices, serviceOf)] : []),
    ],
    rules: [
      rule('', 'services', 'get list watch patch update'),
      rule('', 'services/status', 'patch update'),
      rule('', 'nodes', 'list watch'),
      rule('discovery.k8s.io', 'endpointslices', 'list watch'),
      EVENTS,
    ],
    async reconcile(key, context) {
      const service = context.cache.get(Services, key)
      const step = service === undefined ? 'nothing' : stepFor(service)
      const before = done.get(key)
      // After a failure everything is applied again.
      done.delete(key)
      if (service === undefined || step === 'nothing') return
      const nodes = Array.from(context.cache.list(Nodes)).filter(isBalanced)
      const request = { clusterName, service, nodes, view: context.cache, signal: context.signal }
      const work = { balancer, context, request }
      const now = await attempt(work, () => (step === 'ensure' ? applyChanges(work, before) : cleanUp(work)))
      if (now !== undefined) done.set(key, now)
    },
  }
}

/** Records an event on failure. */
async function attempt<T>(work: Work, operation: () => Promise<T>): Promise<T> {
  try {
    return await operation()
  } catch (error) {
    if (error instanceof ReportedError) throw error.cause
    record(work, 'Warning', 'SyncLoadBalancerFailed', `Error syncing load balancer: ${(error as Error).message}`)
    throw error
  }
}

/** Applies the changes since `before`. */
async function applyChanges(work: Work, before: AppliedState | undefined): Promise<AppliedState> {
  const { balancer, request } = work
  const now = { inputs: balancerInputs(request.service), nodeNames: nodeNamesOf(request.nodes) }
  if (balancer.isFree === true || before?.inputs !== now.inputs) await ensure(work)
  else if (before.nodeNames !== now.nodeNames) await updateNodes(work)
  return now
}

/** The error was already reported with its own event. */
class ReportedError extends Error {}

interface Work {
  readonly balancer: LoadBalancer
  readonly request: BalancerRequest & { readonly nodes: readonly Node[] }
  readonly context: ControllerContext
}

const isOurs = (service: Service): boolean => wantsBalancer(service) || hasFinalizer(service)

function serviceOf({ metadata: { namespace = '', labels = {} } }: EndpointSlice, cache: ClusterView): string[] {
  const key = `${namespace}/${labels['kubernetes.io/service-name'] ?? ''}`
  const service = cache.get(Services, key)
  return service !== undefined && wantsBalancer(service) ? [key] : []
}

/** The fields of a Service that affect its balancer: while they and the nodes stay equal, nothing is called. */
function balancerInputs({ metadata: { uid, annotations }, spec }: Service): string {
  const ports = (spec.ports ?? []).map(({ name, protocol, port, nodePort, targetPort, appProtocol }) => [
    name,
    protocol,
    port,
    nodePort,
    targetPort,
    appProtocol,
  ])
  const { loadBalancerSourceRanges, sessionAffinity, sessionAffinityConfig, loadBalancerIP, externalIPs } = spec
  const { externalTrafficPolicy, healthCheckNodePort, ipFamilies = [] } = spec
  const from = [loadBalancerSourceRanges, sessionAffinity, sessionAffinityConfig, loadBalancerIP, externalIPs]
  const how = [externalTrafficPolicy, healthCheckNodePort, ipFamilies.length]
  return JSON.stringify([uid, annotations, ports, ...from, ...how])
}

const nodeNamesOf = (nodes: readonly Node[]): string =>
  JSON.stringify(nodes.map(({ metadata, spec }) => `${metadata.name} ${spec.providerID ?? ''}`).sort())

async function ensure(work: Work): Promise<void> {
  const { balancer, request, context } = work
  const { service, nodes } = request
  // A free balancer is ensured after every change; its events would be noise.
  const isReported = balancer.isFree !== true || !hasFinalizer(service)
  if (isReported) record(work, 'Normal', 'EnsuringLoadBalancer', 'Ensuring load balancer')
  // The finalizer comes first, so that no balancer is leaked.
  if (!hasFinalizer(service))
    await explained(
      'failed to add load balancer cleanup finalizer',
      setFinalizers(service, [...(service.metadata.finalizers ?? []), FINALIZER], context),
    )
  if (isReported && nodes.length === 0) recordNodes(work)
  let status: LoadBalancerStatus
  try {
    status = await balancer.ensure(request)
  } catch (error) {
    if (error instanceof ImplementedElsewhere) return
    // Clients must not use an address that does not serve.
    if (error instanceof Refused) await writeStatus(service, {}, context)
    throw new Error(`failed to ensure load balancer: ${(error as Error).message}`, { cause: error })
  }
  if (isReported) record(work, 'Normal', 'EnsuredLoadBalancer', 'Ensured load balancer')
  const hasChanged = await explained('failed to update load balancer status', writeStatus(service, status, context))
  if (hasChanged && !isReported) recordNodes(work)
}

/** Records an event with the current nodes. */
function recordNodes(work: Work): void {
  if (work.request.nodes.length > 0)
    record(work, 'Normal', 'UpdatedLoadBalancer', 'Updated load balancer with new hosts')
  else record(work, 'Warning', 'UnAvailableLoadBalancer', 'There are no available nodes for LoadBalancer')
}

/** The maximum number of node names in an event. */
const MOST_NAMES = 20

async function updateNodes(work: Work): Promise<void> {
  const { balancer, request } = work
  const { nodes } = request
  try {
    await (balancer.update === undefined ? balancer.ensure(request) : balancer.update(request))
    recordNodes(work)
  } catch (error) {
    if (error instanceof ImplementedElsewhere) return
    // A missing balancer needs no update.
    if ((await balancer.find(request)) === undefined) return
    const names = nodes.map(({ metadata: { name = '' } }) => name)
    const shown = names.slice(0, MOST_NAMES).sort()
    const more = names.length > MOST_NAMES ? [`<${names.length - MOST_NAMES} more>`] : []
    const limits = `[node names limited, total number of nodes: ${names.length}]`
    const message = `Error updating load balancer with new hosts [${[...shown, ...more].join(' ')}] ${limits}`
    record(work, 'Warning', 'UpdateLoadBalancerFailed', `${message}, error: ${(error as Error).message}`)
    throw new ReportedError('', { cause: error })
  }
}

async function cleanUp(work: Work): Promise<undefined> {
  const { balancer, request, context } = work
  const { service } = request
  const isThere = explained('failed to check if load balancer exists before cleanup', balancer.find(request))
  if ((await isThere) !== undefined) {
    record(work, 'Normal', 'DeletingLoadBalancer', 'Deleting load balancer')
    const isDone = balancer.remove(request).catch((error: unknown) => {
      if (!(error instanceof ImplementedElsewhere)) throw error
    })
    await explained('failed to delete load balancer', isDone)
  }
  if (!isBeingDeleted(service)) await writeStatus(service, {}, context)
  const others = (service.metadata.finalizers ?? []).filter((one) => one !== FINALIZER)
  await explained('failed to remove load balancer cleanup finalizer', setFinalizers(service, others, context))
  record(work, 'Normal', 'DeletedLoadBalancer', 'Deleted load balancer')
}

async function explained<T>(what: string, work: Promise<T>): Promise<T> {
  try {
    return await work
  } catch (cause) {
    throw new Error(`${what}: ${(cause as Error).message}`, { cause })
  }
}

function record({ request, context }: Work, type: 'Normal' | 'Warning', reason: string, message: string): void {
  context.event(request.service, { type, reason, message })
}

const whereOf = ({ metadata: { namespace = '', name = '' } }: Service): { namespace: string; name: string } => ({
  namespace,
  name,
})

async function setFinalizers(
  service: Service,
  finalizers: string[],
  { client, signal }: ControllerContext,
): Promise<void> {
  // With the seen resourceVersion, so that concurrent changes win.
  const { resourceVersion } = service.metadata
  const value = { metadata: { resourceVersion, finalizers } }
  await unlessGone(client.patch(Services, whereOf(service), { type: 'merge', value }, { signal }))
}

/** Returns whether the status changed. */
async function writeStatus(
  service: Service,
  { ingress = [] }: LoadBalancerStatus,
  { client, signal }: ControllerContext,
): Promise<boolean> {
  const before = service.status?.loadBalancer?.ingress ?? []
  if (JSON.stringify(before) === JSON.stringify(ingress)) return false
  const value = { status: { loadBalancer: { ingress: ingress.length === 0 ? null : ingress } } }
  const where = { ...whereOf(service), subresource: 'status' }
  await unlessGone(client.patch(Services, where, { type: 'merge', value }, { signal }))
  return true
}

async function unlessGone(work: Promise<unknown>): Promise<void> {
  await work.catch((error: unknown) => {
    if (!isNotFound(error)) throw error
  })
}
