import { ResourceSlices } from '#apis/resource/v1.ts'

import type { Changes, KindCases, Refusal } from '../case.ts'
import { badMetadataUpdates } from '../metadata.ts'
import { shownAs } from '../our-words.ts'

const DEVICE = '/spec/devices/0'

const device = (name: string, value: unknown): Changes => ({ [`${DEVICE}/${name}`]: value })
const attribute = (name: string, value: object): Changes => device('attributes', { [name]: value })
const taint = (members: object): Changes => device('taints', [{ key: 'a', effect: 'NoSchedule', ...members }])
const policy = (requestPolicy: object, value = '10'): Changes => ({
  ...device('allowMultipleAllocations', true),
  ...device('capacity', { 'example.com/mem': { value, requestPolicy } }),
})
const range = (validRange: object): Changes => policy({ default: '2', validRange })
const numbered = <T>(count: number, make: (name: string) => T): T[] =>
  Array.from({ length: count }, (_, at) => make(`n${at}`))
const map = (count: number, value: object): object => Object.fromEntries(numbered(count, (name) => [name, value]))
const term = { matchExpressions: [{ key: 'a', operator: 'Exists' }] }

const badDevices: readonly Refusal[] = [
  { why: 'a device without a name', set: device('name', '') },
  { why: 'a device with a bad name', set: device('name', 'a.b') },
  { why: 'a repeated device', set: { '/spec/devices': [{ name: 'a' }, { name: 'a' }] } },
  { why: 'too many devices', set: { '/spec/devices': numbered(129, (name) => ({ name })) } },
  {
    why: 'too many devices with taints',
    set: { '/spec/devices': numbered(65, (name) => ({ name, taints: [{ key: 'a', effect: 'None' }] })) },
  },
  { why: 'an attribute with a bad name', set: attribute('a-b', { int: 1 }) },
  { why: 'an attribute with a bad domain', set: attribute('A_b/c', { int: 1 }) },
  { why: 'an attribute with an empty domain', set: attribute('/c', { int: 1 }) },
  { why: 'an attribute with an empty name', set: attribute('a.b/', { int: 1 }) },
  { why: 'an attribute with a long name', set: attribute('a'.repeat(33), { int: 1 }) },
  { why: 'an attribute without a value', set: attribute('a', {}) },
  { why: 'an attribute that is not a version', set: attribute('a', { version: '1.2' }) },
  { why: 'an attribute too long', set: attribute('a', { string: 'x'.repeat(65) }) },
  { why: 'too many attributes', set: device('attributes', map(33, { int: 1 })) },
  { why: 'a capacity with a bad name', set: device('capacity', { 'a-b': { value: '1' } }) },
  { why: 'a capacity that is not a quantity', set: device('capacity', { a: { value: 'x' } }) },
  {
    why: 'a policy for one user',
    set: device('capacity', { 'example.com/mem': { value: '10', requestPolicy: { default: '1' } } }),
  },
  {
    why: 'a policy of values and a range',
    set: policy({ default: '1', validValues: ['1'], validRange: { min: '1' } }),
  },
  { why: 'values without a default', set: policy({ validValues: ['1'] }) },
  { why: 'values without the default', set: policy({ default: '1', validValues: ['2'] }) },
  { why: 'values out of order', set: policy({ default: '1', validValues: ['2', '1'] }) },
  { why: 'a repeated value', set: policy({ default: '1', validValues: ['1', '1'] }) },
  { why: 'a value above the capacity', set: policy({ default: '1', validValues: ['1', '11'] }) },
  {
    why: 'too many values',
    set: policy({ default: '1', validValues: Array.from({ length: 11 }, (_, at) => `${at + 1}`) }, '20'),
  },
  { why: 'a range without a default', set: policy({ validRange: { min: '1' } }) },
  { why: 'a range without a minimum', set: range({}) },
  { why: 'a range above the capacity', set: range({ min: '11' }) },
  { why: 'a range above its default', set: range({ min: '3' }) },
  { why: 'a range below its default', set: range({ min: '1', max: '1' }) },
  { why: 'a range that ends before it begins', set: range({ min: '2', max: '1' }) },
  { why: 'a range that ends above the capacity', set: range({ min: '1', max: '11' }) },
  { why: 'a range with a step too wide', set: range({ min: '2', step: '9' }) },
  { why: 'a range whose steps miss the default', set: range({ min: '1', step: '2' }) },
  { why: 'a taint without a key', set: taint({ key: '' }) },
  { why: 'a taint with a bad value', set: taint({ value: 'a b' }) },
  { why: 'a taint without an effect', set: taint({ effect: '' }) },
  { why: 'a taint with an unknown effect', set: taint({ effect: 'Maybe' }) },
  {
    why: 'too many taints',
    set: device(
      'taints',
      numbered(17, (key) => ({ key, effect: 'None' })),
    ),
  },
  { why: 'a separate node', set: device('nodeName', 'n1') },
  { why: 'counters of no set', set: device('consumesCounters', [{ counterSet: '', counters: { a: { value: '1' } } }]) },
  {
    why: 'counters of a bad set',
    set: device('consumesCounters', [{ counterSet: 'A_b', counters: { a: { value: '1' } } }]),
  },
  { why: 'a set without counters', set: device('consumesCounters', [{ counterSet: 'a' }]) },
  {
    why: 'a repeated set of counters',
    set: device('consumesCounters', [
      { counterSet: 'a', counters: { a: { value: '1' } } },
      { counterSet: 'a', counters: { a: { value: '1' } } },
    ]),
  },
  { why: 'half the binding conditions', set: device('bindingConditions', ['ready']) },
  { why: 'the other half', set: device('bindingFailureConditions', ['failed']) },
  {
    why: 'conditions of both sorts',
    set: { ...device('bindingConditions', ['a', 'a']), ...device('bindingFailureConditions', ['a', 'b', 'b']) },
  },
]

