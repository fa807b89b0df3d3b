/** Load balancers for Services that ask for one: upstream's `service-lb-controller`, with its events and finalizer. */
import { type LoadBalancerStatus, type Node, Nodes, type Service, Services } from '#apis/core/v1.ts'
import { type EndpointSlice, EndpointSlices } from '#apis/discovery/v1.ts'
import { isBeingDeleted, objectKey } from '#meta/object.ts'
import { isNotFound } from '#meta/status.ts'

import { changesBalance, isBalanced } from './balanced-nodes.ts'
import { allow, type CloudLoop, EVENT_RULES, type LoopContext, watching } from './loop.ts'
import { type BalancerRequest, type ClusterView, ImplementedElsewhere, type LoadBalancer, Refused } from './provider.ts'

const FINALIZER = 'service.kubernetes.io/load-balancer-cleanup'

export interface ServiceLoopOptions {
  readonly balancer: LoadBalancer
  readonly clusterName: string
  readonly workers?: number
}

/** One with a class of its own is for whoever serves that class. */
export function wantsBalancer({ spec }: Service): boolean {
  return spec.type === 'LoadBalancer' && spec.loadBalancerClass === undefined
}

const hasFinalizer = ({ metadata }: Service): boolean => metadata.finalizers?.includes(FINALIZER) ?? false

/** What is to be done about a Service. */
export function stepFor(service: Service): 'ensure' | 'clean up' | 'nothing' {
  if (isBeingDeleted(service)) return hasFinalizer(service) ? 'clean up' : 'nothing'
  if (wantsBalancer(service)) return 'ensure'
  return hasFinalizer(service) ? 'clean up' : 'nothing'
}

/** What was done last, so that it is not done again. */
interface Done {
  readonly wish: string
  readonly places: string
}

export function createServiceLoop({ balancer, clusterName, workers = 1 }: ServiceLoopOptions): CloudLoop {
  const done = new Map<string, Done>()
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
      watching(Services, ofService),
      watching(Nodes, (_, cache) => all(cache), changesBalance),
      ...(balancer.isFree === true ? [watching(EndpointSlices, serviceOf)] : []),
    ],
    rules: [
      allow('', 'services', 'get list watch patch update'),
      allow('', 'services/status', 'patch update'),
      allow('', 'nodes', 'list watch'),
      allow('discovery.k8s.io', 'endpointslices', 'list watch'),
      ...EVENT_RULES,
    ],
    async reconcile(key, context) {
      const service = context.cache.get(Services, key)
      const step = service === undefined ? 'nothing' : stepFor(service)
      const before = done.get(key)
      // When it fails, all of it is tried again.
      done.delete(key)
      if (service === undefined || step === 'nothing') return
      const nodes = Array.from(context.cache.list(Nodes)).filter(isBalanced)
      const request = { clusterName, service, nodes, view: context.cache, signal: context.signal }
      const work = { balancer, context, request }
      const now = await attempt(work, () => (step === 'ensure' ? keep(work, before) : cleanUp(work)))
      if (now !== undefined) done.set(key, now)
    },
  }
}

/** Says what went wrong. */
async function attempt<T>(work: Work, deed: () => Promise<T>): Promise<T> {
  try {
    return await deed()
  } catch (error) {
    if (error instanceof Told) throw error.cause
    say(work, 'Warning', 'SyncLoadBalancerFailed', `Error syncing load balancer: ${(error as Error).message}`)
    throw error
  }
}

/** As much as has changed since `before`. */
async function keep(work: Work, before: Done | undefined): Promise<Done> {
  const { balancer, request } = work
  const now = { wish: wishOf(request.service), places: placesOf(request.nodes) }
  if (balancer.isFree === true || before?.wish !== now.wish) await ensure(work)
  else if (before.places !== now.places) await updateNodes(work)
  return now
}

/** What went wrong was said with words of its own. */
class Told extends Error {}

interface Work {
  readonly balancer: LoadBalancer
  readonly request: BalancerRequest & { readonly nodes: readonly Node[] }
  readonly context: LoopContext
}

const isOurs = (service: Service): boolean => wantsBalancer(service) || hasFinalizer(service)

function serviceOf({ metadata: { namespace = '', labels = {} } }: EndpointSlice, cache: ClusterView): string[] {
  const key = `${namespace}/${labels['kubernetes.io/service-name'] ?? ''}`
  const service = cache.get(Services, key)
  return service !== undefined && wantsBalancer(service) ? [key] : []
}

