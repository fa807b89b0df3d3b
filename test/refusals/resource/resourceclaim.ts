import { ResourceClaims } from '#apis/resource/v1.ts'

import { type Changes, type Json, type KindCases, type Refusal, type Since, withChanges } from '../case.ts'
import { badMetadataUpdates } from '../metadata.ts'
import { shownAs } from '../our-words.ts'
import { badClaims, claimSpec, manyTolerations } from './device-requests.ts'

const result = { request: 'gpu', driver: 'gpu.example.com', pool: 'pool-1', device: 'dev-1' }
const device = { driver: 'gpu.example.com', pool: 'pool-1', device: 'dev-1' }
const consumer = { resource: 'pods', name: 'p', uid: 'u1' }

const allocation = (members: object = {}): Json => ({ devices: { results: [result] }, ...members })
const allocated = (members: object): Changes => ({ '/status': { allocation: allocation(members) } })
const resulted = (members: object): Changes => allocated({ devices: { results: [{ ...result, ...members }] } })
const configured = (members: object): Changes =>
  allocated({
    devices: {
      results: [result],
      config: [{ source: 'FromClaim', opaque: { driver: 'a.b', parameters: {} }, ...members }],
    },
  })
const reserved = (...reservedFor: readonly object[]): Changes => ({
  '/status': { allocation: allocation(), reservedFor },
})
const told = (...devices: readonly object[]): Changes => ({ '/status': { allocation: allocation(), devices } })
const network = (networkData: object): Changes => told({ ...device, networkData })

const wasAllocated: Since = { on: 'update status', set: allocated({}) }
const many = (count: number): object[] =>
  Array.from({ length: count }, (_, at) => ({ resource: 'pods', name: `p${at}`, uid: `u${at}` }))

const badResults: readonly Refusal[] = [
  { why: 'a result for an unknown request', set: resulted({ request: 'x' }) },
  { why: 'a result for no request', set: resulted({ request: '' }) },
  { why: 'a result of no driver', set: resulted({ driver: '' }) },
  { why: 'a result of a driver with a bad name', set: resulted({ driver: 'a_b' }) },
  { why: 'a result of no pool', set: resulted({ pool: '' }) },
  { why: 'a result of a pool with a bad name', set: resulted({ pool: 'a/B_c' }) },
  { why: 'a result of a pool too long', set: resulted({ pool: 'a'.repeat(254) }) },
  { why: 'a result of no device', set: resulted({ device: '' }) },
  { why: 'a result of a device with a bad name', set: resulted({ device: 'a.b' }) },
  { why: 'a result whose share ID is not a UUID', set: resulted({ shareID: 'x' }) },
  { why: 'a result with half the binding conditions', set: resulted({ bindingConditions: ['ready'] }) },
  {
    why: 'a result with a repeated condition',
    set: resulted({ bindingConditions: ['a', 'a'], bindingFailureConditions: ['b', 'a'] }),
  },
  { why: 'a result with too many conditions', set: resulted({ bindingConditions: ['a', 'b', 'c', 'd', 'e'] }) },
  { why: 'a configuration from nowhere', set: configured({ source: '' }) },
  { why: 'a configuration from elsewhere', set: configured({ source: 'FromElsewhere' }) },
  { why: 'a configuration for an unknown request', set: configured({ requests: ['x'] }) },
  { why: 'an empty configuration', set: configured({ opaque: undefined }) },
  { why: 'nodes by no term', set: allocated({ nodeSelector: { nodeSelectorTerms: [] } }) },
  {
    why: 'nodes by a bad term',
    set: allocated({
      nodeSelector: { nodeSelectorTerms: [{ matchExpressions: [{ key: 'a b', operator: 'Exists' }] }] },
    }),
  },
]

const badStatuses: readonly Refusal[] = [
  ...badResults,
  { why: 'reserved but not allocated', set: { '/status': { reservedFor: [consumer] } } },
  { why: 'reserved for an empty consumer', set: reserved({}) },
  { why: 'repeated reservation', set: reserved(consumer, consumer) },
  { why: 'reserved for too many', set: reserved(...many(257)) },
  {
    why: 'a device that is not allocated',
    set: told({ ...device, device: 'dev-2' }),
    ...shownAs('gpu.example.com/pool-1/dev-2'),
  },
  { why: 'a device of no driver', set: told({ ...device, driver: '' }), ...shownAs('/pool-1/dev-1') },
  { why: 'a device of no pool', set: told({ ...device, pool: '' }), ...shownAs('gpu.example.com//dev-1') },
  { why: 'data that are a list', set: told({ ...device, data: [1] }) },
  { why: 'data too long', set: told({ ...device, data: { a: 'x'.repeat(10_241) } }) },
  { why: 'a bad condition', set: told({ ...device, conditions: [{ type: 'a b', status: 'Maybe' }] }) },
  { why: 'an interface with a long name', set: network({ interfaceName: 'x'.repeat(257) }) },
  { why: 'a hardware address too long', set: network({ hardwareAddress: 'x'.repeat(129) }) },
  { why: 'an invalid address', set: network({ ips: ['x'] }) },
  { why: 'an address without a length', set: network({ ips: ['10.0.0.1'] }) },
  { why: 'a repeated address', set: network({ ips: ['10.0.0.1/8', '10.0.0.1/8'] }) },
]

export const resourceClaim: KindCases = {
  kind: ResourceClaims,
  valid: { metadata: { name: 'devices' }, spec: claimSpec },
  refused: [
    ...badClaims('/spec'),
    { why: 'a name with capitals', set: { '/metadata/name': 'Devices' } },
    {
      why: 'another count',
      on: 'update',
      set: { '/spec/devices/requests/0/exactly/count': 2 },
      ...shownAs(withChanges(claimSpec, { '/devices/requests/0/exactly/count': 2 })),
    },
    ...badStatuses.map((refusal) => ({ ...refusal, on: 'update status' as const })),
    {
      why: 'another allocation',
      on: 'update status',
      since: [wasAllocated],
      set: { '/status/allocation/devices/results/0/device': 'dev-2' },
      ...shownAs({ devices: { results: [{ ...result, device: 'dev-2' }] } }),
    },
    ...badMetadataUpdates,
  ],
  taken: manyTolerations('/spec'),
}
