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

test('the endpoints of an ingress backend are its ready pods, by port number or port name', () => {
  const slices = [
    slice(8080, 'http', ['10.42.0.7', {}], ['10.42.0.5', { ready: true }], ['10.42.0.6', { ready: false }]),
    slice(9090, 'admin', ['10.42.0.5', {}]),
  ]
  assert.deepEqual(endpointsOf({ port: 80 }, WEB, slices), ['10.42.0.5:8080', '10.42.0.7:8080'])
  assert.deepEqual(endpointsOf({ port: 'admin' }, WEB, slices), ['10.42.0.5:9090'])
  assert.deepEqual(endpointsOf({ port: 82 }, WEB, slices), [])
})

test('the endpoints of an ingress backend are terminating pods if no pod is ready', () => {
  const slices = [slice(8080, 'http', ['10.42.0.5', { ready: false, serving: true, terminating: true }])]
  assert.deepEqual(endpointsOf({ port: 80 }, WEB, slices), ['10.42.0.5:8080'])
})

test('the endpoint of an ExternalName backend is its external name', () => {
  const other = service([{ port: 80 }], { type: 'ExternalName', externalName: 'web.example' })
  assert.deepEqual(endpointsOf({ port: 80 }, other, []), ['web.example:80'])
})

test('the endpoints of an ingress backend have brackets around IPv6 addresses', () => {
  const six = { ...slice(80, 'http', ['fd00::5', {}]), addressType: 'IPv6' }
  assert.deepEqual(endpointsOf({ port: 80 }, WEB, [six]), ['[fd00::5]:80'])
  assert.deepEqual(endpointsOf({ port: 80 }, undefined, [six]), [])
})
