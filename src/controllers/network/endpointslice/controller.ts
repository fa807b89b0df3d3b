/**
 * EndpointSlice controller: writes slices with the pod addresses of each Service with a selector, by address family and
 * resolved ports. `plan.ts` distributes them over slices.
 */
import { type Node, Nodes, type Pod, Pods, type Service, Services } from '#apis/core/v1.ts'
import { type Endpoint, type EndpointPort, EndpointSlices } from '#apis/discovery/v1.ts'
import type { EventNote } from '#client/events/event-recorder.ts'
import { controllerRef, isBeingDeleted, keyOf, objectKey, type ObjectMeta, semanticEqual } from '#meta/object.ts'
import { isNamespaceTerminating } from '#meta/status.ts'
import { timeOf } from '#meta/time.ts'
import { isReady } from '#model/pods.ts'
import { isHeadless, targetPortOf } from '#model/services.ts'
import { itself, related, rule, EVENTS } from '#reconcile/controller.ts'

import { perRun } from '../../controller.ts'
import { type Controller, type ControllerContext, defineController, type Watch } from '../../controller.ts'
import { messageOf } from '../../pod-creation.ts'
import {
  addressesOf,
  hasAddress,
  hasSelector,
  HEADLESS_LABEL,
  hostnameIn,
  podsOfServices,
  isOfFamily,
  selectsPod,
  TRIGGER_TIME,
  TriggerTimes,
  zoneOf,
} from '../service-pods.ts'
import { hintEach, type HintFunction, hintsNearby } from './hints.ts'
import { planSlices, type PortGroup, portsKey, type SliceOptions } from './plan.ts'
import { isNodeReady, Topology } from './topology.ts'
import { addTotals, recordTotal, totalOf, turnoverOf } from './totals.ts'
import { applyPlan } from './writing.ts'

const MANAGED_BY = 'endpointslice.kubernetes.io/managed-by'
const MANAGER = 'endpointslice-controller.k8s.io'
const SERVICE_NAME = 'kubernetes.io/service-name'

const triggersOf = perRun(() => new TriggerTimes())
const topologyOf = perRun(({ cache }) => new Topology(cache.list(Nodes)))

/** The queue key for all nodes; other keys are Services. */
const NODES = 'nodes'

const zonesOfNodes: Watch = related(
  Nodes,
  () => [NODES],
  (node, old) => isNodeReady(node) !== isNodeReady(old) || zoneOf(node) !== zoneOf(old),
)

const ownSlices: Watch = {
  kind: EndpointSlices,
  isExpected: true,
  keysOf: ({ metadata: { namespace, labels = {} } }) =>
    labels[MANAGED_BY] === MANAGER ? [keyOf(namespace, labels[SERVICE_NAME] ?? '')] : [],
}

export const endpointSliceController: Controller = defineController({
  name: 'endpointslice-controller',
  aliases: ['endpointslice'],
  component: 'endpoint-slice-controller',
  maxRetries: 15,
  watches: [itself(Services), podsOfServices, ownSlices, zonesOfNodes],
  rules: [
    rule('', 'nodes pods services', 'get list watch'),
    rule('', 'services/finalizers', 'update'),
    rule('discovery.k8s.io', 'endpointslices', 'create delete get list update watch'),
    EVENTS,
  ],

  async reconcile(key, context) {
    const { cache, expectations, event, enqueue, meters } = context
    if (key === NODES)
      return topologyOf(context)
        .setNodes(cache.list(Nodes))
        .forEach((each) => enqueue(each))
    const service = cache.get(Services, key)
    const syncs = meters.family('endpoint_slice_controller_syncs')
    if (service === undefined) {
      recordTotal(key, undefined, context)
      triggersOf(context).forget(key)
      topologyOf(context).forget({ service: key })
      return expectations.forget(key)
    }
    if (!hasSelector(service) || isBeingDeleted(service)) return
    if (!expectations.satisfied(key)) return syncs.labels('stale').inc()
    try {
      await syncService(key, service, context)
      syncs.labels('success').inc()
    } catch (error) {
      if (isNamespaceTerminating(error)) return
      syncs.labels('error').inc()
      const message = `Error updating Endpoint Slices for Service ${key}: ${messageOf(error)}`
      event(service, { type: 'Warning', reason: 'FailedToUpdateEndpointSlices', message })
      throw error
    }
  },

  async run({ cache, meters }) {
    meters.collect('endpoint_slice_controller_services_count_by_traffic_distribution', (emit) => {
      const ours = [...cache.list(Services)].filter((service) => hasSelector(service))
      const preferences = Map.groupBy(ours, ({ spec }) => spec.trafficDistribution ?? '')
      for (const [preference, services] of preferences) if (preference !== '') emit(services.length, preference)
    })
  },
})

