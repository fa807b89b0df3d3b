import assert from 'node:assert/strict'
import { test } from 'node:test'

import type { Service } from '#apis/core/v1.ts'
import type { EndpointSlice } from '#apis/discovery/v1.ts'

import { endpointsOf } from './endpoints.ts'

const service = (ports: object[], rest: object = {}): Service =>
  ({ metadata: { name: 'web' }, spec: { ports, ...rest } }) as unknown as Service
const WEB = service([
  { name: 'http', port: 80 },
  { name: 'admin', port: 81 },
])
const slice = (port: number, name: string, ...endpoints: readonly (readonly [string, object])[]): EndpointSlice => ({
  metadata: {},
  addressType: 'IPv4',
  ports: [{ name, port }],
  endpoints: endpoints.map(([address, conditions]) => ({ addresses: [address], conditions })),
})

test('pods that are ready are asked, by number or name of the port', () => {
  const slices = [
    slice(8080, 'http', ['10.42.0.7', {}], ['10.42.0.5', { ready: true }], ['10.42.0.6', { ready: false }]),
    slice(9090, 'admin', ['10.42.0.5', {}]),
  ]
  assert.deepEqual(endpointsOf({ port: 80 }, WEB, slices), ['10.42.0.5:8080', '10.42.0.7:8080'])
  assert.deepEqual(endpointsOf({ port: 'admin' }, WEB, slices), ['10.42.0.5:9090'])
  assert.deepEqual(endpointsOf({ port: 82 }, WEB, slices), [])
})

test('those that end are asked when there is nobody else', () => {
  const slices = [slice(8080, 'http', ['10.42.0.5', { ready: false, serving: true, terminating: true }])]
  assert.deepEqual(endpointsOf({ port: 80 }, WEB, slices), ['10.42.0.5:8080'])
})

test('another name is asked where the Service is one', () => {
  const other = service([{ port: 80 }], { type: 'ExternalName', externalName: 'web.example' })
  assert.deepEqual(endpointsOf({ port: 80 }, other, []), ['web.example:80'])
})

test('addresses with colons have brackets', () => {
  const six = { ...slice(80, 'http', ['fd00::5', {}]), addressType: 'IPv6' }
  assert.deepEqual(endpointsOf({ port: 80 }, WEB, [six]), ['[fd00::5]:80'])
  assert.deepEqual(endpointsOf({ port: 80 }, undefined, [six]), [])
})
