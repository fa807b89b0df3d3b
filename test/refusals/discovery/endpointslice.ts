import { EndpointSlices } from '#apis/discovery/v1.ts'

import type { Changes, KindCases } from '../case.ts'
import { badMetadataUpdates } from '../metadata.ts'

const addresses = (...list: readonly string[]): Changes => ({ '/endpoints/0/addresses': list })
const names = (count: number): { name: string }[] => Array.from({ length: count }, (_, at) => ({ name: `n${at}` }))

const ADDRESSES = Array.from({ length: 101 }, (_, at) => `10.0.1.${at}`)
const ENDPOINTS = Array.from({ length: 1001 }, (_, at) => ({ addresses: [`10.0.${at >> 8}.${at & 255}`] }))
const PORTS = names(20_001)

export const endpointSlice: KindCases = {
  kind: EndpointSlices,
  valid: {
    metadata: { name: 'web' },
    addressType: 'IPv4',
    ports: [{ name: 'http', port: 80, protocol: 'TCP' }],
    endpoints: [
      {
        addresses: ['10.0.0.9'],
        conditions: { ready: true },
        nodeName: 'n1',
        hostname: 'h',
        hints: { forZones: [{ name: 'z' }] },
      },
    ],
  },
  refused: [
    { why: 'no address type', set: { '/addressType': undefined } },
    { why: 'an unknown address type', set: { '/addressType': 'IP' } },
    { why: 'no addresses', set: addresses() },
    { why: 'missing addresses', set: { '/endpoints/0/addresses': undefined } },
    { why: 'an invalid address', set: addresses('x') },
    { why: 'an address with leading zeros', set: addresses('10.0.0.09') },
    { why: 'an IPv6 address among IPv4', set: addresses('fd00::1') },
    { why: 'an IPv4 address among IPv6', set: { '/addressType': 'IPv6' } },
    { why: 'an IPv6 address that could be shorter', set: { '/addressType': 'IPv6', ...addresses('fd00:0::1') } },
    { why: 'a loopback address', set: addresses('127.0.0.1') },
    { why: 'the unspecified address', set: addresses('0.0.0.0') },
    { why: 'a link-local address', set: addresses('169.254.1.1') },
    { why: 'a multicast address', set: addresses('224.0.0.1') },
    { why: 'a bad host name', set: { '/addressType': 'FQDN', ...addresses('a_b') } },
    { why: 'a host name without a domain', set: { '/addressType': 'FQDN', ...addresses('local') } },
    { why: 'an empty host name', set: { '/addressType': 'FQDN', ...addresses('') } },
    { why: 'too many addresses', set: addresses(...ADDRESSES) },
    { why: 'too many endpoints', set: { '/endpoints': ENDPOINTS } },
    { why: 'too many ports', set: { '/ports': PORTS } },
    { why: 'a node with a bad name', set: { '/endpoints/0/nodeName': 'A_b' } },
    { why: 'a host name with a dot', set: { '/endpoints/0/hostname': 'a.b' } },
    { why: 'a repeated zone', set: { '/endpoints/0/hints/forZones': [{ name: 'z' }, { name: 'z' }] } },
    { why: 'a zone with a space', set: { '/endpoints/0/hints/forZones': [{ name: 'a b' }] } },
    { why: 'too many zones', set: { '/endpoints/0/hints/forZones': names(9) } },
    {
      why: 'repeated and invalid node hints',
      set: { '/endpoints/0/hints': { forNodes: [{ name: 'n' }, { name: 'n' }, { name: 'A_b' }] } },
    },
    { why: 'too many nodes', set: { '/endpoints/0/hints': { forNodes: names(9) } } },
    { why: 'a port with a bad name', set: { '/ports/0/name': 'A_b' } },
    {
      why: 'a repeated port name',
      set: {
        '/ports': [
          { name: 'a', port: 1 },
          { name: 'a', port: 2 },
        ],
      },
    },
    { why: 'two ports without names', set: { '/ports': [{ port: 1 }, { port: 2 }] } },
    { why: 'an unknown protocol', set: { '/ports/0/protocol': 'ICMP' } },
    { why: 'an unknown application protocol', set: { '/ports/0/appProtocol': 'a b' } },
    { why: 'a port that is a text', set: { '/ports/0/port': 'x' } },
    { why: 'a name with capitals', set: { '/metadata/name': 'Web' } },
    { why: 'another address type', on: 'update', set: { '/addressType': 'IPv6', '/endpoints': [] } },
    { why: 'another address type and the old addresses', on: 'update', set: { '/addressType': 'IPv6' } },
    { why: 'the address type is removed', on: 'update', set: { '/addressType': undefined } },
    { why: 'an address becomes bad', on: 'update', set: addresses('x') },
    ...badMetadataUpdates,
  ],
}
