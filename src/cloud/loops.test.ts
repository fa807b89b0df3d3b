import assert from 'node:assert/strict'
import { test } from 'node:test'

import type { Node } from '#apis/core/v1.ts'
import type { IpRoute } from '#lib/net/iproute.ts'

import { createMachineRoutes } from './local.ts'
import { loopsFor } from './loops.ts'
import { addressesFor, initialized, labelsToReconcile } from './node-loop.ts'
import { loadProvider } from './providers.ts'
import { planRoutes } from './route-loop.ts'

const SETTINGS = {
  clusterName: 'c',
  clusterCidrs: [],
  hasRoutes: true,
  nodeWorkers: 1,
  serviceWorkers: 1,
  nodeUpdateMs: 1,
  nodeMonitorMs: 1,
  routeMs: 1,
}

const nodeOf = (name: string, podCIDRs: string[] = [], more: object = {}): Node =>
  ({ metadata: { name }, spec: { podCIDRs }, status: {}, ...more }) as unknown as Node

test('cloud controllers start only if the cloud provider supports them', async () => {
  const names = async (provider: string, more: object = {}): Promise<string[]> => {
    const found = await loadProvider(provider, '/', { config: undefined })
    return loopsFor(found, { ...SETTINGS, ...more }).map(({ name }) => name)
  }
  assert.deepEqual(await names('none'), [])
  const all = [
    'cloud-node-controller',
    'cloud-node-lifecycle-controller',
    'node-route-controller',
    'service-lb-controller',
  ]
  assert.deepEqual(await names('local'), all)
  assert.equal((await names('local', { hasRoutes: false })).includes('node-route-controller'), false)
})

test('a node gets its cloud metadata and loses the uninitialized taint', () => {
  const taints = [
    { key: 'node.cloudprovider.kubernetes.io/uninitialized', effect: 'NoSchedule' },
    { key: 'x', effect: 'NoSchedule' },
  ]
  const node = nodeOf('a', [], { spec: { taints } })
  const labels = { 'example.com/rack': 'r', 'x.k8s.io/no': '1', 'kubernetes.io/no': '1' }
  const { spec, metadata } = initialized(node, { providerId: 'cloud://1', instanceType: 'big', zone: 'z', labels })
  assert.deepEqual([spec.providerID, spec.taints?.map(({ key }) => key)], ['cloud://1', ['x']])
  assert.deepEqual(Object.entries(metadata.labels ?? {}), [
    ['example.com/rack', 'r'],
    ['node.kubernetes.io/instance-type', 'big'],
    ['beta.kubernetes.io/instance-type', 'big'],
    ['topology.kubernetes.io/zone', 'z'],
    ['failure-domain.beta.kubernetes.io/zone', 'z'],
  ])
})

test('deprecated zone labels of a node take precedence over different current labels', () => {
  const labelled = (labels: Record<string, string>): Node => nodeOf('a', [], { metadata: { name: 'a', labels } })
  const older = { 'failure-domain.beta.kubernetes.io/zone': 'z', 'beta.kubernetes.io/instance-type': 'big' }
  assert.deepEqual(labelsToReconcile(labelled({ ...older, 'topology.kubernetes.io/zone': 'y' })), {
    'topology.kubernetes.io/zone': 'z',
    'node.kubernetes.io/instance-type': 'big',
  })
  assert.equal(labelsToReconcile(labelled({ 'topology.kubernetes.io/zone': 'y' })), undefined)
})

