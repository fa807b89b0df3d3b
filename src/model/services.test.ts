import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import {
  allocatesNodePorts,
  clusterIpsOf,
  requestedNodePorts,
  isExternallyAccessible,
  needsHealthCheck,
  otherFamily,
} from './services.ts'

describe('predicates of Services', () => {
  it('recognize an external Service by type or by externalIPs', () => {
    const reached = [{ type: 'NodePort' }, { type: 'LoadBalancer' }, { type: 'ClusterIP', externalIPs: ['1.1.1.1'] }]
    assert.equal(reached.every(isExternallyAccessible), true)
    assert.equal(
      [{ type: 'ClusterIP' }, { type: 'ExternalName', externalIPs: ['1.1.1.1'] }].some(isExternallyAccessible),
      false,
    )
  })

  it('give node ports to a LoadBalancer unless allocateLoadBalancerNodePorts is false', () => {
    assert.equal(allocatesNodePorts({ type: 'LoadBalancer' }), true)
    assert.equal(allocatesNodePorts({ type: 'LoadBalancer', allocateLoadBalancerNodePorts: false }), false)
    assert.equal(allocatesNodePorts({ type: 'ClusterIP' }), false)
  })

  it('list each requested node port once, including that of the health check', () => {
    const ports = [80, 81].map((port) => ({ port, targetPort: port, nodePort: 30_000 }))
    const spec = { type: 'LoadBalancer', ports, healthCheckNodePort: 30_001, externalTrafficPolicy: 'Local' }
    assert.equal(needsHealthCheck(spec), true)
    assert.deepEqual([...requestedNodePorts(spec)], [30_000, 30_001])
    assert.deepEqual([...requestedNodePorts({ ...spec, externalTrafficPolicy: 'Cluster' })], [30_000])
  })

  it('return the cluster IPs, and none for a headless or ExternalName Service', () => {
    assert.deepEqual(clusterIpsOf({ type: 'ClusterIP', clusterIPs: ['10.0.0.1', ''] }), ['10.0.0.1'])
    assert.deepEqual(clusterIpsOf({ type: 'ClusterIP', clusterIPs: ['None'] }), [])
    assert.deepEqual(clusterIpsOf({ type: 'ExternalName', clusterIPs: ['10.0.0.1'] }), [])
    assert.equal(otherFamily(otherFamily('IPv4')), 'IPv4')
  })
})
