/**
 * A parsed NetworkPolicy: selectors, blocks, ports and defaults. An invalid part (the API server rejects it, but old
 * objects may have it) allows nothing: an isolating policy must fail closed.
 */
import type {
  NetworkPolicy,
  NetworkPolicyEgressRule,
  NetworkPolicyIngressRule,
  NetworkPolicyPeer,
  NetworkPolicyPort,
} from '#apis/networking/v1.ts'
import { type Cidr, contains, parseCidr } from '#lib/net/cidr.ts'
import { asSelector, type LabelSelector } from '#meta/label-selector.ts'
import { nothing, type Selector, selectorText } from '#meta/labels.ts'

export type Direction = 'ingress' | 'egress'
export const DIRECTIONS: readonly Direction[] = ['ingress', 'egress']

export type Protocol = 'tcp' | 'udp' | 'sctp'

/** First and last. */
export type PortRange = readonly [number, number]

export interface PodPeer {
  readonly kind: 'pods'
  /** The only namespace of its pods; undefined: those that `namespaces` selects. */
  readonly namespace: string | undefined
  readonly namespaces: Selector
  readonly pods: Selector
  /** Peers with the same key select the same pods. */
  readonly key: string
}

export interface BlockPeer {
  readonly kind: 'block'
  readonly block: Cidr
  readonly except: readonly Cidr[]
}

export type Peer = PodPeer | BlockPeer

/** A named port: its number comes from the destination pod. */
export interface NamedPort {
  readonly protocol: Protocol
  readonly name: string
}

export interface Ports {
  /** An empty list means any port of the protocol. */
  readonly numbers: ReadonlyMap<Protocol, readonly PortRange[]>
  readonly names: readonly NamedPort[]
}

export interface PolicyRule {
  /** Undefined: any peer. */
  readonly peers: readonly Peer[] | undefined
  /** Undefined: all ports of all protocols. */
  readonly ports: Ports | undefined
}

export interface Policy {
  readonly namespace: string
  readonly name: string
  readonly pods: Selector
  /** By direction; the policy does not apply to a missing direction. */
  readonly rules: Readonly<Partial<Record<Direction, readonly PolicyRule[]>>>
}

const PROTOCOLS: Readonly<Record<string, Protocol>> = { TCP: 'tcp', UDP: 'udp', SCTP: 'sctp' }

export function readPolicy({ metadata, spec }: NetworkPolicy): Policy {
  const { namespace = '', name = '' } = metadata
  const types = spec.policyTypes ?? []
  // The API server's default.
  const concerns = types.length > 0 ? types : ['Ingress', ...((spec.egress ?? []).length > 0 ? ['Egress'] : [])]
  const of = (rules: readonly (NetworkPolicyIngressRule & NetworkPolicyEgressRule)[] = []): readonly PolicyRule[] =>
    rules.map(({ from, to, ports }) => ({
      peers: readPeers(from ?? to, namespace),
      ports: readPorts(ports),
    }))
  return {
    namespace,
    name,
    pods: readSelector(spec.podSelector) ?? nothing,
    rules: {
      ...(concerns.includes('Ingress') && { ingress: of(spec.ingress) }),
      ...(concerns.includes('Egress') && { egress: of(spec.egress) }),
    },
  }
}

function readSelector(selector: LabelSelector | undefined): Selector | undefined {
  try {
    return asSelector(selector)
  } catch {
    return undefined
  }
}

function readPeers(peers: readonly NetworkPolicyPeer[] = [], namespace: string): readonly Peer[] | undefined {
  return peers.length === 0 ? undefined : peers.flatMap((peer) => readPeer(peer, namespace) ?? [])
}

function readPeer(peer: NetworkPolicyPeer, namespace: string): Peer | undefined {
  if (peer.ipBlock !== undefined) return readBlock(peer.ipBlock)
  const [namespaces, pods] = [peer.namespaceSelector, peer.podSelector ?? {}].map(readSelector)
  if (namespaces === undefined || pods === undefined) return undefined
  const own = peer.namespaceSelector === undefined ? namespace : undefined
  const key = JSON.stringify([own ?? null, selectorText(namespaces), selectorText(pods)])
  return { kind: 'pods', namespace: own, namespaces, pods, key }
}

function readBlock({
  cidr,
  except = [],
}: {
  readonly cidr: string
  readonly except?: readonly string[]
}): Peer | undefined {
  const [block, ...holes] = [cidr, ...except].map((text) => parseCidr(text, { sloppy: true }))
  if (block === undefined || holes.includes(undefined)) return undefined
  return {
    kind: 'block',
    block,
    except: holes.filter((hole) => hole !== undefined && hole.family === block.family) as Cidr[],
  }
}

function readPorts(ports: readonly NetworkPolicyPort[] = []): Ports | undefined {
  if (ports.length === 0) return undefined
  const ranges = new Map<Protocol, PortRange[] | 'any'>()
  const names: NamedPort[] = []
  for (const { protocol: protocolName = 'TCP', port, endPort } of ports) {
    const protocol = PROTOCOLS[protocolName]
    if (protocol === undefined) continue
    if (typeof port === 'string') names.push({ protocol, name: port })
    else if (port === undefined) ranges.set(protocol, 'any')
    else {
      const found = ranges.get(protocol) ?? []
      if (found !== 'any') ranges.set(protocol, [...found, [port, Math.max(port, endPort ?? port)]])
    }
  }
  const numbers = new Map(
    [...ranges].map(([protocol, found]) => [protocol, found === 'any' ? [] : joined(found)] as const),
  )
  return { numbers, names }
}

/** Sorted and disjoint. */
function joined(ranges: readonly PortRange[]): readonly PortRange[] {
  const found: [number, number][] = []
  for (const [first, last] of [...ranges].sort(([one], [other]) => one - other)) {
    const before = found.at(-1)
    if (before !== undefined && first <= before[1] + 1) before[1] = Math.max(before[1], last)
    else found.push([first, last])
  }
  return found
}

/** Whether the exceptions cover the whole block. */
export function isEmptyBlock({ block, except }: BlockPeer): boolean {
  return except.some(
    (hole) => hole.prefixLength <= block.prefixLength && contains(hole, { family: block.family, value: block.base }),
  )
}