/** All of a Service that a balancer is made of: as long as that stays, and its nodes do, so does the balancer. */
function wishOf({ metadata: { uid, annotations }, spec }: Service): string {
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

const placesOf = (nodes: readonly Node[]): string =>
  JSON.stringify(nodes.map(({ metadata, spec }) => `${metadata.name} ${spec.providerID ?? ''}`).sort())

async function ensure(work: Work): Promise<void> {
  const { balancer, request, context } = work
  const { service, nodes } = request
  // One that costs nothing is ensured whenever anything changes: that is not worth telling each time.
  const isTold = balancer.isFree !== true || !hasFinalizer(service)
  if (isTold) say(work, 'Normal', 'EnsuringLoadBalancer', 'Ensuring load balancer')
  // First: what is made must not be forgotten.
  if (!hasFinalizer(service))
    await explained(
      'failed to add load balancer cleanup finalizer',
      setFinalizers(service, [...(service.metadata.finalizers ?? []), FINALIZER], context),
    )
  if (isTold && nodes.length === 0) sayNodes(work)
  let status: LoadBalancerStatus
  try {
    status = await balancer.ensure(request)
  } catch (error) {
    if (error instanceof ImplementedElsewhere) return
    // Nobody is to be led where it is not served.
    if (error instanceof Refused) await writeStatus(service, {}, context)
    throw new Error(`failed to ensure load balancer: ${(error as Error).message}`, { cause: error })
  }
  if (isTold) say(work, 'Normal', 'EnsuredLoadBalancer', 'Ensured load balancer')
  const hasChanged = await explained('failed to update load balancer status', writeStatus(service, status, context))
  if (hasChanged && !isTold) sayNodes(work)
}

/** Which nodes it has now. */
function sayNodes(work: Work): void {
  if (work.request.nodes.length > 0) say(work, 'Normal', 'UpdatedLoadBalancer', 'Updated load balancer with new hosts')
  else say(work, 'Warning', 'UnAvailableLoadBalancer', 'There are no available nodes for LoadBalancer')
}

/** How many names of nodes an event has room for. */
const MOST_NAMES = 20

async function updateNodes(work: Work): Promise<void> {
  const { balancer, request } = work
  const { nodes } = request
  try {
    await (balancer.update === undefined ? balancer.ensure(request) : balancer.update(request))
    sayNodes(work)
  } catch (error) {
    if (error instanceof ImplementedElsewhere) return
    // What is not there needs no nodes.
    if ((await balancer.find(request)) === undefined) return
    const names = nodes.map(({ metadata: { name = '' } }) => name)
    const shown = names.slice(0, MOST_NAMES).sort()
    const more = names.length > MOST_NAMES ? [`<${names.length - MOST_NAMES} more>`] : []
    const limits = `[node names limited, total number of nodes: ${names.length}]`
    const message = `Error updating load balancer with new hosts [${[...shown, ...more].join(' ')}] ${limits}`
    say(work, 'Warning', 'UpdateLoadBalancerFailed', `${message}, error: ${(error as Error).message}`)
    throw new Told('', { cause: error })
  }
}

async function cleanUp(work: Work): Promise<undefined> {
  const { balancer, request, context } = work
  const { service } = request
  const isThere = explained('failed to check if load balancer exists before cleanup', balancer.find(request))
  if ((await isThere) !== undefined) {
    say(work, 'Normal', 'DeletingLoadBalancer', 'Deleting load balancer')
    const isDone = balancer.remove(request).catch((error: unknown) => {
      if (!(error instanceof ImplementedElsewhere)) throw error
    })
    await explained('failed to delete load balancer', isDone)
  }
  if (!isBeingDeleted(service)) await writeStatus(service, {}, context)
  const others = (service.metadata.finalizers ?? []).filter((one) => one !== FINALIZER)
  await explained('failed to remove load balancer cleanup finalizer', setFinalizers(service, others, context))
  say(work, 'Normal', 'DeletedLoadBalancer', 'Deleted load balancer')
}

async function explained<T>(what: string, work: Promise<T>): Promise<T> {
  try {
    return await work
  } catch (cause) {
    throw new Error(`${what}: ${(cause as Error).message}`, { cause })
  }
}

function say({ request, context }: Work, type: 'Normal' | 'Warning', reason: string, message: string): void {
  context.event(request.service, { type, reason, message })
}

const whereOf = ({ metadata: { namespace = '', name = '' } }: Service): { namespace: string; name: string } => ({
  namespace,
  name,
})

async function setFinalizers(service: Service, finalizers: string[], { client, signal }: LoopContext): Promise<void> {
  // Of the version that was seen: those of others stay.
  const { resourceVersion } = service.metadata
  const value = { metadata: { resourceVersion, finalizers } }
  await unlessGone(client.patch(Services, whereOf(service), { type: 'merge', value }, { signal }))
}

/** True when it was another. */
async function writeStatus(
  service: Service,
  { ingress = [] }: LoadBalancerStatus,
  { client, signal }: LoopContext,
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
