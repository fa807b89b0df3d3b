/** Finds the endpoints of a Service port. Pure. */
import type { Service, ServicePort } from '#apis/core/v1.ts'
import type { EndpointSlice } from '#apis/discovery/v1.ts'

import type { Backend } from './routes.ts'

/** `10.42.1.5:8080`, sorted and without duplicates. Terminating pods only if there are no others. */
export function endpointsOf(
  { port }: Pick<Backend, 'port'>,
  service: Service | undefined,
  slices: readonly EndpointSlice[],
): readonly string[] {
  const wanted = service?.spec.ports?.find((each) => each.port === port || each.name === port)
  if (service === undefined || wanted === undefined || (wanted.protocol ?? 'TCP') !== 'TCP') return []
  if (service.spec.type === 'ExternalName') return externalOf(service, wanted)
  const all = slices
    .filter(({ addressType }) => addressType !== 'FQDN')
    .flatMap(({ endpoints, ports }) => {
      const own = (ports ?? []).find(({ name = '' }) => name === (wanted.name ?? ''))?.port
      return (endpoints ?? []).flatMap(({ addresses, conditions }) =>
        own === undefined ? [] : addresses.map((address) => ({ text: hostPort(address, own), conditions })),
      )
    })
  const ready = all.filter(({ conditions }) => conditions?.ready ?? true)
  const serving = all.filter(({ conditions }) => conditions?.serving ?? false)
  return [...new Set((ready.length > 0 ? ready : serving).map(({ text }) => text))].toSorted()
}

function externalOf({ spec: { externalName = '' } }: Service, { port }: ServicePort): readonly string[] {
  return externalName === '' ? [] : [hostPort(externalName, port)]
}

function hostPort(host: string, port: number): string {
  return `${host.includes(':') ? `[${host}]` : host}:${port}`
}
