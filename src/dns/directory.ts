/**
 * The index of Services, endpoints and pods by DNS name, updated incrementally. It stores only the fields that answers
 * need. Pure.
 */
import type { Namespace, Service } from '#apis/core/v1.ts'
import type { EndpointSlice } from '#apis/discovery/v1.ts'
import { formatIp, parseIp } from '#lib/net/cidr.ts'

import { isName } from './wire.ts'

export interface NamedPort {
  readonly name: string
  /** In lower case. */
  readonly protocol: string
  /** Undefined: a placeholder for a Service without ports, so that it still has addresses. */
  readonly port: number | undefined
}

export interface ServiceNames {
  /** Cluster IPs; empty for a headless Service or an alias. */
  readonly addresses: readonly string[]
  readonly isHeadless: boolean
  readonly ports: readonly NamedPort[]
  /** The target of an ExternalName. */
  readonly alias: string | undefined
}

export interface Endpoint {
  readonly address: string
  /** The endpoint's hostname below the Service. */
  readonly host: string
}

export interface Slice {
  /** `name.namespace`. */
  readonly service: string
  readonly ports: readonly NamedPort[]
  readonly endpoints: readonly Endpoint[]
}

const SERVICE_NAME = 'kubernetes.io/service-name'
const NO_PORTS: readonly NamedPort[] = [{ name: '', protocol: '', port: undefined }]

export const serviceKey = (name: string, namespace: string): string => `${name}.${namespace}`

export class Directory {
  readonly #namespaces = new Set<string>()
  readonly #services = new Map<string, ServiceNames>()
  readonly #slices = new Map<string, Slice>()
  readonly #slicesOf = new Map<string, readonly Slice[]>()
  readonly #serviceAt = new Map<string, string>()
  readonly #slicesAt = new Map<string, readonly Slice[]>()
  /** Shares equal port lists, of which there are few. */
  readonly #ports = new Map<string, readonly NamedPort[]>()
  /** The number of changes. */
  version = 0

