import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import type { Pod } from '#apis/core/v1.ts'

import type { ObjectReader } from '../registry/resource.ts'
import { chooseContainer, hostPort, kubeletOf } from './kubelet-location.ts'

const settings = { addressTypes: ['InternalIP', 'Hostname'], port: 10_250 }
const nodes = (status: object | undefined): ObjectReader => ({
  get: () => Promise.resolve(status === undefined ? undefined : ({ metadata: {}, status } as never)),
  list: () => Promise.resolve([]),
})

describe('location of a kubelet', () => {
  it('has the first address of the preferred type', async () => {
    const addresses = [
      { type: 'Hostname', address: 'n1' },
      { type: 'ExternalIP', address: '8.8.8.8' },
      { type: 'InternalIP', address: '10.0.0.1' },
      { type: 'InternalIP', address: '10.0.0.2' },
    ]
    const found = await kubeletOf('n1', nodes({ addresses }), settings)
    assert.deepEqual(found, { host: '10.0.0.1', port: 10_250, features: [] })
  })

  it('has the kubelet port and declared features of the Node', async () => {
    const found = await kubeletOf(
      'n1',
      nodes({
        addresses: [{ type: 'Hostname', address: 'n1' }],
        daemonEndpoints: { kubeletEndpoint: { Port: 4194 } },
        declaredFeatures: ['A'],
      }),
      settings,
    )
    assert.deepEqual(found, { host: 'n1', port: 4194, features: ['A'] })
  })

  it('is an error if the Node or its address is missing', async () => {
    await assert.rejects(kubeletOf('n1', nodes(undefined), settings), /nodes "n1" not found/)
    const addresses = [{ type: 'InternalDNS', address: 'foo' }]
    const message = 'no preferred addresses found; known addresses: [{InternalDNS foo}]'
    await assert.rejects(kubeletOf('n1', nodes({ addresses }), settings), { message })
  })

  it('is an error for addresses that would change the URL', async () => {
    for (const address of ['127.0.0.1:6443/api?', 'x@10.0.0.1', 'a b', 'a/b', '[::1]', 'a#b', 'a\\b', '']) {
      const objects = nodes({ addresses: [{ type: 'Hostname', address }] })
      await assert.rejects(kubeletOf('n1', objects, settings), /no such host/, address)
    }
    for (const address of ['node-1.example', 'fd00::1', '10.0.0.1', 'Node_1']) {
      assert.equal(
        (await kubeletOf('n1', nodes({ addresses: [{ type: 'Hostname', address }] }), settings)).host,
        address,
      )
    }
  })

  it('has IPv6 addresses in brackets', () => {
    assert.deepEqual([hostPort('fd00::1', 1), hostPort('10.0.0.1', 1)], ['[fd00::1]:1', '10.0.0.1:1'])
  })
})

const pod = (...containers: string[]): Pod =>
  ({
    metadata: { name: 'p' },
    spec: {
      initContainers: [{ name: 'init' }],
      containers: containers.map((name) => ({ name })),
      ephemeralContainers: [{ name: 'debug' }],
    },
  }) as Pod

describe('container of a log or exec request', () => {
  it('is the only container of the pod, or the one that the request names', () => {
    assert.equal(chooseContainer(pod('a'), ''), 'a')
    for (const name of ['a', 'init', 'debug']) assert.equal(chooseContainer(pod('a'), name), name)
  })

  it('is an error if it does not exist, or if the pod has several and none is named', () => {
    const several = 'a container name must be specified for pod p, choose one of: [init a b debug]'
    assert.throws(() => chooseContainer(pod('a', 'b'), ''), { message: several })
    assert.throws(() => chooseContainer(pod('a'), 'c'), { message: 'container c is not valid for pod p' })
    assert.throws(() => chooseContainer(pod(), ''), { message: 'a container name must be specified for pod p' })
  })
})
