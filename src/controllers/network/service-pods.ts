/** Relates Services to pods: selection, ports and change times. */
import { type Node, type Pod, Pods, type Service, Services } from '#apis/core/v1.ts'
import { parseIp } from '#lib/net/cidr.ts'
import { matchesLabels, selectorFromLabels } from '#meta/labels.ts'
import { isBeingDeleted, keyOf, objectKey, semanticEqual } from '#meta/object.ts'
import { epochMsOf } from '#meta/time.ts'
import { conditionsOf, isReady, isTerminal } from '#model/pods.ts'
import type { Cache } from '#reconcile/cache.ts'
import { related } from '#reconcile/controller.ts'

import { type Watch } from '../controller.ts'

export const TRIGGER_TIME = 'endpoints.kubernetes.io/last-change-trigger-time'
export const HEADLESS_LABEL = 'service.kubernetes.io/headless'
export const ZONE_LABEL = 'topology.kubernetes.io/zone'

/** Whether controllers manage its endpoints. */
export function hasSelector({ spec }: Service): boolean {
  return spec.type !== 'ExternalName' && Object.keys(spec.selector ?? {}).length > 0
}

/** A pod enqueues the Services that select it. */
export const podsOfServices: Watch = related(Pods, servicesOf, affectsServices)

function servicesOf(pod: Pod, cache: Cache): string[] {
  const services = cache.inNamespace(Services, pod.metadata.namespace ?? '')
  return services.filter((service) => selectsPod(service, pod)).map(objectKey)
}

export function selectsPod(service: Service, pod: Pod): boolean {
  return hasSelector(service) && matchesLabels(selectorFromLabels(service.spec.selector), pod.metadata.labels)
}

/** It has an IP and is not terminated; readiness does not matter. */
export function hasAddress(pod: Pod): boolean {
  return !isTerminal(pod) && addressesOf(pod).length > 0
}

/** Addresses of all families, in the pod's order. */
export function addressesOf({ status }: Pod): string[] {
  const listed = (status.podIPs ?? []).map(({ ip }) => ip).filter((ip) => ip !== undefined)
  if (listed.length > 0) return listed
  return status.podIP === undefined || status.podIP === '' ? [] : [status.podIP]
}

export function isOfFamily(ip: string, family: string): boolean {
  return parseIp(ip)?.family === (family === 'IPv6' ? 6 : 4)
}

/** The pod's hostname if its subdomain is the service. */
export function hostnameIn({ metadata }: Service, { spec, metadata: { namespace } }: Pod): string | undefined {
  const isNamed = (spec.hostname ?? '') !== '' && spec.subdomain === metadata.name && namespace === metadata.namespace
  return isNamed ? spec.hostname : undefined
}

export function zoneOf(node: Node | undefined): string | undefined {
  return node?.metadata.labels?.[ZONE_LABEL]
}

/** Whether the change affects endpoints of a Service. */
function affectsServices(pod: Pod, old: Pod): boolean {
  const comparedFields = (one: Pod): unknown => [
    one.metadata.labels,
    isBeingDeleted(one),
    isTerminal(one),
    isReady(one),
    addressesOf(one),
    [one.spec.nodeName, one.spec.hostname, one.spec.subdomain],
  ]
  return !semanticEqual(comparedFields(pod), comparedFields(old))
}

/** The time of the oldest observed change that is not yet written. */
export class TriggerTimes {
  readonly #seen = new Map<string, { readonly service: number; readonly pods: ReadonlyMap<string, number> }>()

  /** In milliseconds; undefined without a timed change. */
  next(service: Service, pods: readonly Pod[]): number | undefined {
    const key = objectKey(service)
    const before = this.#seen.get(key)
    const madeMs = epochMsOf(service.metadata.creationTimestamp ?? '')
    const times = new Map(pods.flatMap(readySince))
    this.#seen.set(key, { service: madeMs, pods: times })
    const changed = [...times].filter(([name, ms]) => ms > (before?.pods.get(name) ?? 0)).map(([, ms]) => ms)
    if (madeMs > (before?.service ?? 0)) changed.push(madeMs)
    return changed.length === 0 ? undefined : Math.min(...changed)
  }

  forget(key: string): void {
    this.#seen.delete(key)
  }
}

function readySince({ metadata, status }: Pod): [string, number][] {
  const ready = conditionsOf(status.conditions).find(({ type }) => type === 'Ready')
  if (ready?.lastTransitionTime === undefined) return []
  return [[keyOf(metadata.namespace, metadata.name ?? ''), epochMsOf(ready.lastTransitionTime)]]
}