const WHO = 'endpoint_slice_controller'

async function syncService(key: string, service: Service, context: ControllerContext): Promise<void> {
  const { cache, settings, event, meters } = context
  const { namespace = '', name } = service.metadata
  const pods = cache.inNamespace(Pods, namespace).filter((pod) => selectsPod(service, pod))
  const existing = cache
    .inNamespace(EndpointSlices, namespace)
    .filter(({ metadata: { labels = {} } }) => labels[SERVICE_NAME] === name && labels[MANAGED_BY] === MANAGER)
  const triggeredMs = triggersOf(context).next(service, pods)
  const metadata = metadataOf(service)
  const annotations: Record<string, string> = triggeredMs === undefined ? {} : { [TRIGGER_TIME]: timeOf(triggeredMs) }
  const families = familiesOf(service)
  const lost: string[] = []
  const isHinted = wantsTopology(service)
  const sync = { added: 0, removed: 0, changed: 0, total: { endpoints: 0, slices: 0, desired: 0 } }
  for (const addressType of families) {
    const hinted = hintingOf(service, addressType, topologyOf(context))
    const groups = groupsOf(service, pods, addressType, { nodeOf: (one) => cache.get(Nodes, one), lost })
    const wanted: SliceOptions = {
      addressType,
      groups,
      maxEndpoints: settings['max-endpoints-per-slice'],
      metadata,
      annotations,
      isCurrent: (slice) => semanticEqual(slice.metadata.labels, metadata.labels),
      needsOne: true,
      hint: hinted.hint,
    }
    const ofType = existing.filter((slice) => slice.addressType === addressType)
    const plan = planSlices(ofType, wanted)
    const turnover = turnoverOf(groups, ofType)
    sync.added += turnover.added
    sync.removed += turnover.removed
    sync.changed += plan.create.length + plan.update.length + plan.remove.length
    sync.total = addTotals(sync.total, totalOf(groups, wanted.maxEndpoints, ofType, plan))
    await applyPlan(key, plan, context, WHO)
    if (hinted.note !== undefined) event(service, hinted.note)
  }
  const remove = existing.filter(({ addressType }) => !families.includes(addressType))
  for (const { addressType: family } of remove) topologyOf(context).forget({ service: key, family })
  await applyPlan(key, { create: [], update: [], remove }, context, WHO)
  recordTotal(key, sync.total, context)
  meters.family('endpoint_slice_controller_endpoints_added_per_sync').labels().observe(sync.added)
  meters.family('endpoint_slice_controller_endpoints_removed_per_sync').labels().observe(sync.removed)
  meters
    .family('endpoint_slice_controller_endpointslices_changed_per_sync')
    .labels(isHinted ? 'Auto' : 'Disabled', isHinted ? '' : (service.spec.trafficDistribution ?? ''))
    .observe(sync.changed)
  if (lost.length > 0) throw new Error(lost.join(', '))
}

interface HintPlan {
  readonly hint: HintFunction
  /** The event to record after planning. */
  note?: EventNote | undefined
}

