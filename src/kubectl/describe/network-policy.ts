/** Describes network policies: the traffic that each direction allows. */
import type { NetworkPolicy, NetworkPolicyPeer, NetworkPolicyPort } from '#apis/networking/v1.ts'
import { labelSelectorText } from '#meta/label-selector.ts'

import { nested, type Part } from './rows.ts'
import { annotationRow, labelRow, nameRows, orNone } from './sections.ts'
import { plainDateText } from './times.ts'

export function policyRows(policy: NetworkPolicy): Part[] {
  const { metadata, spec } = policy
  const { podSelector, policyTypes = [], ingress = [], egress = [] } = spec ?? {}
  const selector = labelSelectorText(podSelector)
  const shown =
    selector === '<none>' ? '<none> (Allowing the specific traffic to all pods in this namespace)' : selector
  const incoming = ingress.map(({ ports, from }) => ({ ports, peers: from }))
  const outgoing = egress.map(({ ports, to }) => ({ ports, peers: to }))
  return [
    ...nameRows(policy),
    ['Created on', plainDateText(metadata.creationTimestamp)],
    labelRow('Labels', metadata.labels),
    annotationRow(metadata.annotations),
    [
      'Spec',
      [
        `PodSelector:     ${shown}`,
        ...(policyTypes.includes('Ingress')
          ? ['Allowing ingress traffic:', nested(...ruleRows(incoming, INGRESS))]
          : ['Not affecting ingress traffic']),
        ...(policyTypes.includes('Egress')
          ? ['Allowing egress traffic:', nested(...ruleRows(outgoing, EGRESS))]
          : ['Not affecting egress traffic']),
        `Policy Types: ${orNone(policyTypes, ', ')}`,
      ],
    ],
  ]
}

interface Direction {
  readonly name: string
  readonly word: 'From' | 'To'
  readonly end: string
}

const INGRESS: Direction = { name: 'ingress', word: 'From', end: 'source' }
const EGRESS: Direction = { name: 'egress', word: 'To', end: 'destination' }

interface PolicyRule {
  readonly ports: readonly NetworkPolicyPort[] | undefined
  readonly peers: readonly NetworkPolicyPeer[] | undefined
}

function ruleRows(rules: readonly PolicyRule[], { name, word, end }: Direction): Part[] {
  if (rules.length === 0) return [`<none> (Selected pods are isolated for ${name} connectivity)`]
  return rules.flatMap(({ ports = [], peers = [] }, at) => [
    ports.length === 0 ? 'To Port: <any> (traffic allowed to all ports)' : undefined,
    ...ports.map(portText),
    peers.length === 0 ? `${word}: <any> (traffic not restricted by ${end})` : undefined,
    ...peers.map((peer) => [word, peerRows(peer)] as const),
    at < rules.length - 1 ? '----------' : undefined,
  ])
}

function portText({ port = '<nil>', endPort, protocol = 'TCP' }: NetworkPolicyPort): string {
  return endPort === undefined ? `To Port: ${port}/${protocol}` : `To Port Range: ${port}-${endPort}/${protocol}`
}

function peerRows({ podSelector, namespaceSelector, ipBlock }: NetworkPolicyPeer): Part[] {
  if (namespaceSelector === undefined && podSelector === undefined) {
    return [['IPBlock', ipBlock && [`CIDR: ${ipBlock.cidr}`, `Except: ${(ipBlock.except ?? []).join(', ')}`]]]
  }
  return [
    namespaceSelector && `NamespaceSelector: ${labelSelectorText(namespaceSelector)}`,
    podSelector && `PodSelector: ${labelSelectorText(podSelector)}`,
  ]
}
