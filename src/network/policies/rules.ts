/**
 * Writes policies as nftables chains. A forwarded packet passes two base chains: `egress` looks up its source,
 * `ingress` its destination. Each jumps to the chain of the pod's policies, which ends in a drop. An accept ends only
 * one of the two, so a packet needs both.
 */
import { createHash } from 'node:crypto'

import { FAMILIES, type Family } from './pod-facts.ts'
import { type Direction, isEmptyBlock, type NamedPort, type Peer, type PolicyRule, type Ports } from './policy.ts'
import type { ChainState, Match, Rule } from './table.ts'

/** After `filter`, where others may have dropped the packet; ingress after egress. */
const PRIORITY: Readonly<Record<Direction, number>> = { egress: 5, ingress: 6 }

const short = (text: string): string => createHash('sha256').update(text).digest('hex').slice(0, 16)

/** Pod addresses of a peer. */
export const peerSet = (key: string, family: Family): string => `peers${family}-${short(key)}`
/** Addresses and ports with this port name. */
export const namedSet = ({ protocol, name }: NamedPort, family: Family): string =>
  `named${family}-${short(`${protocol} ${name}`)}`
/** The chain of each isolated pod of this node. */
export const podMap = (direction: Direction, family: Family): string => `${direction}${family}`
/** Pairs of each pod of this node with itself. */
export const selfSet = (family: Family): string => `self${family}`
/** Ranges where unassigned addresses are blocked: a starting pod may get any of them. */
export const startingSet = (direction: Direction, family: Family): string => `starting-${direction}${family}`
export const policyChain = (direction: Direction, namespace: string, name: string): string =>
  `policy-${direction}-${short(`${namespace}/${name}`)}`
/** The chain for pods selected by exactly these policies. */
export const isolationChain = (direction: Direction, policies: readonly string[]): string =>
  `pods-${direction}-${short(policies.join(' '))}`

const sideOf = (direction: Direction): 'source' | 'destination' => (direction === 'ingress' ? 'destination' : 'source')
const otherSideOf = (direction: Direction): 'source' | 'destination' =>
  direction === 'ingress' ? 'source' : 'destination'

const ACCEPT = { do: 'accept' } as const
const DROP = { do: 'drop' } as const

/** The base chain for forwarded packets. */
export function entryChain(direction: Direction): ChainState {
  const side = sideOf(direction)
  return {
    priority: PRIORITY[direction],
    rules: [
      // A pod must not send router advertisements, which would redirect the traffic of others (CVE-2020-10749).
      { matches: [{ is: 'router' }], verdict: DROP },
      // Established connections continue after changes; NetworkPolicy leaves that to implementations.
      { matches: [{ is: 'established' }], verdict: ACCEPT },
      { matches: [{ is: 'neighbours' }], verdict: ACCEPT },
      // "A pod cannot block access to itself": through a Service such packets arrive here.
      ...FAMILIES.map((family): Rule => ({ matches: [{ is: 'pair', family, set: selfSet(family) }], verdict: ACCEPT })),
      ...FAMILIES.map((family): Rule => ({
        matches: [],
        verdict: { do: 'look up', family, side, map: podMap(direction, family) },
      })),
      ...FAMILIES.map((family): Rule => ({
        matches: [{ is: 'member', family, side, set: startingSet(direction, family) }],
        verdict: DROP,
      })),
    ],
  }
}

/** `policies` are names of chains. */
export function isolationRules(policies: readonly string[]): readonly Rule[] {
  return [
    ...policies.map((chain): Rule => ({ matches: [], verdict: { do: 'jump', chain } })),
    { matches: [], verdict: DROP },
  ]
}

/** The accept rules of a policy; other packets return to the caller. */
export function policyRules(rules: readonly PolicyRule[], direction: Direction): readonly Rule[] {
  return rules.flatMap(({ peers, ports }) =>
    peerMatches(peers, direction).flatMap((peer) =>
      portMatches(ports).flatMap((port) => {
        const matches = [...peer, ...port]
        return isPossible(matches) ? [{ matches, verdict: ACCEPT }] : []
      }),
    ),
  )
}

function peerMatches(peers: readonly Peer[] | undefined, direction: Direction): readonly (readonly Match[])[] {
  const side = otherSideOf(direction)
  if (peers === undefined) return [[]]
  return peers.flatMap((peer): (readonly Match[])[] => {
    if (peer.kind === 'pods')
      return FAMILIES.map((family) => [{ is: 'member', family, side, set: peerSet(peer.key, family) }])
    return isEmptyBlock(peer) ? [] : [[{ is: 'block', side, block: peer.block, except: peer.except }]]
  })
}

function portMatches(ports: Ports | undefined): readonly (readonly Match[])[] {
  if (ports === undefined) return [[]]
  return [
    ...[...ports.numbers].map(([protocol, ranges]): readonly Match[] => [{ is: 'ports', protocol, ranges }]),
    ...ports.names.flatMap((named) =>
      FAMILIES.map((family): readonly Match[] => [{ is: 'named', family, set: namedSet(named, family) }]),
    ),
  ]
}

/** A packet has only one family. */
function isPossible(matches: readonly Match[]): boolean {
  const families = matches.flatMap((match) => {
    if (match.is === 'block') return [match.block.family]
    return 'family' in match ? [match.family] : []
  })
  return new Set(families).size < 2
}