const perDevice = (members: object): Changes => ({
  '/spec/nodeName': undefined,
  '/spec/perDeviceNodeSelection': true,
  '/spec/devices': [{ name: 'dev-1', ...members }],
})
const counters = (sharedCounters: unknown): Changes => ({
  '/spec/devices': undefined,
  '/spec/sharedCounters': sharedCounters,
})

const badNodes: readonly Refusal[] = [
  { why: 'no nodes', set: { '/spec/nodeName': undefined } },
  { why: 'an empty node', set: { '/spec/nodeName': '' } },
  { why: 'a node with a bad name', set: { '/spec/nodeName': 'A_b' } },
  { why: 'a node and all', set: { '/spec/allNodes': true } },
  { why: 'not all nodes', set: { '/spec/nodeName': undefined, '/spec/allNodes': false } },
  { why: 'not for each device', set: { '/spec/perDeviceNodeSelection': false } },
  {
    why: 'nodes by two terms',
    set: { '/spec/nodeName': undefined, '/spec/nodeSelector': { nodeSelectorTerms: [term, term] } },
    ...shownAs([term, term]),
  },
  { why: 'nodes by no term', set: { '/spec/nodeName': undefined, '/spec/nodeSelector': { nodeSelectorTerms: [] } } },
  { why: 'a device without nodes', set: perDevice({}) },
  { why: 'a device with an empty node', set: perDevice({ nodeName: '' }) },
  { why: 'a device with a node and all', set: perDevice({ nodeName: 'n1', allNodes: true }) },
  { why: 'a device without all nodes', set: perDevice({ allNodes: false }) },
]

export const resourceSlice: KindCases = {
  kind: ResourceSlices,
  valid: {
    metadata: { name: 'refused' },
    spec: {
      driver: 'gpu.example.com',
      nodeName: 'n1',
      pool: { name: 'pool-1', generation: 1, resourceSliceCount: 1 },
      devices: [{ name: 'dev-1', attributes: { model: { string: 'x' } }, capacity: { memory: { value: '1Gi' } } }],
    },
  },
  refused: [
    { why: 'no driver', set: { '/spec/driver': '' } },
    { why: 'a driver with a bad name', set: { '/spec/driver': 'a_b' } },
    { why: 'a driver with a long name', set: { '/spec/driver': 'a'.repeat(64) } },
    { why: 'no pool', set: { '/spec/pool/name': '' } },
    { why: 'a pool with a bad name', set: { '/spec/pool/name': 'a/B_c' } },
    { why: 'a pool with a long name', set: { '/spec/pool/name': 'a'.repeat(254) } },
    { why: 'a pool of no slices', set: { '/spec/pool/resourceSliceCount': 0 } },
    { why: 'a pool before its time', set: { '/spec/pool/generation': -1 } },
    ...badNodes,
    ...badDevices,
    {
      why: 'devices and counters',
      set: { '/spec/sharedCounters': [{ name: 'a', counters: { b: { value: '1' } } }] },
    },
    { why: 'a counter set without a name', set: counters([{ name: '', counters: { b: { value: '1' } } }]) },
    { why: 'a counter set with a bad name', set: counters([{ name: 'A_b', counters: { b: { value: '1' } } }]) },
    { why: 'an empty counter set', set: counters([{ name: 'a', counters: {} }]) },
    { why: 'a counter with a bad name', set: counters([{ name: 'a', counters: { B_c: { value: '1' } } }]) },
    {
      why: 'a repeated counter set',
      set: counters([
        { name: 'a', counters: { b: { value: '1' } } },
        { name: 'a', counters: { b: { value: '1' } } },
      ]),
    },
    { why: 'too many counter sets', set: counters(numbered(9, (name) => ({ name, counters: { b: { value: '1' } } }))) },
    { why: 'too many counters', set: counters([{ name: 'a', counters: map(33, { value: '1' }) }]) },
    { why: 'a name with capitals', set: { '/metadata/name': 'Refused' } },
    { why: 'another driver', on: 'update', set: { '/spec/driver': 'other.example.com' } },
    { why: 'another pool', on: 'update', set: { '/spec/pool/name': 'pool-2' } },
    { why: 'another node', on: 'update', set: { '/spec/nodeName': 'n2' } },
    { why: 'all nodes', on: 'update', set: { '/spec/nodeName': undefined, '/spec/allNodes': true } },
    { why: 'a repeated device is added', on: 'update', set: { '/spec/devices/-': { name: 'dev-1' } } },
    ...badMetadataUpdates,
  ],
}
