import assert from 'node:assert/strict'
import { test } from 'node:test'

import { changed, tryRules } from '../rules.fixture.ts'
import { endpointSlice } from './endpointslice.ts'

const { create, update, read, cells } = tryRules(endpointSlice)

const body = {
  metadata: { name: 's', namespace: 'ns', generation: 2, labels: { a: 'b' } },
  addressType: 'IPv4',
  endpoints: [{ addresses: ['10.0.0.1'], nodeName: 'n', hints: { forZones: [{ name: 'z' }] } }],
  ports: [{ port: 80 }],
}

test('an EndpointSlice defaults the name and protocol of ports', () => {
  assert.deepEqual(read(body).ports, [{ name: '', protocol: 'TCP', port: 80 }])
})

test('an EndpointSlice requires addresses of the slice’s family', async () => {
  assert.deepEqual((await create(body)).errors, [])
  const addresses = 'endpoints[0].addresses'
  const table: readonly (readonly [string, unknown, readonly string[]])[] = [
    ['addressType', '', ['addressType: Required value']],
    ['addressType', 'X', ['addressType: Unsupported value: "X": supported values: "FQDN", "IPv4", "IPv6"']],
    ['endpoints.0.addresses', [], [`${addresses}: Required value: must contain at least 1 address`]],
    ['endpoints.0.addresses', ['fd00::1'], [`${addresses}: Invalid value: "fd00::1": must be an IPv4 address`]],
    [
      'endpoints.0.addresses',
      ['127.0.0.1'],
      [`${addresses}[0]: Invalid value: "127.0.0.1": may not be in the loopback range (127.0.0.0/8, ::1/128)`],
    ],
    [
      'endpoints.0.addresses',
      Array.from({ length: 101 }, (_, at) => `10.0.0.${at}`),
      [`${addresses}: Too many: 101: must have at most 100 items`],
    ],
    ['ports', [{}, {}], ['ports[1].name: Duplicate value: ""']],
    [
      'ports.0.protocol',
      'tcp',
      ['ports[0].protocol: Unsupported value: "tcp": supported values: "SCTP", "TCP", "UDP"'],
    ],
    [
      'endpoints.0.hints.forZones',
      [{ name: 'z' }, { name: 'z' }],
      ['endpoints[0].hints.forZones[1].name: Duplicate value: "z"'],
    ],
  ]
  for (const [path, value, errors] of table) {
    assert.deepEqual((await create(changed(body, path, value))).errors, errors, path)
  }
})

test('an EndpointSlice accepts domain names with a warning', async () => {
  const named = { ...body, addressType: 'FQDN', endpoints: [{ addresses: ['a.example.com'] }] }
  const { errors, warnings } = await create(named)
  assert.deepEqual(errors, [])
  assert.deepEqual(warnings, ['spec.addressType: FQDN endpoints are deprecated'])
})

test('an EndpointSlice rejects a changed type; labels and content increase the generation, annotations do not', async () => {
  const other = { ...body, addressType: 'IPv6', endpoints: [] }
  assert.deepEqual((await update(other, body)).errors, ['addressType: Invalid value: "IPv6": field is immutable'])
  const generation = async (next: object): Promise<number | undefined> =>
    (await update(next, body)).object.metadata.generation
  assert.equal(await generation(changed(body, 'ports.0.port', 81)), 3)
  assert.equal(await generation(changed(body, 'metadata.labels.a', 'c')), 3)
  assert.equal(await generation(changed(body, 'metadata.annotations', { x: 'y' })), 2)
})

test('an EndpointSlice drops deprecatedTopology, except for a node name that the old object has', async () => {
  const topology = { 'kubernetes.io/hostname': 'node-1' }
  const old = changed(body, 'endpoints', [{ addresses: ['10.0.0.1'], deprecatedTopology: topology }])
  assert.deepEqual((await create(old)).object.endpoints, [{ addresses: ['10.0.0.1'], conditions: {} }])
  const next = changed(old, 'endpoints.0.addresses', ['10.0.0.2'])
  assert.deepEqual((await update(next, old)).object.endpoints, [
    { addresses: ['10.0.0.2'], conditions: {}, nodeName: 'node-1' },
  ])
})

test('an EndpointSlice accepts endpoints that an older release allowed', async () => {
  const old = changed(body, 'endpoints.0.addresses', ['10.0.0.01'])
  assert.equal((await create(old)).errors.length, 1)
  assert.deepEqual((await update(changed(old, 'ports.0.port', 81), old)).errors, [])
})

test('an EndpointSlice prints at most three ports and three endpoints', () => {
  assert.deepEqual(cells(body), ['s', 'IPv4', '80', '10.0.0.1', '<unknown>'])
  const many = { ...body, endpoints: [{ addresses: ['1.0.0.1', '1.0.0.2', '1.0.0.3', '1.0.0.4', '1.0.0.5'] }] }
  assert.deepEqual(cells({ ...many, ports: null }).slice(2, 4), ['<unset>', '1.0.0.1,1.0.0.2,1.0.0.3 + 2 more...'])
})
