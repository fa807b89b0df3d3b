/**
 * Resolves a Service to one of its endpoints for webhooks and aggregated servers. It never uses the cluster IP, because
 * the machine may not be on the cluster's network.
 */
import { Endpoints, type Service, type ServicePort, Services } from '#apis/core/v1.ts'
import { type Endpoint, type EndpointSlice, EndpointSlices } from '#apis/discovery/v1.ts'
import { goQuote } from '#lib/go/text.ts'
import type { Address } from '#lib/http/client.ts'
import type { Random } from '#lib/random.ts'
import { notFoundError, serviceUnavailableError } from '#meta/status-errors.ts'

import type { ObjectReader } from '../registry/resource.ts'

export interface ServiceReference {
  readonly namespace: string
  readonly name: string
  readonly port: number
}

export const SERVICE_NAME = 'kubernetes.io/service-name'

/** A random ready endpoint. Throws StatusError with upstream's text. */
export async function serviceEndpoint(
  objects: ObjectReader,
  reference: ServiceReference,
  random: Random,
): Promise<Address> {
  const { namespace, name } = reference
  const service = await objects.get<Service>(Services, namespace, name)
  const slices = await objects.list(EndpointSlices, namespace)
  const own = slices.filter(({ metadata }) => metadata.labels?.[SERVICE_NAME] === name)
  const endpoints = await objects.get<Endpoints>(Endpoints, namespace, name)
  return addressOf(reference, service, random, { slices: own, ...(endpoints !== undefined && { endpoints }) })
}

/** The candidates of a Service. `endpoints` count if no slice mirrors them. */
export interface ServicePlaces {
  readonly slices: readonly EndpointSlice[]
  readonly endpoints?: Endpoints
}

/** The same, of what is known of the Service. */
export function addressOf(
  { name, port }: ServiceReference,
  service: Service | undefined,
  random: Random,
  { slices, endpoints }: ServicePlaces,
): Address {
  if (service === undefined) throw notFoundError({ group: '', resource: 'service' }, name)
  const { type, externalName = '', ports = [] } = service.spec ?? {}
  if (type === 'ExternalName') return { host: externalName, port }
  const found = ports.find((one) => one.port === port)
  if (found === undefined) throw serviceUnavailableError(`no service port ${port} found for service ${goQuote(name)}`)
  const address = inSlices(slices, service, found, random) ?? inEndpoints(endpoints, found, random)
  if (address === undefined) throw serviceUnavailableError(`no endpoints available for service ${goQuote(name)}`)
  return address
}

/** Endpoints of the Service's first address family are preferred. */
function inSlices(
  slices: readonly EndpointSlice[],
  { spec }: Service,
  wanted: ServicePort,
  random: Random,
): Address | undefined {
  const [family] = spec?.ipFamilies ?? []
  const all = slices.flatMap((slice) => {
    const port = portOf(slice, wanted)
    if (port === undefined) return []
    const ready = (slice.endpoints ?? []).filter(isReady).flatMap(({ addresses }) => addresses.slice(0, 1))
    return ready.map((host) => ({ host, port, addressType: slice.addressType }))
  })
  const preferred = all.filter(({ addressType }) => addressType === family)
  return anyOf(preferred.length > 0 ? preferred : all, random)
}

/** True if an endpoint is ready. */
export function hasEndpoint(slices: readonly EndpointSlice[], wanted: ServicePort): boolean {
  return slices.some((slice) => portOf(slice, wanted) !== undefined && slice.endpoints?.some(isReady) === true)
}

function portOf({ ports }: EndpointSlice, wanted: ServicePort): number | undefined {
  return ports?.find((one) => sameName(one, wanted))?.port
}

/** An endpoint without a condition is ready. */
function isReady({ conditions }: Endpoint): boolean {
  return conditions.ready !== false
}

function inEndpoints(endpoints: Endpoints | undefined, wanted: ServicePort, random: Random): Address | undefined {
  const all = (endpoints?.subsets ?? []).flatMap(({ addresses = [], ports = [] }) => {
    const port = ports.find((one) => sameName(one, wanted))?.port
    return port === undefined ? [] : addresses.map(({ ip: host }) => ({ host, port }))
  })
  return anyOf(all, random)
}

function sameName(port: { readonly name?: string }, { name = '' }: ServicePort): boolean {
  return (port.name ?? '') === name
}

function anyOf(addresses: readonly Address[], random: Random): Address | undefined {
  const chosen = addresses[random.int(addresses.length)]
  return chosen && { host: chosen.host, port: chosen.port }
}
