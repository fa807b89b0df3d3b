import { NetworkPolicies } from '#apis/networking/v1.ts'

import type { Changes, KindCases } from '../case.ts'
import { badMetadataUpdates } from '../metadata.ts'

const port = (wanted: object): Changes => ({ '/spec/ingress/0/ports/0': wanted })
const from = (peer: object): Changes => ({ '/spec/ingress/0/from/0': peer })
const block = (ipBlock: object): Changes => ({ '/spec/egress/0/to/0': { ipBlock } })

export const networkPolicy: KindCases = {
  kind: NetworkPolicies,
  valid: {
    metadata: { name: 'web' },
    spec: {
      podSelector: { matchLabels: { a: 'b' } },
      policyTypes: ['Ingress', 'Egress'],
      ingress: [{ ports: [{ protocol: 'TCP', port: 80 }], from: [{ podSelector: {} }] }],
      egress: [{ ports: [{ port: 80 }], to: [{ ipBlock: { cidr: '10.0.0.0/8', except: ['10.1.0.0/16'] } }] }],
    },
  },
  refused: [
    { why: 'a selector with a bad key', set: { '/spec/podSelector/matchLabels': { 'a b': 'c' } } },
    { why: 'a selector with a bad value', set: { '/spec/podSelector/matchLabels': { a: '-' } } },
    {
      why: 'a selector with an unknown operator',
      set: { '/spec/podSelector': { matchExpressions: [{ key: 'a', operator: 'Like' }] } },
    },
    { why: 'an unknown protocol', set: port({ protocol: 'ICMP', port: 80 }) },
    { why: 'port 0', set: port({ port: 0 }) },
    { why: 'a port too high', set: port({ port: 65_536 }) },
    { why: 'a port with a bad name', set: port({ port: 'A B' }) },
    { why: 'a range that ends before it begins', set: port({ port: 80, endPort: 79 }) },
    { why: 'a range that ends too high', set: port({ port: 80, endPort: 65_536 }) },
    { why: 'a range from a name', set: port({ port: 'http', endPort: 80 }) },
    { why: 'a range from nowhere', set: port({ endPort: 80 }) },
    { why: 'an empty peer', set: from({}) },
    { why: 'a peer of two sorts', set: from({ podSelector: {}, ipBlock: { cidr: '10.0.0.0/8' } }) },
    { why: 'a peer with a bad selector', set: from({ namespaceSelector: { matchLabels: { 'a b': '' } } }) },
    { why: 'an empty block', set: block({}) },
    { why: 'a block without a length', set: block({ cidr: '10.0.0.0' }) },
    { why: 'a block that is not an address', set: block({ cidr: 'x/8' }) },
    { why: 'a block with leading zeros', set: block({ cidr: '010.0.0.0/8' }) },
    { why: 'an exception that is not a block', set: block({ cidr: '10.0.0.0/8', except: ['x'] }) },
    { why: 'exceptions outside', set: block({ cidr: '10.0.0.0/8', except: ['11.0.0.0/16', '10.0.0.0/8'] }) },
    { why: 'an egress port below 0', set: { '/spec/egress/0/ports/0/port': -1 } },
    { why: 'three types', set: { '/spec/policyTypes': ['Ingress', 'Egress', 'Ingress'] } },
    { why: 'an unknown type', set: { '/spec/policyTypes': ['Sideways'] } },
    { why: 'a name with capitals', set: { '/metadata/name': 'Web' } },
    { why: 'the block becomes bad', on: 'update', set: block({ cidr: 'x' }) },
    { why: 'the type becomes invalid', on: 'update', set: { '/spec/policyTypes': ['Sideways'] } },
    ...badMetadataUpdates,
  ],
}