  setNamespace({ metadata: { name = '' } }: Namespace): void {
    if (this.#namespaces.has(name)) return
    this.#namespaces.add(name)
    this.version++
  }

  removeNamespace(name: string): void {
    if (this.#namespaces.delete(name)) this.version++
  }

  hasNamespace(name: string): boolean {
    return this.#namespaces.has(name)
  }

  setService(service: Service): void {
    const { name = '', namespace = '' } = service.metadata
    const key = serviceKey(name, namespace)
    const fresh = namesOf(service, (ports) => this.#shared(ports))
    const stored = this.#services.get(key)
    // Most updates do not affect DNS data.
    if (stored !== undefined && JSON.stringify(stored) === JSON.stringify(fresh)) return
    this.#dropService(key)
    this.#services.set(key, fresh)
    for (const address of fresh.addresses) this.#serviceAt.set(address, key)
    this.version++
  }

  removeService(name: string, namespace: string): void {
    if (this.#dropService(serviceKey(name, namespace))) this.version++
  }

  #dropService(key: string): boolean {
    for (const address of this.#services.get(key)?.addresses ?? [])
      // Another Service may have the address by now.
      if (this.#serviceAt.get(address) === key) this.#serviceAt.delete(address)
    return this.#services.delete(key)
  }

  service(key: string): ServiceNames | undefined {
    return this.#services.get(key)
  }

  setSlice(slice: EndpointSlice): void {
    const { name = '', namespace = '', labels = {} } = slice.metadata
    const key = `${namespace}/${name}`
    const service = labels[SERVICE_NAME]
    const stored = this.#slices.get(key)
    const fresh =
      service === undefined || slice.addressType === 'FQDN'
        ? undefined
        : sliceOf(slice, serviceKey(service, namespace), (ports) => this.#shared(ports))
    if (stored === undefined && fresh === undefined) return
    if (stored !== undefined && fresh !== undefined && isSameSlice(stored, fresh)) return
    this.#dropSlice(key)
    if (fresh !== undefined) this.#addSlice(key, fresh)
    this.version++
  }

  removeSlice(name: string, namespace: string): void {
    if (this.#dropSlice(`${namespace}/${name}`)) this.version++
  }

  #addSlice(key: string, slice: Slice): void {
    this.#slices.set(key, slice)
    this.#slicesOf.set(slice.service, [...(this.#slicesOf.get(slice.service) ?? []), slice])
    for (const address of addressesOf(slice))
      this.#slicesAt.set(address, [...(this.#slicesAt.get(address) ?? []), slice])
  }

  #dropSlice(key: string): boolean {
    const slice = this.#slices.get(key)
    if (slice === undefined) return false
    without(this.#slicesOf, slice.service, slice)
    for (const address of addressesOf(slice)) without(this.#slicesAt, address, slice)
    return this.#slices.delete(key)
  }

  slicesOf(service: string): readonly Slice[] {
    return this.#slicesOf.get(service) ?? []
  }

  /** The Service with this cluster IP, as `name.namespace`. */
  serviceAt(address: string): string | undefined {
    return this.#serviceAt.get(address)
  }

  /** Slices with an endpoint of that address. */
  slicesAt(address: string): readonly Slice[] {
    return this.#slicesAt.get(address) ?? []
  }

  /** The keys of all stored objects. */
  stored(kind: 'namespaces' | 'services' | 'slices'): Iterable<readonly [name: string, namespace: string]> {
    if (kind === 'namespaces') return Array.from(this.#namespaces, (name) => [name, ''] as const)
    if (kind === 'services') return Array.from(this.#services.keys(), (key) => cut(key, '.'))
    return Array.from(this.#slices.keys(), (key) => cut(key, '/').toReversed() as [string, string])
  }

  #shared(ports: readonly NamedPort[]): readonly NamedPort[] {
    const key = JSON.stringify(ports)
    const known = this.#ports.get(key)
    if (known !== undefined) return known
    // Bounds the cache against many different port lists.
    if (this.#ports.size >= MAX_SHARED_PORTS) this.#ports.clear()
    this.#ports.set(key, ports)
    return ports
  }
}

const MAX_SHARED_PORTS = 10_000

function cut(key: string, by: string): [string, string] {
  const at = key.indexOf(by)
  return [key.slice(0, at), key.slice(at + 1)]
}

function without(map: Map<string, readonly Slice[]>, key: string, slice: Slice): void {
  const rest = (map.get(key) ?? []).filter((other) => other !== slice)
  if (rest.length > 0) map.set(key, rest)
  else map.delete(key)
}

const addressesOf = ({ endpoints }: Slice): Set<string> => new Set(endpoints.map(({ address }) => address))

type SharePorts = (ports: readonly NamedPort[]) => readonly NamedPort[]

function namesOf({ spec }: Service, share: SharePorts): ServiceNames {
  const { clusterIP = '', clusterIPs = clusterIP === '' ? [] : [clusterIP], externalName = '', ports = [] } = spec
  const isAlias = spec.type === 'ExternalName'
  const isHeadless = !isAlias && clusterIPs[0] === 'None'
  const named = ports.map(({ name = '', protocol = 'TCP', port }) => ({ name, protocol: protocol.toLowerCase(), port }))
  const alias = externalName.toLowerCase().replace(/\.$/, '')
  return {
    addresses: isAlias || isHeadless ? [] : clusterIPs.map(canonical),
    isHeadless,
    ports: share(named.length === 0 ? NO_PORTS : named),
    alias: isAlias && isName(alias) ? alias : undefined,
  }
}

function sliceOf({ endpoints, ports }: EndpointSlice, service: string, share: SharePorts): Slice {
  const named = (ports ?? []).map(({ name = '', protocol = '', port }) => ({
    name,
    protocol: protocol.toLowerCase(),
    port,
  }))
  const ready = (endpoints ?? []).filter(({ conditions }) => conditions?.ready ?? true)
  return {
    service,
    ports: share(named.length === 0 ? NO_PORTS : named),
    endpoints: ready.flatMap(({ addresses, hostname = '' }) =>
      addresses.map((text) => {
        const address = canonical(text)
        return { address, host: hostname === '' ? hostOf(address) : hostname.toLowerCase() }
      }),
    ),
  }
}

const isSameSlice = (one: Slice, other: Slice): boolean =>
  one.service === other.service &&
  one.ports === other.ports &&
  one.endpoints.length === other.endpoints.length &&
  one.endpoints.every(
    ({ address, host }, nth) => other.endpoints[nth]?.address === address && other.endpoints[nth].host === host,
  )

/** Addresses are looked up by canonical text. */
function canonical(text: string): string {
  const ip = text.includes(':') ? parseIp(text, { sloppy: true }) : undefined
  return ip === undefined ? text : formatIp(ip)
}

/** The default hostname of an endpoint: its address with dashes. */
export function hostOf(address: string): string {
  const dashed = address.replaceAll(/[.:]/g, '-')
  // A label must not end in a dash.
  return dashed.endsWith('-') ? `${dashed}0` : dashed
}