test('node addresses come from the cloud; the --node-ip address is first and the only one of its type', () => {
  const hostname = { type: 'Hostname', address: 'a' }
  const [one, two] = [
    { type: 'InternalIP', address: '10.0.0.1' },
    { type: 'InternalIP', address: '10.0.0.2' },
  ]
  const node = nodeOf('a', [], {
    metadata: { name: 'a', annotations: { 'alpha.kubernetes.io/provided-node-ip': '10.0.0.2' } },
    status: { addresses: [hostname] },
  })
  const outer = { type: 'ExternalIP', address: '203.0.113.1' }
  assert.deepEqual(addressesFor(node, { providerId: '', addresses: [outer, one, two] }), [two, outer, hostname])
  assert.throws(() => addressesFor(node, { providerId: '', addresses: [one] }), /matches ip: 10\.0\.0\.2$/)
  assert.equal(addressesFor(nodeOf('a'), { providerId: '' }), undefined)
  assert.equal(
    addressesFor(nodeOf('a', [], { status: { addresses: [one] } }), { providerId: '', addresses: [one] }),
    undefined,
  )
})

test('the route controller creates routes to the pods of each node, and keeps routes of others', () => {
  const routes = [
    { node: 'a', destination: '10.244.0.0/24', addresses: [] },
    { node: 'gone', destination: '10.244.9.0/24', addresses: [] },
    { node: 'b', destination: '10.244.1.0/24', addresses: [], isBlackhole: true },
    { node: 'x', destination: '192.168.0.0/24', addresses: [] },
    { node: '', destination: '0.0.0.0/0', addresses: [] },
    {
      node: 'c',
      destination: '10.244.2.0/24',
      addresses: [{ type: 'InternalIP', address: '1.1.1.1' }],
      tellsAddresses: true,
    },
  ]
  const moved = nodeOf('c', ['10.244.2.0/24'], { status: { addresses: [{ type: 'InternalIP', address: '2.2.2.2' }] } })
  const nodes = [nodeOf('a', ['10.244.0.0/24']), nodeOf('b', ['10.244.1.0/24']), moved]
  const { create, remove } = planRoutes(nodes, routes, ['10.244.0.0/16'])
  assert.deepEqual(
    create.map(({ node, destination }) => [node, destination]),
    [
      ['b', '10.244.1.0/24'],
      ['c', '10.244.2.0/24'],
    ],
  )
  assert.deepEqual(
    remove.map(({ destination }) => destination),
    ['10.244.9.0/24', '10.244.1.0/24', '10.244.2.0/24'],
  )
})

test('the local cloud provider recognizes its routes by their protocol, and creates no route to this machine', async () => {
  const commandsRun: string[] = []
  const table = [
    { dst: '10.244.1.0/24', gateway: '192.168.7.2', protocol: '72' },
    { dst: 'default', gateway: '192.168.7.254', protocol: 'static' },
  ]
  const ip = {
    routes: (family: number) => Promise.resolve(family === 4 ? table : []),
    links: () => Promise.resolve([{ addr_info: [{ local: '192.168.7.1' }] }]),
    ip: (commands: readonly (readonly string[])[]) =>
      Promise.resolve(void commandsRun.push(...commands.map((words) => words.join(' ')))),
  } as unknown as IpRoute
  const routes = createMachineRoutes(ip)
  const { signal } = new AbortController()
  const to = (node: string, address: string): Parameters<typeof routes.create>[1] => ({
    node,
    destination: node === 'a' ? '10.244.0.0/24' : '10.244.1.0/24',
    addresses: [{ type: 'InternalIP', address }],
  })
  await routes.create('c', to('a', '192.168.7.1'), signal)
  await routes.create('c', to('b', '192.168.7.2'), signal)
  await assert.rejects(routes.create('c', to('b', 'fd00::2'), signal), /no address of that family/)
  assert.deepEqual(await routes.list('c', signal), [
    {
      name: '10.244.1.0/24',
      node: 'b',
      destination: '10.244.1.0/24',
      addresses: [{ type: 'InternalIP', address: '192.168.7.2' }],
      tellsAddresses: true,
    },
  ])
  await routes.remove('c', to('b', ''), signal)
  assert.deepEqual(commandsRun, [
    'route replace 10.244.1.0/24 via 192.168.7.2 proto 72',
    'route delete 10.244.1.0/24 proto 72',
  ])
})
