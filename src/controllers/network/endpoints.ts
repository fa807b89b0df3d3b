/**
 * Endpoints controller: writes an Endpoints object for each Service with a selector. Subsets, ports and addresses are
 * in upstream's order, so that unchanged endpoints cause no write.
 */

import {
  type EndpointAddress,
  type EndpointPort,
  Endpoints as EndpointsKind,
  type Endpoints,
  type EndpointSubset,
  type Pod,
  Pods,
  type Service,
  Services,
} from '#apis/core/v1.ts'
import { structFor } from '#apis/schemas.ts'
import { fnv128a } from '#lib/fnv128.ts'
import { compareText } from '#lib/go/text.ts'
import { isBeingDeleted, objectKey, semanticEqual, splitKey } from '#meta/object.ts'
import { isAlreadyExists, isNamespaceTerminating, isNotFound } from '#meta/status.ts'
import { timeOf } from '#meta/time.ts'
import { goDump } from '#model/go-dump.ts'
import { isReady } from '#model/pods.ts'
import { isHeadless, targetPortOf } from '#model/services.ts'
import { itself, NotYet, related, rule, EVENTS } from '#reconcile/controller.ts'

import { perRun } from '../controller.ts'
import { type Controller, type ControllerContext, defineController } from '../controller.ts'
import { messageOf } from '../pod-creation.ts'
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
} from './service-pods.ts'

const MANAGED_BY = 'endpoints.kubernetes.io/managed-by'
const OVER_CAPACITY = 'endpoints.kubernetes.io/over-capacity'
/** Further addresses are only in EndpointSlices. */
const MAX_ADDRESSES = 1000

const triggersOf = perRun(() => new TriggerTimes())

export const endpointsController: Controller = defineController({
  name: 'endpoints-controller',
  aliases: ['endpoint'],
  account: 'endpoint-controller',
  component: 'endpoint-controller',
  maxRetries: 15,
  watches: [
    itself(Services),
    podsOfServices,
    // Endpoints without a Service are not ours.
    related(EndpointsKind, (endpoints, cache) => {
      const key = objectKey(endpoints)
      return cache.get(Services, key) === undefined ? [] : [key]
    }),
  ],
  rules: [
    rule('', 'services pods', 'get list watch'),
    rule('', 'endpoints', 'create delete get list update watch'),
    rule('', 'endpoints/restricted', 'create'),
    EVENTS,
  ],

  async reconcile(key, context) {
    const { cache, client, signal } = context
    const service = cache.get(Services, key)
    if (service === undefined) {
      triggersOf(context).forget(key)
      // Deletes even without a cached object: it may be newer than the cache.
      await client.delete(EndpointsKind, splitKey(key), { signal }).catch((error: unknown) => {
        if (!isNotFound(error)) throw error
      })
      return
    }
    if (hasSelector(service)) await syncEndpoints(key, service, context)
  },
})

async function syncEndpoints(key: string, service: Service, context: ControllerContext): Promise<void> {
  const { cache } = context
  const { namespace = '', name = '' } = service.metadata
  const pods = cache.inNamespace(Pods, namespace).filter((pod) => selectsPod(service, pod))
  const triggeredMs = triggersOf(context).next(service, pods)
  const all = subsetsOf(service, pods)
  const subsets = truncated(all)
  const known = cache.get(EndpointsKind, key)
  const labels = {
    ...service.metadata.labels,
    [MANAGED_BY]: 'endpoint-controller',
    ...(isHeadless(service.spec) && { [HEADLESS_LABEL]: '' }),
  }
  const { [TRIGGER_TIME]: _since, [OVER_CAPACITY]: capacity, ...others } = known?.metadata.annotations ?? {}
  const isCut = subsets !== all
  const isSame = semanticEqual(known?.subsets, subsets) && semanticEqual(known?.metadata.labels, labels)
  if (known !== undefined && isSame && (capacity === 'truncated') === isCut) return
  const annotations = {
    ...others,
    ...(triggeredMs !== undefined && { [TRIGGER_TIME]: timeOf(triggeredMs) }),
    ...(isCut && { [OVER_CAPACITY]: 'truncated' }),
  }
  const metadata = { ...known?.metadata, namespace, name, labels, annotations }
  await write(service, { ...known, metadata, subsets }, known === undefined, context)
}

async function write(
  service: Service,
  endpoints: Endpoints,
  isNew: boolean,
  { client, event, signal }: ControllerContext,
): Promise<void> {
  try {
    if (isNew) await client.create(EndpointsKind, endpoints, { signal })
    else await client.update(EndpointsKind, endpoints, { signal })
  } catch (error) {
    if (isNew && isNamespaceTerminating(error)) return
    if (isNew && isAlreadyExists(error)) throw new NotYet('the Endpoints that were made have not been seen')
    const where = `${service.metadata.namespace}/${service.metadata.name}`
    const [reason, what] = isNew
      ? ['FailedToCreateEndpoint', `create endpoint for service ${where}`]
      : ['FailedToUpdateEndpoint', `update endpoint ${where}`]
    const about = { ...endpoints, kind: 'Endpoints', apiVersion: 'v1' }
    event(about, { type: 'Warning', reason, message: `Failed to ${what}: ${messageOf(error)}` })
    throw error
  }
}

