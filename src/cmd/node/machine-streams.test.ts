import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { createVirtualClock } from '#lib/clock.ts'
import { createLog } from '#lib/log/log.ts'
import type { NodeRole } from '#supervisor/agent/parameters.ts'

import { acceptStreams } from './machine-streams.ts'

function accepts(roles: readonly NodeRole[], address: string, ports: readonly string[] = []): boolean {
  const clock = createVirtualClock()
  const stream = { write: (_text: string, done: () => void) => done() }
  const { logger: log } = createLog({ clock, stream, errorStream: stream })
  const options = { roles, loopbackPorts: new Set(ports), kubeconfig: '', cwd: '/', env: {}, clock, log }
  const [protocol, name] = address.startsWith('request/') ? ['request', address.slice(8)] : ['tcp', address]
  return acceptStreams(options, new AsyncDisposableStack())(protocol, name) !== undefined
}

describe('acceptStreams() for streams of the management server to a machine', () => {
  const ACCEPTED: readonly (readonly [roles: readonly NodeRole[], address: string])[] = [
    [['worker'], 'machine'],
    [['etcd'], 'machine:1'],
    [['controlplane'], 'request/kube-apiserver'],
    [['controlplane'], 'kube-apiserver-port'],
    [['etcd', 'controlplane', 'worker'], 'request/kube-apiserver'],
  ]
  for (const [roles, address] of ACCEPTED)
    it(`accepts address ${address} on a node with role ${roles.join(', ')}`, () => assert.ok(accepts(roles, address)))

  const REFUSED: readonly (readonly [roles: readonly NodeRole[], address: string])[] = [
    [['worker'], 'request/kube-apiserver'],
    [['etcd'], 'request/kube-apiserver'],
    [['controlplane'], 'kube-apiserver'],
    [['controlplane'], 'kube-apiserver:443'],
    [['controlplane'], 'request/127.0.0.1:6443'],
    [['etcd', 'worker'], 'kube-apiserver-port'],
    [['controlplane'], '127.0.0.1:6443'],
    [['controlplane'], '127.0.0.1:22'],
    [['controlplane'], '10.0.0.1:443'],
    [['controlplane'], '169.254.169.254:80'],
    [['controlplane'], 'machine.example.com:80'],
    [['controlplane'], 'localhost:2379'],
    [['controlplane'], '[::1]:10250'],
    [['controlplane'], 'kube-apiserver.kube-system:443'],
    [['controlplane'], '/var/run/docker.sock'],
    [['controlplane'], ''],
  ]
  for (const [roles, address] of REFUSED)
    it(`refuses address "${address}" on a node with role ${roles.join(', ')}`, () =>
      assert.ok(!accepts(roles, address)))

  it('accepts the configured ports of loopback addresses only', () => {
    assert.ok(accepts(['worker'], '127.0.0.1:10250', ['10250']))
    assert.ok(accepts(['worker'], '[::1]:10250', ['10250']))
    for (const address of ['127.0.0.1:10251', '10.0.0.1:10250', '127.0.0.1:10250x', 'x127.0.0.1:10250'])
      assert.ok(!accepts(['worker'], address, ['10250']), address)
  })
})
