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

export function createServiceLoop({ balancer, clusterName, workers = 1 }: ServiceLoopOptions): CloudLoop {
  const ensured = new Map<string, string>()
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
      if (service === undefined) {
        ensured.delete(key)
        return
      }
      const request = { clusterName, service, view: context.cache, signal: context.signal }
      const step = stepFor(service)
      if (step === 'clean up') {
        ensured.delete(key)
        await cleanUp(balancer, request, context)
      } else if (step === 'ensure') {
        const nodes = Array.from(context.cache.list(Nodes)).filter(isBalanced)
        const wish = wishOf(service, nodes)
        if (balancer.isFree !== true && ensured.get(key) === wish) return
        if (await ensure(balancer, { ...request, nodes }, context)) ensured.set(key, wish)
      }
    },
  }
}

const isOurs = (service: Service): boolean => wantsBalancer(service) || hasFinalizer(service)

function serviceOf({ metadata: { namespace = '', labels = {} } }: EndpointSlice, cache: ClusterView): string[] {
  const key = `${namespace}/${labels['kubernetes.io/service-name'] ?? ''}`
  const service = cache.get(Services, key)
  return service !== undefined && wantsBalancer(service) ? [key] : []
}

/** All that a balancer is made of: as long as that stays, so does the balancer. */
function wishOf({ metadata: { uid, annotations }, spec }: Service, nodes: readonly Node[]): string {
  const places = nodes.map(({ metadata, spec: { providerID }, status }) =>
    JSON.stringify([metadata.name, providerID, status?.addresses]),
  )
  return JSON.stringify([uid, annotations, spec, places.sort()])
}

/** False: another does it. */
async function ensure(
  balancer: LoadBalancer,
  request: BalancerRequest & { readonly nodes: readonly Node[] },
  context: LoopContext,
): Promise<boolean> {
  const { service } = request
  const say = sayer(service, context)
  const isNew = !hasFinalizer(service)
  if (isNew) {
    say('Normal', 'EnsuringLoadBalancer', 'Ensuring load balancer')
    // First: what is made must not be forgotten.
    await setFinalizers(service, [...(service.metadata.finalizers ?? []), FINALIZER], context)
  }
  let status: LoadBalancerStatus
  try {
    status = await balancer.ensure(request)
  } catch (error) {
    if (error instanceof ImplementedElsewhere) return false
    // Nobody is to be led where it is not served.
    if (error instanceof Refused) await writeStatus(service, {}, context)
    const message = `Error syncing load balancer: failed to ensure load balancer: ${(error as Error).message}`
    say('Warning', 'SyncLoadBalancerFailed', message)
    throw error
  }
  const hasChanged = await writeStatus(service, status, context)
  if (request.nodes.length === 0 && hasChanged)
    say('Warning', 'UnAvailableLoadBalancer', 'There are no available nodes for LoadBalancer')
  if (isNew) say('Normal', 'EnsuredLoadBalancer', 'Ensured load balancer')
  else if (hasChanged) say('Normal', 'UpdatedLoadBalancer', 'Updated load balancer with new hosts')
  return true
}

async function cleanUp(balancer: LoadBalancer, request: BalancerRequest, context: LoopContext): Promise<void> {
  const { service } = request
  const say = sayer(service, context)
  if ((await balancer.find(request)) !== undefined) {
    say('Normal', 'DeletingLoadBalancer', 'Deleting load balancer')
    try {
      await balancer.remove(request)
    } catch (error) {
      if (!(error instanceof ImplementedElsewhere)) {
        const message = `Error syncing load balancer: failed to delete load balancer: ${(error as Error).message}`
        say('Warning', 'SyncLoadBalancerFailed', message)
        throw error
      }
    }
  }
  if (!isBeingDeleted(service)) await writeStatus(service, {}, context)
  const others = (service.metadata.finalizers ?? []).filter((one) => one !== FINALIZER)
  await setFinalizers(service, others, context)
  say('Normal', 'DeletedLoadBalancer', 'Deleted load balancer')
}

function sayer(
  service: Service,
  { event }: LoopContext,
): (type: 'Normal' | 'Warning', reason: string, message: string) => void {
  return (type, reason, message) => event(service, { type, reason, message })
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
