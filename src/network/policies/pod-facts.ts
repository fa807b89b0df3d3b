/** Extracts the fields of a Pod that affect its traffic. Other changes cause no work. */
import type { Pod } from '#apis/core/v1.ts'
import { formatIp, parseIp } from '#lib/net/cidr.ts'
import type { Labels } from '#meta/labels.ts'
import { objectKey } from '#meta/object.ts'
import { isTerminal } from '#model/pods.ts'

import type { Protocol } from './policy.ts'

export type Family = 4 | 6
export const FAMILIES: readonly Family[] = [4, 6]

export interface PodAddress {
  readonly family: Family
  /** In canonical form, as nft writes it. */
  readonly text: string
}

export interface PodPort {
  readonly name: string
  readonly protocol: Protocol
  readonly number: number
}

export interface PodFacts {
  readonly key: string
  readonly namespace: string
  readonly labels: Labels
  readonly addresses: readonly PodAddress[]
  /** Named ports. */
  readonly ports: readonly PodPort[]
  /** It runs or will run on this node. */
  readonly isLocal: boolean
}

/**
 * Undefined for pods without policies: terminated ones have released their address, and host-network pods have none;
 * upstream leaves the latter to the node's rules.
 */
export function podFacts(pod: Pod, node: string): PodFacts | undefined {
  const { spec, status, metadata } = pod
  if (spec.hostNetwork === true || isTerminal(pod)) return undefined
  const isLocal = spec.nodeName === node
  const addresses = addressesOf(status)
  if (addresses.length === 0 && !isLocal) return undefined
  return {
    key: objectKey(pod),
    namespace: metadata.namespace ?? '',
    labels: metadata.labels,
    addresses,
    ports: portsOf(spec),
    isLocal,
  }
}

function addressesOf(status: Pod['status']): readonly PodAddress[] {
  const { podIPs, podIP } = status ?? {}
  const texts = podIPs?.map(({ ip }) => ip) ?? [podIP]
  return texts.flatMap((text) => {
    const ip = parseIp(text ?? '', { sloppy: true })
    return ip === undefined ? [] : [{ family: ip.family, text: formatIp(ip) }]
  })
}

function portsOf({ containers, initContainers = [] }: Pod['spec']): readonly PodPort[] {
  const sidecars = initContainers.filter(({ restartPolicy }) => restartPolicy === 'Always')
  return [...containers, ...sidecars]
    .flatMap(({ ports = [] }) => ports)
    .flatMap(({ name = '', protocol = 'TCP', containerPort }) =>
      name === '' ? [] : [{ name, protocol: protocol.toLowerCase() as Protocol, number: containerPort }],
    )
}

export function isAlike(one: PodFacts, other: PodFacts): boolean {
  return one === other || JSON.stringify(one) === JSON.stringify(other)
}
