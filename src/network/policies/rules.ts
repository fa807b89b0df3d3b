/**
 * Policies as chains of nftables. A packet that is forwarded passes two chains of its own accord: `egress` looks up who sends it, `ingress`
 * who gets it, and each leads to the chain of those policies that select the pod, where whatever no policy lets through ends.
 * "Accept" is the last word of one of the two, not of both, so that a packet must be let out and let in.
 */
import { createHash } from 'node:crypto'

import { FAMILIES, type Family } from './pod-facts.ts'
import { type Direction, isEmptyBlock, type NamedPort, type Peer, type PolicyRule, type Ports } from './policy.ts'
import type { ChainState, Match, Rule } from './table.ts'

/** Behind `filter`, where others may have refused already; the second of the two behind the first. */
const PRIORITY: Readonly<Record<Direction, number>> = { egress: 5, ingress: 6 }

const short = (text: string): string => createHash('sha256').update(text).digest('hex').slice(0, 16)

/** Addresses of pods that a peer names. */
export const peerSet = (key: string, family: Family): string => `peers${family}-${short(key)}`
/** Where ports of this name are. */
export const namedSet = ({ protocol, name }: NamedPort, family: Family): string =>
  `named${family}-${short(`${protocol} ${name}`)}`
/** Which chain decides about a pod of this node. */
export const podMap = (direction: Direction, family: Family): string => `${direction}${family}`
/** Pods of this node with themselves. */
export const selfSet = (family: Family): string => `self${family}`
/** Addresses of which all that no pod is known to have are shut: one that starts may have any of them. */
export const startingSet = (direction: Direction, family: Family): string => `starting-${direction}${family}`
export const policyChain = (direction: Direction, namespace: string, name: string): string =>
  `policy-${direction}-${short(`${namespace}/${name}`)}`
/** Of all who are selected by just these policies. */
export const isolationChain = (direction: Direction, policies: readonly string[]): string =>
  `pods-${direction}-${short(policies.join(' '))}`

const sideOf = (direction: Direction): 'source' | 'destination' => (direction === 'ingress' ? 'destination' : 'source')
const otherSideOf = (direction: Direction): 'source' | 'destination' =>
  direction === 'ingress' ? 'source' : 'destination'

const ACCEPT = { do: 'accept' } as const
const DROP = { do: 'drop' } as const

/** Where every packet that is forwarded comes by. */
export function entryChain(direction: Direction): ChainState {
  const side = sideOf(direction)
  return {
    priority: PRIORITY[direction],
    rules: [
      // Routers are never behind a bridge: a pod that says to be one would have the traffic of all others (CVE-2020-10749).
      { matches: [{ is: 'router' }], verdict: DROP },
      // What was let through once keeps going, whatever changes meanwhile: NetworkPolicy leaves that to who implements it.
      { matches: [{ is: 'established' }], verdict: ACCEPT },
      { matches: [{ is: 'neighbours' }], verdict: ACCEPT },
      // "A pod cannot block access to itself": by way of a Service, such packets come here.
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

/** What a policy lets through; whoever falls out of its chain was not meant. */
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

/** No packet is of both families. */
function isPossible(matches: readonly Match[]): boolean {
  const families = matches.flatMap((match) => {
    if (match.is === 'block') return [match.block.family]
    return 'family' in match ? [match.family] : []
  })
  return new Set(families).size < 2
}
