/**
 * Where a Service is, for calls of the server's own: webhooks and aggregated servers. Always one of its endpoints, and
 * never the cluster IP: that works as well where this machine is not on the cluster's network, and for Services without
 * selector whose endpoints somebody wrote by hand.
 */
import { Endpoints, type Service, type ServicePort, Services } from '#apis/core/v1.ts'
import { EndpointSlices } from '#apis/discovery/v1.ts'
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

const SERVICE_NAME = 'kubernetes.io/service-name'

/** One of the endpoints that are ready, by chance. Throws StatusError with upstream's words. */
export async function serviceEndpoint(
  objects: ObjectReader,
  { namespace, name, port }: ServiceReference,
  random: Random,
): Promise<Address> {
  const service = await objects.get<Service>(Services, namespace, name)
  if (service === undefined) throw notFoundError({ group: '', resource: 'service' }, name)
  const { type, externalName = '', ports = [] } = service.spec ?? {}
  if (type === 'ExternalName') return { host: externalName, port }
  const found = ports.find((one) => one.port === port)
  if (found === undefined) throw serviceUnavailableError(`no service port ${port} found for service ${goQuote(name)}`)
  const address =
    (await inSlices(objects, service, found, random)) ?? (await inEndpoints(objects, service, found, random))
  if (address === undefined) throw serviceUnavailableError(`no endpoints available for service ${goQuote(name)}`)
  return address
}

/** Those of the Service's first address family are preferred. */
async function inSlices(
  objects: ObjectReader,
  { metadata: { namespace = '', name }, spec }: Service,
  wanted: ServicePort,
  random: Random,
): Promise<Address | undefined> {
  const slices = await objects.list(EndpointSlices, namespace)
  const own = slices.filter(({ metadata }) => metadata.labels?.[SERVICE_NAME] === name)
  const [family] = spec?.ipFamilies ?? []
  const all = own.flatMap(({ addressType, ports, endpoints }) => {
    const port = ports?.find((one) => sameName(one, wanted))?.port
    if (port === undefined) return []
    return (endpoints ?? []).flatMap(({ conditions, addresses }) => {
      const host = addresses[0]
      return host === undefined || conditions.ready === false ? [] : [{ host, port, addressType }]
    })
  })
  const preferred = all.filter(({ addressType }) => addressType === family)
  return anyOf(preferred.length > 0 ? preferred : all, random)
}

/** Endpoints that nobody has mirrored into slices. */
async function inEndpoints(
  objects: ObjectReader,
  { metadata: { namespace = '', name = '' } }: Service,
  wanted: ServicePort,
  random: Random,
): Promise<Address | undefined> {
  const endpoints = await objects.get<Endpoints>(Endpoints, namespace, name)
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
