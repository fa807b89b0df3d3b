import assert from 'node:assert/strict'
import { Duplex } from 'node:stream'
import { describe, it } from 'node:test'

import { createVirtualClock } from '#lib/clock.ts'

import { createMachineTunnels } from '../links/machine-tunnels.ts'
import { machinesAcross, streamsForReplicas } from './across-replicas.ts'

class NamedStream extends Duplex {
  readonly target: string

  constructor(target: string) {
    super()
    this.target = target
  }
}

const targetOf = (stream: Duplex | undefined): string | undefined => (stream as NamedStream | undefined)?.target

/** Another replica has the machine `m-far`. */
const peers = {
  has: (key: string) => key === 'machine:m-far',
  dial: (key: string, address: string) => (key === 'machine:m-far' ? new NamedStream(address) : undefined),
  link: () => undefined,
}

describe('machinesAcross() replicas', () => {
  const machines = machinesAcross(createMachineTunnels(createVirtualClock()), peers)

  it('reaches the services of a machine through the replica that has its agent', () => {
    assert.deepEqual([machines.isConnected('m-far'), machines.isConnected('m-none')], [true, false])
    assert.equal(targetOf(machines.dialBuilder('m-far')), 'machine:m-far:builder')
    assert.equal(targetOf(machines.dialApiPort('m-far')), 'machine:m-far:api-port')
    assert.equal(machines.dialBuilder('m-none'), undefined)
  })
})

describe('streamsForReplicas()', () => {
  const own = {
    dialApi: (machine: string) => new NamedStream(`api of ${machine}`),
    dialApiPort: (machine: string) => new NamedStream(`port of ${machine}`),
    dialBuilder: (machine: string) => new NamedStream(`builder of ${machine}`),
    listen: (listener: (machine: string, isConnected: boolean) => void) => {
      listener('m-1', true)
      return () => undefined
    },
  }
  const hub = {
    dial: (cluster: string) => new NamedStream(`cluster ${cluster}`),
    listen: (listener: (cluster: string, isConnected: boolean) => void) => {
      listener('c-1', true)
      return () => undefined
    },
  }
  const streams = streamsForReplicas(hub, own)

  const ROWS: readonly (readonly [address: string, target: string | undefined])[] = [
    ['c-1', 'cluster c-1'],
    ['machine:m-1', 'api of m-1'],
    ['machine:m-1:builder', 'builder of m-1'],
    ['machine:m-1:api-port', 'port of m-1'],
    ['machine:m-1:127.0.0.1', undefined],
    ['machine:m-1:', undefined],
  ]
  for (const [address, target] of ROWS)
    it(`leads "${address}" to ${target ?? 'nothing'}`, () => assert.equal(targetOf(streams.dial(address)), target))

  it('names the clusters and the machines that are connected', () => {
    const seen: string[] = []
    streams.listen((key, isConnected) => seen.push(`${isConnected ? '+' : '-'}${key}`))
    assert.deepEqual(seen, ['+c-1', '+machine:m-1'])
  })
})
