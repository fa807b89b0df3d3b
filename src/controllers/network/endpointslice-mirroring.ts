/** EndpointSlice mirroring: mirrors custom Endpoints of Services without a selector to EndpointSlices. */
import { type EndpointAddress, Endpoints, type Endpoints as EndpointsObject, Services } from '#apis/core/v1.ts'
import { type Endpoint, type EndpointPort, type EndpointSlice, EndpointSlices } from '#apis/discovery/v1.ts'
import { parseIp } from '#lib/net/cidr.ts'
import { controllerRef, isBeingDeleted, keyOf, type ObjectMeta, objectKey, semanticEqual } from '#meta/object.ts'
import { itself, related, rule, EVENTS } from '#reconcile/controller.ts'

import { type Controller, type ControllerContext, defineController, type Watch } from '../controller.ts'
import { planSlices, type PortGroup, portsKey } from './endpointslice/plan.ts'
import { applyPlan } from './endpointslice/writing.ts'
import { TRIGGER_TIME } from './service-pods.ts'

const MANAGED_BY = 'endpointslice.kubernetes.io/managed-by'
const MANAGER = 'endpointslicemirroring-controller.k8s.io'
const SERVICE_NAME = 'kubernetes.io/service-name'
const SKIP = 'endpointslice.kubernetes.io/skip-mirror'
const LEADER = 'control-plane.alpha.kubernetes.io/leader'
const FAMILIES: readonly string[] = ['IPv4', 'IPv6']
/** Annotations that are not mirrored. */
const LEFT_OUT: ReadonlySet<string> = new Set([TRIGGER_TIME, 'kubectl.kubernetes.io/last-applied-configuration'])

const mirrors: Watch = {
  kind: EndpointSlices,
  isExpected: true,
  keysOf: ({ metadata: { namespace, labels = {} } }) =>
    labels[MANAGED_BY] === MANAGER ? [keyOf(namespace, labels[SERVICE_NAME] ?? '')] : [],
}

export const endpointSliceMirroringController: Controller = defineController({
  name: 'endpointslice-mirroring-controller',
  aliases: ['endpointslicemirroring'],
  account: 'endpointslicemirroring-controller',
  component: 'endpoint-slice-mirroring-controller',
  maxRetries: 15,
  watches: [itself(Endpoints), related(Services, (service) => [objectKey(service)]), mirrors],
  rules: [
    rule('', 'endpoints services', 'get list watch'),
    rule('', 'services/finalizers endpoints/finalizers', 'update'),
    rule('discovery.k8s.io', 'endpointslices', 'create delete get list update watch'),
    EVENTS,
  ],

  async reconcile(key, context) {
    const { clock, meters } = context
    const startMs = clock.elapsed()
    await mirrorAll(key, context).finally(() => {
      const seconds = meters.family('endpoint_slice_mirroring_controller_endpoints_sync_duration').labels()
      seconds.observe((clock.elapsed() - startMs) / 1000)
    })
  },
})

async function mirrorAll(key: string, context: ControllerContext): Promise<void> {
  const { cache, expectations } = context
  const [namespace = '', name = ''] = key.split('/')
  const existing = cache
    .inNamespace(EndpointSlices, namespace)
    .filter(({ metadata: { labels = {} } }) => labels[MANAGED_BY] === MANAGER && labels[SERVICE_NAME] === name)
  if (!expectations.satisfied(key)) return
  const endpoints = cache.get(Endpoints, key)
  const service = cache.get(Services, key)
  const isOurs = service !== undefined && service.spec.selector === undefined
  if (endpoints === undefined || !isOurs || !isMirrored(endpoints)) {
    return applyPlan(key, { create: [], update: [], remove: existing }, context, WHO)
  }
  const mirrored = mirror(endpoints, context)
  for (const addressType of FAMILIES) {
    const { metadata, annotations } = metadataOf(endpoints)
    const plan = planSlices(
      existing.filter((slice) => slice.addressType === addressType),
      {
        addressType,
        groups: mirrored.get(addressType) ?? [],
        maxEndpoints: context.settings['mirroring-max-endpoints-per-subset'],
        metadata,
        annotations,
        isCurrent: (slice) =>
          semanticEqual(slice.metadata.labels, metadata.labels) &&
          semanticEqual(slice.metadata.annotations, annotations),
        needsOne: false,
      },
    )
    await applyPlan(key, { ...plan, update: plan.update.map(withoutPrefix) }, context, WHO)
  }
}

