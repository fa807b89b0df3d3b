import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import fc from 'fast-check'

import type { Service } from '#apis/core/v1.ts'
import type { ServiceCIDR } from '#apis/networking/v1.ts'
import type { WriteContext } from '#apiserver/registry/resource.ts'
import { type Cidr, parseCidr } from '#lib/net/cidr.ts'
import { createSeededRandom } from '#lib/random.ts'
import { deepCopy } from '#meta/object.ts'

import { contextWith, type Sent, trialOf } from '../trial.suite.ts'
import { createServiceAllocator, DEFAULT_SERVICE_CIDRS, planIps, type ServiceAllocatorOptions } from './allocator.ts'
import { createMemoryLedger, type PortLedger, staticBand } from './node-ports.ts'
import { createServiceResource } from './resource.ts'
import { createTestBook, type TestBook } from './service.suite.ts'

const dualStack = ['10.0.0.0/24', 'fd00::/112'].map((text) => parseCidr(text) as Cidr)

interface World {
  readonly book: TestBook
  readonly ports: PortLedger
  taken(): Promise<number[]>
  /** Allocates for a client's object like the store; `written` is the result of the write. */
  write(sent: Sent, old?: Service, end?: { written?: boolean; dryRun?: boolean }): Promise<Service>
  release(service: Service): Promise<void>
}

function createWorld(options: Partial<ServiceAllocatorOptions> = {}, book = createTestBook()): World {
  const ports = createMemoryLedger()
  const allocator = createServiceAllocator({
    book,
    ports,
    random: createSeededRandom(1),
    serviceCidrs: DEFAULT_SERVICE_CIDRS,
    ...options,
  })
  const resource = createServiceResource(allocator)
  const trial = trialOf(resource)
  return {
    book,
    ports,
    taken: () => ports.change((taken) => [...taken].sort((a, b) => a - b)),
    async write(sent, old, { written = true, dryRun = false } = {}) {
      const context: WriteContext = contextWith({ dryRun })
      const next = trial.load({ metadata: { name: 's', namespace: 'ns' }, spec: sent })
      if (old === undefined) resource.prepareCreate?.(next, context)
      else resource.prepareUpdate?.(next, old, context)
      const finish = await resource.allocate?.(next, old, context)
      await finish?.(written)
      return next
    },
    release: (service) => allocator.release(service, contextWith()),
  }
}

const ports = [{ name: 'a', port: 80 }]

