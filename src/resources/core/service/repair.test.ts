import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import type { Service } from '#apis/core/v1.ts'
import type { IPAddress } from '#apis/networking/v1.ts'
import { type Cidr, parseCidr } from '#lib/net/cidr.ts'

import { addressObject } from './ip-pool.ts'
import { createMemoryLedger, DEFAULT_PORT_RANGE } from './node-ports.ts'
import { applyIpRepair, applyPortRepair, type IpRepair, planIpRepair, planPortRepair } from './repair.ts'
import { createTestBook } from './service.suite.ts'

const nowMs = Date.parse('2026-01-01T01:00:00Z')
const ranges = [parseCidr('10.0.0.0/24') as Cidr]

function service(name: string, spec: Service['spec']): Service {
  const metadata = { name, namespace: 'ns', creationTimestamp: '2026-01-01T00:00:00Z' }
  return { metadata, spec: { type: 'ClusterIP', ...spec }, status: { loadBalancer: {} } }
}

function address(ip: string, owner: string, bornAt = '2026-01-01T00:00:00Z'): IPAddress {
  const object = addressObject(ip, service(owner, {}))
  object.metadata.creationTimestamp = bornAt
  return object
}

const web = service('web', { clusterIPs: ['10.0.0.9'] })

function plan(services: Service[], addresses: IPAddress[]): string[] {
  const short = (one: IpRepair): string => `${one.kind} ${one.note?.reason ?? ''}`
  return planIpRepair({ services, addresses, ranges, nowMs }).map(short)
}

describe('planIpRepair() for Service addresses', () => {
  it('plans nothing if everything is consistent', () => {
    assert.deepEqual(plan([web, service('x', { type: 'ExternalName' })], [address('10.0.0.9', 'web')]), [])
  })

  it('allocates the missing IPAddress of a Service', () => {
    assert.deepEqual(plan([web], []), ['create ClusterIPNotAllocated'])
  })

  it('reports conflicts that it cannot repair', () => {
    const far = service('far', { clusterIPs: ['10.1.0.1'] })
    const bad = service('bad', { clusterIPs: ['x'] })
    const twin = service('twin', { clusterIPs: ['10.0.0.9'] })
    assert.deepEqual(plan([far, bad, web, twin], [address('10.0.0.9', 'web')]), [
      'tell ClusterIPOutOfRange',
      'tell ClusterIPNotValid',
      'tell ClusterIPAlreadyAllocated',
    ])
  })

  it('recreates an IPAddress with a wrong parent or labels, and does not delete it', () => {
    assert.deepEqual(plan([web], [address('10.0.0.9', 'gone')]), ['replace ClusterIPNotAllocated'])
    const gateway = address('10.0.0.9', 'web')
    gateway.spec = { parentRef: { group: 'x.io', resource: 'gateways', name: 'g' } }
    assert.deepEqual(plan([web], [gateway]), ['replace ClusterIPNotAllocated'])
    const bare = address('10.0.0.9', 'web')
    bare.metadata.labels = {}
    assert.deepEqual(plan([web], [bare]), ['replace '])
  })

  it('releases unused IPAddresses after a grace period', () => {
    assert.deepEqual(plan([], [address('10.0.0.9', 'web')]), ['delete IPAddressNotAllocated'])
    assert.deepEqual(plan([], [address('10.0.0.9', 'web', '2026-01-01T00:59:30Z')]), [])
    const other = address('10.0.0.8', 'web')
    assert.deepEqual(plan([web], [address('10.0.0.9', 'web'), other]), ['delete IPAddressWrongReference'])
    const justBorn = address('10.0.0.8', 'web', '2026-01-01T00:59:57Z')
    assert.deepEqual(plan([web], [address('10.0.0.9', 'web'), justBorn]), [])
    const changing = service('web', { type: 'ExternalName' })
    assert.deepEqual(plan([changing], [address('10.0.0.9', 'web', '2026-01-01T00:59:30Z')]), [])
    const modified = address('10.0.0.7', 'web')
    modified.spec = {}
    assert.deepEqual(plan([], [modified]), ['delete IPAddressNotAllocated'])
  })

  it('keeps IPAddresses of other owners', () => {
    const foreign = address('10.0.0.7', 'gone')
    foreign.metadata.labels = {}
    assert.deepEqual(plan([], [foreign]), [])
  })

  it('plans nothing after its plan was applied', async () => {
    const book = createTestBook('10.0.0.8')
    const reasons: string[] = []
    const repairs = planIpRepair({ services: [web], addresses: [address('10.0.0.8', 'web')], ranges, nowMs })
    await applyIpRepair(repairs, book, ({ reason }) => reasons.push(reason))
    assert.deepEqual([...book.names], ['10.0.0.9'])
    assert.deepEqual(reasons, ['ClusterIPNotAllocated', 'IPAddressWrongReference'])
  })
})

describe('planPortRepair() for node ports', () => {
  const ports = (...nodePorts: number[]): Service['spec'] => ({
    ports: nodePorts.map((nodePort) => ({ port: nodePort, targetPort: nodePort, protocol: 'TCP', nodePort })),
  })
  const range = DEFAULT_PORT_RANGE

  it('collects the ports of Services, and reports conflicts', () => {
    const services = [
      service('a', ports(30001, 80)),
      service('b', ports(30001, 30002)),
      service('c', { healthCheckNodePort: 30003 }),
    ]
    const { taken, notes } = planPortRepair({ services, taken: new Set([30001]), range, leaks: new Map() })
    assert.deepEqual([...taken], [30001, 30002, 30003])
    assert.deepEqual(
      notes.map(({ reason }) => reason),
      ['PortOutOfRange', 'PortAlreadyAllocated', 'PortNotAllocated', 'PortNotAllocated'],
    )
    assert.equal(notes[0]?.message, 'Port 80 is not within the port range 30000-32767; please recreate service')
  })

  it('counts a port that is used with two protocols once', () => {
    const spec = ports(30001, 30001)
    spec.ports![1]!.protocol = 'UDP'
    assert.deepEqual(
      planPortRepair({ services: [service('a', spec)], taken: new Set([30001]), range, leaks: new Map() }).notes,
      [],
    )
  })

  it('releases a port that is unused for three rounds', () => {
    let taken: ReadonlySet<number> = new Set([30005])
    let leaks: ReadonlyMap<number, number> = new Map()
    const rounds = [1, 2, 3].map(() => {
      ;({ taken, leaks } = planPortRepair({ services: [], taken, range, leaks }))
      return taken.size
    })
    assert.deepEqual(rounds, [1, 1, 0])
  })

  it('fills an empty bitmap', async () => {
    const ledger = createMemoryLedger()
    const services = (): Promise<Service[]> => Promise.resolve([service('a', ports(30001))])
    const { notes } = await applyPortRepair(ledger, services, { range, leaks: new Map() })
    assert.deepEqual(await ledger.change((taken) => [...taken]), [30001])
    assert.deepEqual(notes, [])
    await ledger.change((taken) => taken.clear())
    const again = await applyPortRepair(ledger, services, { range, leaks: new Map() })
    assert.deepEqual(
      again.notes.map(({ message }) => message),
      ['Port 30001 is not allocated; repairing'],
    )
  })
})
