/** Tracks changed Services and computes their routes on demand, once for any number of changes. */
import type { Service } from '#apis/core/v1.ts'
import type { EndpointSlice } from '#apis/discovery/v1.ts'
import type { Informer } from '#client/informer.ts'
import { objectKey } from '#meta/object.ts'
import type { IpFamily } from '#model/services.ts'

import { type Route, routesOf } from './routing.ts'

/** The label with the Service of a slice. */
const SERVICE_NAME = 'kubernetes.io/service-name'
/** The index of slices by Service. */
export const BY_SERVICE = 'service'

export function servicesOfSlice({ metadata }: EndpointSlice): readonly string[] {
  const name = metadata.labels?.[SERVICE_NAME] ?? ''
  return name === '' ? [] : [`${metadata.namespace}/${name}`]
}

export interface RouterOptions {
  readonly services: Informer<Service>
  /** Has the index BY_SERVICE. */
  readonly slices: Informer<EndpointSlice>
  readonly nodeName: string
  readonly families: readonly IpFamily[]
  /** Called on a change. */
  readonly onChange: (what: 'service' | 'endpoint' | 'all') => void
}

/** The routes of one Service for each family; empty: deleted or not ours. */
export interface RoutedService {
  readonly service: string
  readonly routes: ReadonlyMap<IpFamily, readonly Route[]>
  /** The trigger times of the changes from EndpointSlice annotations, if present. */
  readonly causedMs: readonly number[]
}

export class Router {
  readonly #options: RouterOptions
  readonly #dirty = new Set<string>()
  /** Services in `#dirty` by cause. */
  readonly #pending = { service: new Set<string>(), endpoint: new Set<string>() }
  readonly #caused = new Map<string, number[]>()
  #zone = ''
  /** The owner of each cluster IP, and of addresses by other means: cluster IPs take precedence. */
  readonly #clusterIps = new Map<string, string>()
  readonly #otherIps = new Map<string, Set<string>>()
  readonly #claimed = new Map<string, { readonly cluster: readonly string[]; readonly others: readonly string[] }>()

  constructor(options: RouterOptions) {
    this.#options = options
    const { services, slices } = options
    const changed = (service: Service): void => this.#mark(objectKey(service), 'service')
    services.listen({ added: changed, updated: changed, deleted: changed })
    slices.listen({
      added: (slice) => this.#markAll(servicesOfSlice(slice), causeOf(slice)),
      updated: (slice, old) => this.#markAll([...servicesOfSlice(old), ...servicesOfSlice(slice)], causeOf(slice)),
      deleted: (slice) => this.#markAll(servicesOfSlice(slice), undefined),
    })
  }

  /** The node's zone, for topology hints. */
  setZone(zone: string): void {
    if (zone === this.#zone) return
    this.#zone = zone
    this.markAll()
  }

  /** Marks all Services as changed. */
  markAll(): void {
    for (const service of this.#options.services.list()) this.#dirty.add(objectKey(service))
    this.#options.onChange('all')
  }

  /** The number of Services that wait for `take`, by cause. */
  get pending(): { readonly service: number; readonly endpoint: number } {
    return { service: this.#pending.service.size, endpoint: this.#pending.endpoint.size }
  }

  /** The changed Services since the last call. */
  take(): RoutedService[] {
    for (const service of this.#dirty) this.#note(service)
    const taken = Array.from(this.#dirty, (service) => this.#routed(service))
    this.#dirty.clear()
    this.#pending.service.clear()
    this.#pending.endpoint.clear()
    this.#caused.clear()
    return taken
  }

  #markAll(services: readonly string[], causedMs: number | undefined): void {
    for (const service of services) {
      this.#mark(service, 'endpoint')
      if (causedMs === undefined) continue
      const times = this.#caused.get(service)
      if (times === undefined) this.#caused.set(service, [causedMs])
      else times.push(causedMs)
    }
  }

  #mark(service: string, what: 'service' | 'endpoint'): void {
    this.#dirty.add(service)
    this.#pending[what].add(service)
    this.#options.onChange(what)
  }

  /** Also marks Services that share an address with a gained or lost cluster IP. */
  #note(key: string): void {
    const service = this.#options.services.get(key)
    const before = this.#claimed.get(key) ?? NO_CLAIMS
    const after = service === undefined ? NO_CLAIMS : claimsOf(service)
    for (const ip of before.cluster) if (this.#clusterIps.get(ip) === key) this.#clusterIps.delete(ip)
    for (const ip of before.others) this.#otherIps.get(ip)?.delete(key)
    for (const ip of after.cluster) this.#clusterIps.set(ip, key)
    for (const ip of after.others) {
      const users = this.#otherIps.get(ip)
      if (users === undefined) this.#otherIps.set(ip, new Set([key]))
      else users.add(key)
    }
    if (service === undefined) this.#claimed.delete(key)
    else this.#claimed.set(key, after)
    for (const ip of [...before.cluster, ...after.cluster])
      for (const user of this.#otherIps.get(ip) ?? []) if (user !== key) this.#dirty.add(user)
  }

  #routed(key: string): RoutedService {
    const { services, slices, nodeName, families } = this.#options
    const service = services.get(key)
    const causedMs = this.#caused.get(key) ?? []
    if (service === undefined) return { service: key, routes: new Map(), causedMs }
    const own = slices.by(BY_SERVICE, key)
    const routes = families.map((family): [IpFamily, readonly Route[]] => {
      const vantage = { family, nodeName, zone: this.#zone }
      return [family, routesOf(service, own, vantage).map((route) => this.#withoutTaken(key, route))]
    })
    return { service: key, routes: new Map(routes), causedMs }
  }

  #withoutTaken(key: string, route: Route): Route {
    const isFree = (ip: string): boolean => (this.#clusterIps.get(ip) ?? key) === key
    const { externalIps, loadBalancerIps } = route.port
    if (externalIps.every(isFree) && loadBalancerIps.every(isFree)) return route
    const port = {
      ...route.port,
      externalIps: externalIps.filter(isFree),
      loadBalancerIps: loadBalancerIps.filter(isFree),
    }
    return { ...route, port }
  }
}

const NO_CLAIMS = { cluster: [], others: [] }

function claimsOf({ spec, status }: Service): { readonly cluster: string[]; readonly others: string[] } {
  const ingress = (status?.loadBalancer?.ingress ?? []).flatMap(({ ip }) => ip ?? [])
  return { cluster: spec.clusterIPs ?? [], others: [...(spec.externalIPs ?? []), ...ingress] }
}

/** The annotation with the trigger time of a slice. */
const CAUSED_AT = 'endpoints.kubernetes.io/last-change-trigger-time'

function causeOf({ metadata }: EndpointSlice): number | undefined {
  const time = Date.parse(metadata.annotations?.[CAUSED_AT] ?? '')
  return Number.isNaN(time) ? undefined : time
}
