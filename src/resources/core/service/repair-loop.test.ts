import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { type Event, Events, type Service, Services } from '#apis/core/v1.ts'
import { IPAddresses, ServiceCIDRs } from '#apis/networking/v1.ts'
import type { Registry } from '#apiserver/registry/registry.ts'
import { createServers, type TestServers } from '#apiserver/registry/servers.fixture.ts'
import { type Cidr, parseCidr } from '#lib/net/cidr.ts'
import type { PeriodicTask } from '#lib/periodic.ts'

import { createAddressBook } from './address-book.ts'
import { addressObject } from './ip-pool.ts'
import { DEFAULT_PORT_RANGE, type PortLedger } from './node-ports.ts'
import { createStoredLedger, PORT_ALLOCATIONS } from './port-ledger.ts'
import { startServiceRepair } from './repair-loop.ts'

const ROUND_MS = 180_000

interface Running {
  readonly registry: Registry
  readonly ledger: PortLedger
  readonly errors: unknown[]
  readonly rounds: PeriodicTask
}

async function start(registry: Registry): Promise<Running> {
  const { backend, atRest } = registry.services
  const errors: unknown[] = []
  const ledger = createStoredLedger({ backend, resting: atRest.resting(PORT_ALLOCATIONS), range: DEFAULT_PORT_RANGE })
  const rounds = await startServiceRepair({
    registry,
    book: createAddressBook(registry),
    ports: ledger,
    portRange: DEFAULT_PORT_RANGE,
    serviceCidrs: [parseCidr('10.0.0.0/24') as Cidr],
    hostname: 'here',
    onError: (error) => errors.push(error),
  })
  return { registry, ledger, errors, rounds }
}

const open = (servers: TestServers): Promise<Registry> => servers.open([Services, IPAddresses, ServiceCIDRs, Events])

async function addService(registry: Registry, name: string, ip: string, nodePort: number): Promise<void> {
  const ports = [{ port: 80, targetPort: 80, protocol: 'TCP', nodePort }]
  const spec: Service['spec'] = { type: 'NodePort', clusterIP: ip, clusterIPs: [ip], ports }
  const service = {
    kind: 'Service',
    apiVersion: 'v1',
    metadata: { name, namespace: 'ns' },
    spec,
    status: {},
  } as Service
  await registry.writer.create(Services, service)
}

const taken = (ledger: PortLedger): Promise<number[]> => ledger.change((ports) => [...ports].sort((a, b) => a - b))
const eventsIn = async (registry: Registry): Promise<readonly Event[]> => registry.list(Events, '')
const addresses = async (registry: Registry): Promise<(string | undefined)[]> =>
  (await registry.list(IPAddresses, '')).map(({ metadata }) => metadata.name)

describe('repair loop for Service addresses and ports', () => {
  it('creates the port bitmap from existing Services without events', async () => {
    await using servers = createServers()
    const registry = await open(servers)
    await addService(registry, 'web', '10.0.0.9', 30_001)
    const { ledger, rounds } = await start(registry)
    assert.deepEqual(await taken(ledger), [30_001])
    assert.deepEqual(await addresses(registry), ['10.0.0.9'])
    await servers.clock.advance(0)
    assert.deepEqual(
      (await eventsIn(registry)).map(({ reason }) => reason),
      ['ClusterIPNotAllocated'],
    )
    await rounds.stop()
  })

  it('reports two Services with one port, and repeated reports become a series', async () => {
    await using servers = createServers()
    const registry = await open(servers)
    const { rounds, errors } = await start(registry)
    await addService(registry, 'a', '10.0.0.8', 30_001)
    await addService(registry, 'b', '10.0.0.9', 30_001)
    await servers.clock.advance(ROUND_MS)
    const find = async (): Promise<Event | undefined> =>
      (await eventsIn(registry)).find(({ reason }) => reason === 'PortAlreadyAllocated')
    const first = await find()
    assert.equal(first?.message, 'Port 30001 was assigned to multiple services; please recreate service')
    assert.deepEqual(
      [first?.involvedObject.kind, first?.involvedObject.name, first?.type, first?.action, first?.metadata.namespace],
      ['Service', 'b', 'Warning', 'PortAllocation', 'ns'],
    )
    assert.deepEqual(
      [first?.reportingComponent, first?.reportingInstance],
      ['portallocator-repair-controller', 'portallocator-repair-controller-here'],
    )
    await servers.clock.advance(ROUND_MS)
    assert.equal((await find())?.series?.count, 2)
    await rounds.stop()
    assert.deepEqual(errors, [])
  })

  it('releases an unused port after some rounds, and an unused address after a minute', async () => {
    await using servers = createServers()
    const registry = await open(servers)
    const { ledger, rounds } = await start(registry)
    await ledger.change((ports) => ports.add(30_005))
    const book = createAddressBook(registry)
    const leaked = { metadata: { name: 'gone', namespace: 'ns' }, spec: {}, status: {} } as Service
    await book.create(addressObject('10.0.0.7', leaked))
    await servers.clock.advance(ROUND_MS)
    assert.deepEqual(await addresses(registry), [])
    assert.deepEqual(await taken(ledger), [30_005])
    await servers.clock.advance(2 * ROUND_MS)
    assert.deepEqual(await taken(ledger), [])
    await rounds.stop()
  })

  it('continues after a failed round', async () => {
    await using servers = createServers()
    const registry = await open(servers)
    const { ledger, rounds, errors } = await start(registry)
    await servers.backend.commit([{ key: '/registry/ranges/servicenodeports', value: Buffer.from('{"kind":"x"}') }])
    await addService(registry, 'a', '10.0.0.8', 30_001)
    await servers.clock.advance(ROUND_MS)
    assert.equal(errors.length, 1)
    assert.deepEqual(await addresses(registry), ['10.0.0.8'])
    await servers.backend.commit([{ key: '/registry/ranges/servicenodeports', value: null }])
    await servers.clock.advance(ROUND_MS)
    assert.deepEqual(await taken(ledger), [30_001])
    await rounds.stop()
  })

  it('runs on two servers without conflicts', async () => {
    await using servers = createServers()
    const [a, b] = [await start(await open(servers)), await start(await open(servers))]
    await addService(a.registry, 'web', '10.0.0.9', 30_001)
    await servers.clock.advance(ROUND_MS)
    assert.deepEqual([await taken(a.ledger), await taken(b.ledger)], [[30_001], [30_001]])
    assert.deepEqual([...a.errors, ...b.errors], [])
    await a.rounds.stop()
    await b.rounds.stop()
  })
})