interface PodEndpoint {
  readonly address: EndpointAddress
  readonly isReady: boolean
}

/** Ports with the same addresses share a subset. */
export function subsetsOf(service: Service, pods: readonly Pod[]): EndpointSubset[] {
  const byPort = new Map<string, { readonly port: EndpointPort | undefined; readonly reached: PodEndpoint[] }>()
  for (const pod of pods) {
    const reached = reach(service, pod)
    if (reached === undefined) continue
    for (const port of portsOf(service, pod)) {
      const key = JSON.stringify(port ?? null)
      const known = byPort.get(key) ?? { port, reached: [] }
      known.reached.push(reached)
      byPort.set(key, known)
    }
  }
  const bySet = Map.groupBy(byPort.values(), ({ reached }) =>
    reached
      .map(({ address, isReady: is }) => `${address.ip} ${address.targetRef?.uid} ${is}`)
      .toSorted()
      .join(),
  )
  const subsets = Array.from(bySet.values(), (group): EndpointSubset => {
    const reached = group[0]?.reached ?? []
    const ports = group.flatMap(({ port }) => (port === undefined ? [] : [port]))
    const [ready, unready] = [true, false].map((wanted) =>
      reached
        .filter((one) => one.isReady === wanted)
        .map(({ address }) => address)
        .sort(byAddress),
    )
    return {
      ...(ready !== undefined && ready.length > 0 && { addresses: ready }),
      ...(unready !== undefined && unready.length > 0 && { notReadyAddresses: unready }),
      ...(ports.length > 0 && { ports: sortedByHash('EndpointPort', ports) }),
    }
  })
  return sortedByHash('EndpointSubset', subsets)
}

function reach(service: Service, pod: Pod): PodEndpoint | undefined {
  const isTolerant = service.spec.publishNotReadyAddresses === true
  if (!hasAddress(pod) || (isBeingDeleted(pod) && !isTolerant)) return undefined
  const family = service.spec.ipFamilies?.[0] ?? 'IPv4'
  const ip = addressesOf(pod).find((one) => isOfFamily(one, family))
  if (ip === undefined) return undefined
  const { namespace = '', name = '', uid = '' } = pod.metadata
  const { nodeName = '' } = pod.spec
  const hostname = hostnameIn(service, pod)
  const address = {
    ip,
    ...(hostname !== undefined && { hostname }),
    ...(nodeName !== '' && { nodeName }),
    targetRef: { kind: 'Pod', namespace, name, uid },
  }
  return { address, isReady: isTolerant || isReady(pod) }
}

/** Contains undefined for a headless service without ports. */
function portsOf({ spec }: Service, pod: Pod): (EndpointPort | undefined)[] {
  const { ports = [] } = spec
  if (ports.length === 0) return isHeadless(spec) ? [undefined] : []
  return ports.flatMap((servicePort) => {
    const port = targetPortOf(pod, servicePort)
    if (port === undefined) return []
    const { name = '', protocol = 'TCP', appProtocol } = servicePort
    return [{ ...(name !== '' && { name }), port, protocol, ...(appProtocol !== undefined && { appProtocol }) }]
  })
}

function byAddress(one: EndpointAddress, other: EndpointAddress): number {
  return compareText(one.ip, other.ip) || compareText(one.targetRef?.uid ?? '', other.targetRef?.uid ?? '')
}

/** Sorted by upstream's hash of the Go representation. */
function sortedByHash<T>(type: string, values: readonly T[]): T[] {
  const schema = structFor('core.v1', type)
  if (values.length < 2) return [...values]
  const hashes = new Map(values.map((value) => [value, fnv128a(Buffer.from(goDump(schema, value)))]))
  return values.toSorted((a, b) => compareText(hashes.get(a) ?? '', hashes.get(b) ?? ''))
}

/** Ready addresses first. Returns the same array if nothing is cut. */
function truncated(subsets: EndpointSubset[]): EndpointSubset[] {
  const count = (addresses: readonly EndpointAddress[] | undefined): number => addresses?.length ?? 0
  const total = subsets.reduce((sum, one) => sum + count(one.addresses) + count(one.notReadyAddresses), 0)
  if (total <= MAX_ADDRESSES) return subsets
  let room = MAX_ADDRESSES
  const take = (addresses: readonly EndpointAddress[] | undefined): EndpointAddress[] => {
    const taken = (addresses ?? []).slice(0, room)
    room -= taken.length
    return taken
  }
  const ready = subsets.map(({ addresses }) => take(addresses))
  return subsets.flatMap(({ notReadyAddresses, ports }, at): EndpointSubset[] => {
    const addresses = ready[at] ?? []
    const unready = take(notReadyAddresses)
    if (addresses.length + unready.length === 0) return []
    return [
      {
        ...(addresses.length > 0 && { addresses }),
        ...(unready.length > 0 && { notReadyAddresses: unready }),
        ...(ports !== undefined && { ports }),
      },
    ]
  })
}