describe('allocation of addresses and ports for Services', () => {
  it('assigns a cluster IP of the upper band and records its Service in the IPAddress', async () => {
    const world = createWorld()
    const { spec } = await world.write({ ports })
    assert.match(spec.clusterIP ?? '', /^10\.0\.0\.(1[7-9]|[2-9]\d|[12]\d\d)$/)
    assert.deepEqual(
      [spec.clusterIPs, spec.ipFamilies, spec.ipFamilyPolicy],
      [[spec.clusterIP], ['IPv4'], 'SingleStack'],
    )
    assert.deepEqual([...world.book.names], [spec.clusterIP])
  })

  const refusals: [string, Sent, string][] = [
    [
      'a taken address',
      { clusterIP: '10.0.0.5' },
      'spec.clusterIPs: Invalid value: ["10.0.0.5"]: failed to allocate IP 10.0.0.5: provided IP is already allocated',
    ],
    [
      'an address outside of all ranges',
      { clusterIP: '10.1.0.5' },
      'spec.clusterIPs: Invalid value: ["10.1.0.5"]: failed to allocate IP 10.1.0.5: the provided network does not match the current range',
    ],
    [
      'the network address',
      { clusterIP: '10.0.0.0' },
      'spec.clusterIPs: Invalid value: ["10.0.0.0"]: failed to allocate IP 10.0.0.0: the provided network does not match the current range',
    ],
    [
      'two families in a single-stack cluster',
      { ipFamilyPolicy: 'RequireDualStack' },
      'spec.ipFamilyPolicy: Invalid value: "RequireDualStack": this cluster is not configured for dual-stack services',
    ],
    [
      'a family that is not configured',
      { ipFamilies: ['IPv6'] },
      'spec.ipFamilies[0]: Invalid value: "IPv6": not configured on this cluster',
    ],
    [
      'an address of another family',
      { clusterIP: 'fd00::5' },
      'spec.clusterIPs[0]: Invalid value: ["fd00::5"]: IPv6 is not configured on this cluster',
    ],
    [
      'two families with policy SingleStack',
      { ipFamilies: ['IPv4', 'IPv6'], ipFamilyPolicy: 'SingleStack' },
      "spec.ipFamilyPolicy: Invalid value: \"SingleStack\": must be 'RequireDualStack' or 'PreferDualStack' when multiple IP families are specified",
    ],
    [
      'a port out of range',
      { type: 'NodePort', ports: [{ port: 80, nodePort: 80 }] },
      'spec.ports[0].nodePort: Invalid value: 80: provided port is not in the valid range. The range of valid ports is 30000-32767',
    ],
    [
      'a repeated node port',
      {
        type: 'NodePort',
        ports: [
          { port: 80, nodePort: 30001 },
          { port: 81, nodePort: 30001 },
        ],
      },
      'spec.ports[1].nodePort: Invalid value: 30001: provided port is already allocated',
    ],
  ]
  for (const [what, spec, message] of refusals) {
    it(`fails with ${what}, and releases everything`, async () => {
      const world = createWorld({}, createTestBook('10.0.0.5'))
      await assert.rejects(world.write({ ports, ...spec }), { message: `Service "s" is invalid: ${message}` })
      assert.deepEqual([[...world.book.names], await world.taken()], [['10.0.0.5'], []])
    })
  }

  it('reports that no address is left', async () => {
    const world = createWorld({ serviceCidrs: [parseCidr('10.0.0.0/30') as Cidr] })
    await world.write({ ports })
    await world.write({ ports })
    await assert.rejects(world.write({ ports }), {
      message: 'Internal error occurred: failed to allocate a serviceIP for Service "s": range is full',
    })
  })

  it('assigns addresses of two families if preferred or required, in the requested order', async () => {
    const world = createWorld({ serviceCidrs: dualStack })
    const preferred = await world.write({ ports, ipFamilyPolicy: 'PreferDualStack' })
    assert.deepEqual(preferred.spec.ipFamilies, ['IPv4', 'IPv6'])
    assert.equal(preferred.spec.clusterIPs?.length, 2)
    const required = await world.write({ ports, ipFamilyPolicy: 'RequireDualStack', ipFamilies: ['IPv6'] })
    assert.deepEqual(
      [required.spec.ipFamilies, required.spec.clusterIP?.startsWith('fd00::')],
      [['IPv6', 'IPv4'], true],
    )
    assert.equal(world.book.names.size, 4)
  })

  it('assigns no address to a headless Service, which may have an unconfigured family without a selector', async () => {
    const world = createWorld()
    const open = await world.write({ ports, clusterIP: 'None' })
    assert.deepEqual([open.spec.ipFamilies, open.spec.ipFamilyPolicy], [['IPv4', 'IPv6'], 'RequireDualStack'])
    const selecting = await world.write({ ports, clusterIP: 'None', selector: { a: 'b' } })
    assert.deepEqual([selecting.spec.ipFamilies, selecting.spec.ipFamilyPolicy], [['IPv4'], 'SingleStack'])
    assert.equal(world.book.names.size, 0)
  })

  it('shares a node port between protocols of a port, even if a later port requests it', async () => {
    const world = createWorld()
    const twice = [
      { name: 'a', port: 53 },
      { name: 'b', port: 53, protocol: 'UDP' },
    ]
    const { spec } = await world.write({ type: 'NodePort', ports: twice })
    assert.equal(spec.ports?.[0]?.nodePort, spec.ports?.[1]?.nodePort)
    const requested = await world.write({ type: 'NodePort', ports: [twice[0], { ...twice[1], nodePort: 30077 }] })
    assert.deepEqual(
      requested.spec.ports?.map(({ nodePort }) => nodePort),
      [30077, 30077],
    )
  })

  it('assigns a port for health checks, and none if node ports are disabled', async () => {
    const world = createWorld()
    const balanced = await world.write({ type: 'LoadBalancer', ports, externalTrafficPolicy: 'Local' })
    assert.notEqual(balanced.spec.healthCheckNodePort ?? 0, 0)
    const bare = await world.write({ type: 'LoadBalancer', ports, allocateLoadBalancerNodePorts: false })
    assert.equal(bare.spec.ports?.[0]?.nodePort, undefined)
    assert.equal((await world.taken()).length, 2)
  })

  it('releases addresses and ports of a deleted Service', async () => {
    const world = createWorld()
    const service = await world.write({ type: 'LoadBalancer', ports, externalTrafficPolicy: 'Local' })
    await world.release(service)
    assert.deepEqual([world.book.names.size, await world.taken()], [0, []])
  })

  it('releases addresses and ports after a change of type is stored', async () => {
    const world = createWorld()
    const old = await world.write({ type: 'NodePort', ports })
    const name = { type: 'ExternalName', externalName: 'x.y' }
    await world.write(name, old, { written: false })
    assert.deepEqual([world.book.names.size, (await world.taken()).length], [1, 1])
    const named = await world.write(name, old)
    assert.deepEqual([world.book.names.size, await world.taken()], [0, []])
    const again = await world.write({ ports }, named)
    assert.equal(world.book.names.has(again.spec.clusterIP ?? ''), true)
  })

  it('assigns and releases the second cluster IP', async () => {
    const world = createWorld({ serviceCidrs: dualStack })
    const single = await world.write({ ports })
    const dual = await world.write({ ports, ipFamilyPolicy: 'RequireDualStack' }, single)
    assert.deepEqual([dual.spec.clusterIPs?.length, world.book.names.size], [2, 2])
    const back = await world.write({ ...dual.spec, ipFamilyPolicy: 'SingleStack' }, dual)
    assert.deepEqual([back.spec.clusterIPs, back.spec.ipFamilies], [[single.spec.clusterIP], ['IPv4']])
    assert.deepEqual([...world.book.names], [single.spec.clusterIP])
    await assert.rejects(world.write({ ...dual.spec, clusterIPs: dual.spec.clusterIPs?.slice(0, 1) }, dual), {
      message: /must be 'SingleStack' to release the secondary cluster IP/,
    })
  })

  it('keeps a PreferDualStack Service unchanged if a family is not configured', () => {
    const spec = {
      type: 'ClusterIP',
      ipFamilyPolicy: 'PreferDualStack',
      clusterIPs: ['10.0.0.1'],
      ipFamilies: ['IPv4'],
    }
    assert.deepEqual(planIps({ ...spec }, { ...spec }), { indexes: [], released: [] })
  })

  it('assigns nothing on a dry run, and returns placeholder values that no Service can have', async () => {
    const world = createWorld()
    const { spec } = await world.write({ type: 'NodePort', ports }, undefined, { dryRun: true })
    assert.deepEqual([spec.clusterIP, spec.ports?.[0]?.nodePort], ['10.0.0.0', 32769])
    assert.deepEqual([world.book.names.size, await world.taken()], [0, []])
  })

  it('uses addresses of additional ServiceCIDRs while they are ready', async () => {
    const range = (name: string, cidr: string, status = 'True'): ServiceCIDR => ({
      metadata: { name },
      spec: { cidrs: [cidr] },
      status: { conditions: [{ type: 'Ready', status, reason: 'r', message: '', lastTransitionTime: null } as never] },
    })
    const objects = [range('kubernetes', '10.0.0.0/30'), range('more', '10.9.0.0/24', 'False')]
    const world = createWorld({ rangeObjects: () => objects })
    await world.write({ ports })
    await world.write({ ports })
    await assert.rejects(world.write({ ports }), /range is full/)
    objects[1] = range('more', '10.9.0.0/24')
    assert.match((await world.write({ ports })).spec.clusterIP ?? '', /^10\.9\.0\./)
  })

  it('tries another address after a conflict', async () => {
    const book = createTestBook()
    const blind = { ...book, has: () => false }
    const world = createWorld({ book: blind, serviceCidrs: [parseCidr('10.0.0.0/30') as Cidr] }, book)
    const ips = [await world.write({ ports }), await world.write({ ports })].map(({ spec }) => spec.clusterIP)
    assert.deepEqual(new Set(ips), new Set(['10.0.0.1', '10.0.0.2']))
  })

  it('continues after a failed release, and reports the failure', async () => {
    const reports: string[] = []
    const book = { ...createTestBook(), delete: async () => Promise.reject(new Error('down')) }
    const world = createWorld({ book, report: (message) => reports.push(message) })
    const service = await world.write({ ports, clusterIP: '10.0.0.9' })
    await world.release(service)
    assert.deepEqual(reports, ['Failed to release the cluster IP 10.0.0.9; the repair will release it'])
  })

  it('never assigns a value twice, for any sequence of writes', async () => {
    const step = fc.record({
      what: fc.constantFrom('create', 'change', 'delete', 'fail'),
      at: fc.nat(7),
      type: fc.constantFrom('ClusterIP', 'NodePort', 'LoadBalancer', 'ExternalName'),
      policy: fc.constantFrom('SingleStack', 'PreferDualStack'),
    })
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 25 }), async (steps) => {
        const world = createWorld({ serviceCidrs: dualStack })
        const alive: Service[] = []
        for (const { what, at, type, policy } of steps) {
          const named = { externalName: 'x.y' }
          const local = type === 'LoadBalancer' ? { externalTrafficPolicy: 'Local' } : {}
          const spec = { type, ports, ...(type === 'ExternalName' ? named : { ipFamilyPolicy: policy, ...local }) }
          const old = alive[at]
          if (what === 'create') alive.push(await world.write(deepCopy(spec)))
          if (what === 'fail') await world.write(deepCopy(spec), old, { written: false })
          if (what === 'change' && old !== undefined) alive[at] = await world.write(deepCopy(spec), old)
          if (what === 'delete' && old !== undefined) await world.release(alive.splice(at, 1)[0]!)
        }
        const ips = alive.flatMap(({ spec }) => spec.clusterIPs ?? [])
        const allocated = alive.flatMap(({ spec }) => [
          ...new Set((spec.ports ?? []).flatMap(({ nodePort }) => nodePort ?? [])),
          ...(spec.healthCheckNodePort ? [spec.healthCheckNodePort] : []),
        ])
        assert.deepEqual([...world.book.names].sort(), ips.sort())
        assert.deepEqual(
          await world.taken(),
          allocated.sort((a, b) => a - b),
        )
        assert.equal(new Set(ips).size, ips.length)
        assert.equal(new Set(allocated).size, allocated.length)
      }),
      { numRuns: 60 },
    )
  })

  it('assigns no port of the lower band, which is for requested ports', () => {
    assert.deepEqual([16, 17, 1024, 2768, 10_000].map(staticBand), [0, 16, 32, 86, 128])
  })
})