const WHO = 'endpoint_slice_mirroring_controller'

/** Upstream updates a mirror without its generateName. */
function withoutPrefix(slice: EndpointSlice): EndpointSlice {
  const { generateName: _made, ...metadata } = slice.metadata
  return { ...slice, metadata }
}

function isMirrored(endpoints: EndpointsObject): boolean {
  const { labels = {}, annotations = {} } = endpoints.metadata
  return labels[SKIP] !== 'true' && annotations[LEADER] === undefined && !isBeingDeleted(endpoints)
}

function metadataOf(endpoints: EndpointsObject): { metadata: ObjectMeta; annotations: Record<string, string> } {
  const { namespace = '', name = '', labels = {}, annotations = {} } = endpoints.metadata
  const copied = Object.entries(annotations).filter(([annotation]) => !LEFT_OUT.has(annotation))
  const metadata = {
    generateName: `${name}-`,
    namespace,
    labels: { ...labels, [SERVICE_NAME]: name, [MANAGED_BY]: MANAGER },
    ownerReferences: [controllerRef(endpoints, { group: '', version: 'v1', kind: 'Endpoints' })],
  }
  return { metadata, annotations: Object.fromEntries(copied) }
}

/** By address family. Skipped addresses are counted and cause an event. */
function mirror(endpoints: EndpointsObject, { settings, event, meters }: ControllerContext): Map<string, PortGroup[]> {
  const limit = settings['mirroring-max-endpoints-per-subset']
  const groups = new Map<string, { family: string; ports: EndpointPort[]; endpoints: Endpoint[] }>()
  let [skipped, invalid] = [0, 0]
  for (const { addresses = [], notReadyAddresses = [], ports: listed = [] } of endpoints.subsets ?? []) {
    const ports = listed.map(({ name = '', protocol = 'TCP', port, appProtocol }): EndpointPort => ({
      name,
      protocol,
      port,
      ...(appProtocol !== undefined && { appProtocol }),
    }))
    const all = [
      ...addresses.map((one) => endpointOf(one, true)),
      ...notReadyAddresses.map((one) => endpointOf(one, false)),
    ]
    skipped += Math.max(0, all.length - limit)
    for (const endpoint of all.slice(0, limit)) {
      const family = familyOf(endpoint.addresses[0] ?? '')
      if (family === undefined) {
        invalid++
        continue
      }
      const key = `${family} ${portsKey(ports)}`
      const group = groups.get(key) ?? { family, ports, endpoints: [] }
      group.endpoints.push(endpoint)
      groups.set(key, group)
    }
  }
  meters
    .family('endpoint_slice_mirroring_controller_addresses_skipped_per_sync')
    .labels()
    .observe(skipped + invalid)
  if (invalid > 0) {
    const message = `Skipped ${invalid} invalid IP addresses when mirroring to EndpointSlices`
    event(endpoints, { type: 'Warning', reason: 'InvalidIPAddress', message })
  }
  if (skipped > 0) {
    const message = `A max of ${limit} addresses can be mirrored to EndpointSlices per Endpoints subset. ${skipped} addresses were skipped`
    event(endpoints, { type: 'Warning', reason: 'TooManyAddressesToMirror', message })
  }
  return Map.groupBy(groups.values(), ({ family }) => family)
}

function familyOf(ip: string): string | undefined {
  const family = parseIp(ip, { sloppy: true })?.family
  return family === undefined ? undefined : `IPv${family}`
}

function endpointOf({ ip, hostname, nodeName, targetRef }: EndpointAddress, ready: boolean): Endpoint {
  return {
    addresses: [ip],
    conditions: { ready },
    ...(hostname !== undefined && { hostname }),
    ...(nodeName !== undefined && { nodeName }),
    ...(targetRef !== undefined && { targetRef }),
  }
}