function hintingOf(service: Service, family: string, topology: Topology): HintPlan {
  const share = { service: objectKey(service), family }
  if (!wantsTopology(service))
    return { hint: hintEach(hintsNearby(service.spec.trafficDistribution)), note: topology.withdraw(share) }
  const hinted: HintPlan = {
    hint(slices) {
      const { slices: done, note } = topology.hint(share, slices)
      hinted.note = note
      return done
    },
  }
  return hinted
}

function wantsTopology({ metadata }: Service): boolean {
  const { 'service.kubernetes.io/topology-mode': mode, 'service.kubernetes.io/topology-aware-hints': older = mode } =
    metadata.annotations ?? {}
  return older?.replace('A', 'a') === 'auto'
}

function familiesOf({ spec: { ipFamilies = [] } }: Service): readonly string[] {
  return ipFamilies.length > 0 ? ipFamilies : ['IPv4']
}

const RESERVED: readonly string[] = [SERVICE_NAME, MANAGED_BY, HEADLESS_LABEL]

function metadataOf(service: Service): ObjectMeta {
  const { namespace = '', name = '', labels = {} } = service.metadata
  const own = Object.entries(labels).filter(([label]) => !RESERVED.includes(label))
  return {
    generateName: `${name}-`,
    namespace,
    labels: {
      ...Object.fromEntries(own),
      [SERVICE_NAME]: name,
      [MANAGED_BY]: MANAGER,
      ...(isHeadless(service.spec) && { [HEADLESS_LABEL]: '' }),
    },
    ownerReferences: [controllerRef(service, { group: '', version: 'v1', kind: 'Service' })],
  }
}

interface Surroundings {
  readonly nodeOf: (name: string) => Node | undefined
  /** Pods on nodes that the cache does not have yet. */
  readonly lost: string[]
}

/** Groups endpoints by the resolved ports of the service. */
export function groupsOf(
  service: Service,
  pods: readonly Pod[],
  family: string,
  { nodeOf, lost }: Surroundings,
): PortGroup[] {
  const groups = new Map<string, { ports: EndpointPort[]; endpoints: Endpoint[] }>()
  for (const pod of pods.filter(hasAddress)) {
    const { nodeName = '' } = pod.spec
    const node = nodeName === '' ? undefined : nodeOf(nodeName)
    if (nodeName !== '' && node === undefined && service.spec.publishNotReadyAddresses !== true) {
      const where = `${service.metadata.namespace}/${service.metadata.name}`
      lost.push(`skipping Pod ${pod.metadata.name} for Service ${where}: Node ${nodeName} Not Found`)
      continue
    }
    const addresses = addressesOf(pod).filter((ip) => isOfFamily(ip, family))
    if (addresses.length === 0) continue
    const ports = portsOf(service, pod)
    const key = portsKey(ports)
    const group = groups.get(key) ?? { ports, endpoints: [] }
    group.endpoints.push(endpointOf(service, pod, addresses, node))
    groups.set(key, group)
  }
  return [...groups.values()]
}

function portsOf({ spec: { ports = [] } }: Service, pod: Pod): EndpointPort[] {
  return ports.flatMap((servicePort) => {
    const port = targetPortOf(pod, servicePort)
    if (port === undefined) return []
    const { name = '', protocol = 'TCP', appProtocol } = servicePort
    return [{ name, protocol, port, ...(appProtocol !== undefined && { appProtocol }) }]
  })
}

function endpointOf(service: Service, pod: Pod, addresses: string[], node: Node | undefined): Endpoint {
  const { namespace = '', name = '', uid = '' } = pod.metadata
  const { nodeName = '' } = pod.spec
  const serving = isReady(pod)
  const terminating = isBeingDeleted(pod)
  const ready = service.spec.publishNotReadyAddresses === true || (serving && !terminating)
  const hostname = hostnameIn(service, pod)
  const zone = zoneOf(node)
  return {
    addresses,
    conditions: { ready, serving, terminating },
    ...(hostname !== undefined && { hostname }),
    targetRef: { kind: 'Pod', namespace, name, uid },
    ...(nodeName !== '' && { nodeName }),
    ...(zone !== undefined && { zone }),
  }
}
