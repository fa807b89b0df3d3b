/**
 * Where a Service is, for calls of the server's own: webhooks and aggregated servers. Always one of its endpoints, and
 * never the cluster IP: that works as well where this machine is not on the cluster's network, and for Services without
 * selector whose endpoints somebody wrote by hand.
 */
import { Endpoints, type Service, type ServicePort, Services } from '#apis/core/v1.ts'
import { type Endpoint, type EndpointSlice, EndpointSlices } from '#apis/discovery/v1.ts'
import { goQuote } from '#lib/go-text.ts'
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

/** One of the endpoints that are ready, by chance. Throws StatusError with upstream's words. */
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

/** Where a Service may be. `endpoints` count where nobody has mirrored them into slices. */
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

/** Those of the Service's first address family are preferred. */
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

/** Whether one of the endpoints could be called. */
export function hasEndpoint(slices: readonly EndpointSlice[], wanted: ServicePort): boolean {
  return slices.some((slice) => portOf(slice, wanted) !== undefined && slice.endpoints?.some(isReady) === true)
}

function portOf({ ports }: EndpointSlice, wanted: ServicePort): number | undefined {
  return ports?.find((one) => sameName(one, wanted))?.port
}

/** Who does not say is. */
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
