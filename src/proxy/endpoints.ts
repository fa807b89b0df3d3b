/** Collects the endpoints of a Service port from its EndpointSlices. Pure. */
import type { EndpointConditions, Endpoint as SliceEndpoint, EndpointSlice } from '#apis/discovery/v1.ts'
import type { IpFamily } from '#model/services.ts'

import { harmlessIp, isPort, protocolOf, type ServicePort } from './service-port.ts'

export interface Endpoint {
  readonly ip: string
  readonly port: number
  /** On this node. */
  readonly isLocal: boolean
  readonly isReady: boolean
  readonly isServing: boolean
  readonly isTerminating: boolean
  readonly zoneHints: readonly string[]
  readonly nodeHints: readonly string[]
}

export interface Vantage {
  readonly family: IpFamily
  readonly nodeName: string
  /** The zone of the node; empty if unknown. */
  readonly zone: string
}

const NONE: readonly string[] = []

/** Sorted by the text of address and port as upstream, without duplicates. Skips invalid endpoints. */
export function endpointsOf(
  slices: readonly EndpointSlice[],
  { portName, protocol }: Pick<ServicePort, 'portName' | 'protocol'>,
  vantage: Pick<Vantage, 'family' | 'nodeName'>,
): Endpoint[] {
  const found = new Map<string, Endpoint>()
  for (const { addressType, ports, endpoints } of slices) {
    if (addressType !== vantage.family) continue
    for (const { name = '', protocol: text, port } of ports ?? []) {
      if (name !== portName || protocolOf(text) !== protocol || !isPort(port)) continue
      for (const one of endpoints ?? []) take(found, endpointOf(one, port, vantage))
    }
  }
  return Array.from(found.keys())
    .sort()
    .map((key) => found.get(key) as Endpoint)
}

/** A terminating pod may still be listed when another has its address: the latter counts. */
function take(found: Map<string, Endpoint>, endpoint: Endpoint | undefined): void {
  if (endpoint === undefined) return
  const key = destination(endpoint)
  if (!found.has(key) || !endpoint.isTerminating) found.set(key, endpoint)
}

/** `10.0.0.1:80`, `[fd00::1]:80`. */
export function destination({ ip, port }: Pick<Endpoint, 'ip' | 'port'>): string {
  return ip.includes(':') ? `[${ip}]:${port}` : `${ip}:${port}`
}

function endpointOf(
  { addresses, conditions, nodeName, hints }: SliceEndpoint,
  port: number,
  { family, nodeName: own }: Pick<Vantage, 'family' | 'nodeName'>,
): Endpoint | undefined {
  // As upstream, only the first address.
  const ip = harmlessIp(addresses[0] ?? '', family)
  if (ip === undefined) return undefined
  return {
    ip,
    port,
    isLocal: own !== '' && nodeName === own,
    ...conditionsOf(conditions),
    zoneHints: namesOf(hints?.forZones),
    nodeHints: namesOf(hints?.forNodes),
  }
}

/** Missing conditions count as true. */
function conditionsOf(
  conditions: EndpointConditions | undefined,
): Pick<Endpoint, 'isReady' | 'isServing' | 'isTerminating'> {
  const { ready = true, serving = true, terminating = false } = conditions ?? {}
  return { isReady: ready, isServing: serving, isTerminating: terminating }
}

function namesOf(hints: readonly { readonly name: string }[] | undefined): readonly string[] {
  return hints === undefined ? NONE : hints.map(({ name }) => name)
}
