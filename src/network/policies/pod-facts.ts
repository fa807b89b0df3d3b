/** What of a Pod decides about its traffic. Everything else about it may change without anybody here looking at it again. */
import type { Pod } from '#apis/core/v1.ts'
import { formatIp, parseIp } from '#lib/cidr.ts'
import type { Labels } from '#meta/labels.ts'
import { objectKey } from '#meta/object.ts'
import { isTerminal } from '#model/pods.ts'

import type { Protocol } from './policy.ts'

export type Family = 4 | 6
export const FAMILIES: readonly Family[] = [4, 6]

export interface PodAddress {
  readonly family: Family
  /** As nft and everybody else writes it. */
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
  /** Those that have a name. */
  readonly ports: readonly PodPort[]
  /** It runs, or will, on the node whose rules these are. */
  readonly isLocal: boolean
}

/**
 * Undefined for pods that no policy concerns: one that has ended has given its address back, and one on the network of its node
 * has none of its own; upstream leaves those to the node's own rules.
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
