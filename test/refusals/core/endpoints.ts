import { Endpoints } from '#apis/core/v1.ts'

import type { KindCases } from '../case.ts'

const SUBSET = '/subsets/0'

export const endpoints: KindCases = {
  kind: Endpoints,
  valid: {
    metadata: { name: 'web' },
    subsets: [
      {
        addresses: [{ ip: '10.1.2.3' }],
        ports: [
          { name: 'http', port: 80 },
          { name: 'https', port: 443 },
        ],
      },
    ],
  },
  refused: [
    { why: 'the name has capitals', set: { '/metadata/name': 'Web' } },
    { why: 'a subset has no addresses', set: { [`${SUBSET}/addresses`]: [] } },
    { why: 'an address is missing', set: { [`${SUBSET}/addresses/0/ip`]: '' } },
    { why: 'an address is none', set: { [`${SUBSET}/addresses/0/ip`]: '10.1.2' } },
    { why: 'an address has leading zeros', set: { [`${SUBSET}/addresses/0/ip`]: '010.001.002.003' } },
    { why: 'an address is loopback', set: { [`${SUBSET}/addresses/0/ip`]: '127.0.0.1' } },
    { why: 'an address is link-local', set: { [`${SUBSET}/addresses/0/ip`]: '169.254.1.1' } },
    { why: 'an address is multicast', set: { [`${SUBSET}/addresses/0/ip`]: '224.0.0.1' } },
    { why: 'an address is unspecified', set: { [`${SUBSET}/addresses/0/ip`]: '0.0.0.0' } },
    { why: 'a hostname has a dot', set: { [`${SUBSET}/addresses/0/hostname`]: 'a.b' } },
    { why: 'a node name has capitals', set: { [`${SUBSET}/addresses/0/nodeName`]: 'Node' } },
    { why: 'a port is too high', set: { [`${SUBSET}/ports/0/port`]: 65_536 } },
    { why: 'a port is missing', set: { [`${SUBSET}/ports/0/port`]: undefined } },
    { why: 'a protocol is unknown', set: { [`${SUBSET}/ports/0/protocol`]: 'HTTP' } },
    { why: 'a port of several has no name', set: { [`${SUBSET}/ports/0/name`]: undefined } },
    { why: 'a port name has capitals', set: { [`${SUBSET}/ports/0/name`]: 'HTTP' } },
    { why: 'an application protocol has spaces', set: { [`${SUBSET}/ports/0/appProtocol`]: 'a b' } },
    { why: 'an address becomes loopback', on: 'update', set: { [`${SUBSET}/addresses/0/ip`]: '127.0.0.1' } },
    { why: 'a port becomes invalid', on: 'update', set: { [`${SUBSET}/ports/0/port`]: 0 } },
  ],
  taken: [
    {
      why: 'a node name changes',
      on: 'update',
      stored: { [`${SUBSET}/addresses/0/nodeName`]: 'one' },
      set: { [`${SUBSET}/addresses/0/nodeName`]: 'two' },
    },
    {
      why: 'the time of the last change is none',
      set: { '/metadata/annotations': { 'endpoints.kubernetes.io/last-change-trigger-time': 'now' } },
    },
  ],
}
