/**
 * EndpointSlice controller: a Service with a selector has slices with the addresses of its pods, for each family of
 * addresses and each way its ports resolve. `plan.ts` says how they are spread over slices.
 */
import { type Node, Nodes, type Pod, Pods, type Service, Services } from '#apis/core/v1.ts'
import { type Endpoint, type EndpointPort, EndpointSlices } from '#apis/discovery/v1.ts'
import { controllerRef, isBeingDeleted, keyOf, type ObjectMeta, semanticEqual } from '#meta/object.ts'
import { timeOf } from '#meta/time.ts'
import { isReady } from '#model/pods.ts'
import { isHeadless } from '#model/services.ts'

import {
  type Controller,
  type ControllerContext,
  defineController,
  itself,
  perRun,
  rule,
  type Watch,
  EVENTS,
} from '../controller.ts'
import { isNamespaceGoing, messageOf } from '../pod-creation.ts'
import {
  addressesOf,
  hasAddress,
  hasSelector,
  HEADLESS_LABEL,
  hostnameIn,
  podsOfServices,
  isOfFamily,
  selectsPod,
  targetPortOf,
  TRIGGER_TIME,
  TriggerTimes,
  zoneOf,
} from '../service-pods.ts'
import { planSlices, type PortGroup, portsKey, type Wanted } from './plan.ts'
import { carryOut } from './writing.ts'

const MANAGED_BY = 'endpointslice.kubernetes.io/managed-by'
const MANAGER = 'endpointslice-controller.k8s.io'
const SERVICE_NAME = 'kubernetes.io/service-name'

const triggersOf = perRun(() => new TriggerTimes())

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
  watches: [itself(Services), podsOfServices, ownSlices],
  reads: [Nodes],
  rules: [
    rule('', 'nodes pods services', 'get list watch'),
    rule('', 'services/finalizers', 'update'),
    rule('discovery.k8s.io', 'endpointslices', 'create delete get list update watch'),
    EVENTS,
  ],

  async reconcile(key, context) {
    const { cache, expectations, event } = context
    const service = cache.get(Services, key)
    if (service === undefined) {
      triggersOf(context).forget(key)
      return expectations.forget(key)
    }
    if (!hasSelector(service) || isBeingDeleted(service) || !expectations.satisfied(key)) return
    try {
      await bringAbout(key, service, context)
    } catch (error) {
      if (isNamespaceGoing(error)) return
      const message = `Error updating Endpoint Slices for Service ${key}: ${messageOf(error)}`
      event(service, { type: 'Warning', reason: 'FailedToUpdateEndpointSlices', message })
      throw error
    }
  },
})

async function bringAbout(key: string, service: Service, context: ControllerContext): Promise<void> {
  const { cache, settings } = context
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
  for (const addressType of families) {
    const groups = groupsOf(service, pods, addressType, { nodeOf: (one) => cache.get(Nodes, one), lost })
    const wanted: Wanted = {
      addressType,
      groups,
      maxEndpoints: settings['max-endpoints-per-slice'],
      metadata,
      annotations,
      isCurrent: (slice) => semanticEqual(slice.metadata.labels, metadata.labels),
      needsOne: true,
    }
    const ofType = existing.filter((slice) => slice.addressType === addressType)
    await carryOut(key, planSlices(ofType, wanted), context)
  }
  const remove = existing.filter(({ addressType }) => !families.includes(addressType))
  await carryOut(key, { create: [], update: [], remove }, context)
  if (lost.length > 0) throw new Error(lost.join(', '))
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
  /** Pods on nodes that nobody knows: perhaps not yet. */
  readonly lost: string[]
}

/** Endpoints by how the ports of the service resolve in their pods. */
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
  const endpoint: Endpoint = {
    addresses,
    conditions: { ready, serving, terminating },
    ...(hostname !== undefined && { hostname }),
    targetRef: { kind: 'Pod', namespace, name, uid },
    ...(nodeName !== '' && { nodeName }),
    ...(zone !== undefined && { zone }),
  }
  const hints = ready && zone !== undefined ? hintsOf(service.spec.trafficDistribution, zone, nodeName) : undefined
  return hints === undefined ? endpoint : { ...endpoint, hints }
}

function hintsOf(distribution: string | undefined, zone: string, nodeName: string): Endpoint['hints'] {
  const forZones = [{ name: zone }]
  if (distribution === 'PreferClose' || distribution === 'PreferSameZone') return { forZones }
  return distribution === 'PreferSameNode' ? { forZones, forNodes: [{ name: nodeName }] } : undefined
}
