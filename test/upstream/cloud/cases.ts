/**
 * The test steps of `cloud-controllers.ts`: changes of a cluster and its cloud, and the condition that ends each step.
 */
import { type Node, Nodes, type Service, Services } from '#apis/core/v1.ts'
import type { ApiClient } from '#client/api-client.ts'

import type { PretendCloud } from './pretend-cloud.ts'

export interface Side {
  readonly client: ApiClient
  readonly cloud: PretendCloud
}

export interface CloudCase {
  readonly name: string
  readonly act: (side: Side) => Promise<void>
  /** It has come about. Where nothing is to happen, this is so at once, and the script gives it a while. */
  readonly isDone?: (side: Side) => Promise<boolean>
}

const UNINITIALIZED = 'node.cloudprovider.kubernetes.io/uninitialized'
const ip = (address: string, type = 'InternalIP'): { type: string; address: string } => ({ type, address })

async function addNode({ client }: Side, name: string, more: Partial<Node> & { readonly podCIDR?: string } = {}) {
  const { podCIDR, metadata = {}, spec = {} } = more
  const range = podCIDR === undefined ? {} : { podCIDR, podCIDRs: [podCIDR] }
  const taints = [{ key: UNINITIALIZED, value: 'true', effect: 'NoSchedule' }]
  await client.create(Nodes, { metadata: { ...metadata, name }, spec: { taints, ...range, ...spec } })
}

const nodeOf = (side: Side, name: string): Promise<Node> => side.client.get(Nodes, { name })
const isOpen = async (side: Side, name: string): Promise<boolean> =>
  !(await nodeOf(side, name)).spec.taints?.some(({ key }) => key === UNINITIALIZED)
const isThere = async ({ client }: Side, name: string): Promise<boolean> =>
  (await client.list(Nodes)).items.some(({ metadata }) => metadata.name === name)
const hasTaint = async (side: Side, name: string, part: string): Promise<boolean> =>
  (await nodeOf(side, name)).spec.taints?.some(({ key }) => key.includes(part)) ?? false

async function report(side: Side, name: string, ready: string): Promise<void> {
  const now = '2026-01-01T00:00:00Z'
  const conditions = [{ type: 'Ready', status: ready, lastHeartbeatTime: now, lastTransitionTime: now }]
  const where = { name, subresource: 'status' }
  await side.client.patch(Nodes, where, { type: 'strategic', value: { status: { conditions } } })
}

const addService = ({ client }: Side, name: string, spec: object = {}): Promise<Service> =>
  client.create(Services, {
    metadata: { name, namespace: 'default' },
    spec: { type: 'LoadBalancer', ports: [{ name: 'http', port: 80, targetPort: 8080 }], ...spec },
  })
const at = (name: string): { namespace: string; name: string } => ({ namespace: 'default', name })
const change = async ({ client }: Side, name: string, value: object): Promise<void> =>
  void (await client.patch(Services, at(name), { type: 'merge', value }))
const hasStatus = async ({ client }: Side, name: string): Promise<boolean> =>
  ((await client.get(Services, at(name))).status?.loadBalancer?.ingress?.length ?? 0) > 0
const lastDeed = (side: Side, start: string): Promise<boolean> =>
  Promise.resolve(side.cloud.deeds.some((deed) => deed.startsWith(start)))
const unavailable = async (side: Side, name: string): Promise<string | undefined> =>
  (await nodeOf(side, name)).status?.conditions?.find(({ type }) => type === 'NetworkUnavailable')?.reason

export const CASES: readonly CloudCase[] = [
  {
    name: 'a node is told its machine, zone, region, further labels and addresses',
    async act(side) {
      const labels = { 'example.com/rack': 'r1', 'cloud.k8s.io/not': 'x', 'example.com/own': 'cloud' }
      const addresses = [ip('10.1.0.1'), ip('203.0.113.1', 'ExternalIP')]
      const where = { providerId: 'pretend://a', instanceType: 'big', zone: 'z1', region: 'r' }
      side.cloud.machines.set('a', { ...where, labels, addresses })
      await addNode(side, 'a', { metadata: { labels: { 'example.com/own': 'node' } }, podCIDR: '10.244.1.0/24' })
      await report(side, 'a', 'True')
    },
    isDone: (side) => isOpen(side, 'a'),
  },
  {
    name: 'an address that its kubelet was told to use is the only one of its type',
    async act(side) {
      const addresses = [ip('10.1.0.2'), ip('10.1.0.22'), ip('203.0.113.2', 'ExternalIP'), ip('b.example', 'Hostname')]
      side.cloud.machines.set('b', { providerId: 'pretend://b', addresses })
      const annotations = { 'alpha.kubernetes.io/provided-node-ip': '10.1.0.22' }
      await addNode(side, 'b', { metadata: { annotations }, podCIDR: '10.244.2.0/24' })
      await report(side, 'b', 'True')
    },
    isDone: (side) => isOpen(side, 'b'),
  },
  {
    name: 'nodes wait whose address is none of the cloud’s, that have no provider id, of which nothing is known, or that fail',
    async act(side) {
      const annotations = { 'alpha.kubernetes.io/provided-node-ip': '10.9.9.9' }
      side.cloud.machines.set('wrong-ip', { providerId: 'pretend://w', addresses: [ip('10.1.0.3')] })
      side.cloud.machines.set('nameless', { addresses: [ip('10.1.0.4')] })
      side.cloud.machines.set('unknown', { isUnknown: true })
      side.cloud.failures.set('metadata failing', 'no answer')
      await addNode(side, 'wrong-ip', { metadata: { annotations } })
      for (const name of ['nameless', 'unknown', 'failing']) await addNode(side, name)
    },
  },
  {
    name: 'one with a provider id of its own keeps it; the nameless one is open once it has a name',
    async act(side) {
      side.cloud.machines.set('own', { providerId: 'pretend://other', addresses: [ip('10.1.0.5')] })
      side.cloud.machines.set('nameless', { providerId: 'pretend://n', addresses: [ip('10.1.0.4')] })
      await addNode(side, 'own', { spec: { providerID: 'pretend://own' } })
    },
    isDone: async (side) => (await isOpen(side, 'own')) && (await isOpen(side, 'nameless')),
  },
  {
    name: 'addresses follow the cloud',
    act: (side) => {
      const known = side.cloud.machines.get('own')
      side.cloud.machines.set('own', { ...known, addresses: [ip('10.1.0.55')] })
      return Promise.resolve()
    },
    isDone: async (side) => (await nodeOf(side, 'own')).status?.addresses?.[0]?.address === '10.1.0.55',
  },
  {
    name: 'labels of before are followed by those that took their place',
    async act({ client }) {
      const labels = { 'failure-domain.beta.kubernetes.io/zone': 'z2', 'beta.kubernetes.io/instance-type': 'small' }
      await client.patch(Nodes, { name: 'own' }, { type: 'merge', value: { metadata: { labels } } })
    },
    isDone: async (side) => (await nodeOf(side, 'own')).metadata.labels?.['topology.kubernetes.io/zone'] === 'z2',
  },
  {
    name: 'a machine that is off is marked',
    async act(side) {
      side.cloud.machines.set('b', { ...side.cloud.machines.get('b'), isShutDown: true })
      await report(side, 'b', 'False')
    },
    isDone: (side) => hasTaint(side, 'b', 'shutdown'),
  },
  {
    name: 'and no more once it is on',
    async act(side) {
      side.cloud.machines.set('b', { ...side.cloud.machines.get('b'), isShutDown: false })
      await report(side, 'b', 'True')
    },
    isDone: async (side) => !(await hasTaint(side, 'b', 'shutdown')),
  },
  {
    name: 'one that the cloud cannot tell of stays',
    async act(side) {
      side.cloud.failures.set('exists own', 'no answer')
      await report(side, 'own', 'Unknown')
    },
  },
  {
    name: 'one that is gone is deleted, others that are not ready stay',
    async act(side) {
      side.cloud.failures.delete('exists own')
      side.cloud.machines.delete('own')
    },
    isDone: async (side) => !(await isThere(side, 'own')),
  },
  {
    name: 'routes that are in the way are removed, those of others are not',
    act({ cloud }) {
      const route = { addresses: [], tellsAddresses: true }
      for (const [node, destination] of [
        ['gone', '10.244.7.0/24'],
        ['x', '192.168.0.0/24'],
        ['x', '0.0.0.0/0'],
      ] as const)
        cloud.routes.set(`${node} ${destination}`, { ...route, name: destination, node, destination })
      const hole = { ...route, name: 'hole', node: 'y', destination: '10.244.8.0/24', isBlackhole: true }
      cloud.routes.set('y 10.244.8.0/24', hole)
      return Promise.resolve()
    },
    isDone: async (side) =>
      (await lastDeed(side, 'no route 10.244.7.')) && (await lastDeed(side, 'no route 10.244.8.')),
  },
  {
    name: 'a route that cannot be made keeps pods off its node',
    async act(side) {
      side.cloud.failures.set('createRoute far', 'table is full')
      side.cloud.machines.set('far', { providerId: 'pretend://far', addresses: [ip('10.1.0.6')] })
      await addNode(side, 'far', { podCIDR: '10.244.6.0/24' })
      await report(side, 'far', 'True')
    },
    isDone: async (side) => (await unavailable(side, 'far')) === 'NoRouteCreated' && (await isOpen(side, 'far')),
  },
  {
    name: 'until it can',
    act: ({ cloud }) => Promise.resolve(void cloud.failures.delete('createRoute far')),
    isDone: async (side) => (await unavailable(side, 'far')) === 'RouteCreated',
  },
  {
    name: 'a node that has other addresses is routed to there',
    act: ({ cloud }) => {
      cloud.machines.set('far', { ...cloud.machines.get('far'), addresses: [ip('10.1.0.66')] })
      return Promise.resolve()
    },
    isDone: (side) =>
      Promise.resolve(side.cloud.deeds.some((deed) => deed.startsWith('route') && deed.includes('10.1.0.66'))),
  },
  {
    name: 'a Service gets a balancer; one of a class, and one that is balanced elsewhere, do not',
    async act(side) {
      side.cloud.failures.set('ensure default/elsewhere', 'elsewhere')
      await addService(side, 'elsewhere')
      await addService(side, 'classy', { loadBalancerClass: 'example.com/mine' })
      await addService(side, 'web')
    },
    isDone: (side) => hasStatus(side, 'web'),
  },
  {
    name: 'what no balancer is made of changes nothing',
    act: (side) => change(side, 'web', { spec: { selector: { app: 'web' }, internalTrafficPolicy: 'Local' } }),
  },
  {
    name: 'another port does',
    act: (side) =>
      change(side, 'web', {
        spec: {
          ports: [
            { name: 'http', port: 80 },
            { name: 'tls', port: 443 },
          ],
        },
      }),
    isDone: (side) => lastDeed(side, 'ensure default/web: '),
  },
  {
    name: 'so do annotations and source ranges',
    async act(side) {
      await change(side, 'web', { metadata: { annotations: { 'example.com/kind': 'fast' } } })
    },
    isDone: (side) => lastDeed(side, 'ensure default/web: '),
  },
  {
    name: 'a node more',
    async act(side) {
      side.cloud.machines.set('c', { providerId: 'pretend://c', addresses: [ip('10.1.0.7')] })
      await addNode(side, 'c', { spec: { providerID: 'pretend://c' } })
      await report(side, 'c', 'True')
    },
    isDone: async (side) => (await isOpen(side, 'c')) && (await lastDeed(side, 'update default/web')),
  },
  {
    name: 'a node that is left out',
    async act({ client }) {
      const labels = { 'node.kubernetes.io/exclude-from-external-load-balancers': '' }
      await client.patch(Nodes, { name: 'c' }, { type: 'merge', value: { metadata: { labels } } })
    },
    isDone: (side) => lastDeed(side, 'update default/web'),
  },
  {
    name: 'nodes that cannot be told',
    async act(side) {
      side.cloud.failures.set('update default/web', 'no room')
      const labels = { 'node.kubernetes.io/exclude-from-external-load-balancers': null }
      await side.client.patch(Nodes, { name: 'c' }, { type: 'merge', value: { metadata: { labels } } })
    },
    isDone: (side) => lastDeed(side, 'ensure default/web'),
  },
  {
    name: 'a balancer that cannot be had',
    async act(side) {
      side.cloud.failures.set('ensure default/poor', 'quota exceeded')
      await addService(side, 'poor')
    },
  },
  {
    name: 'and then can',
    act: ({ cloud }) => Promise.resolve(void cloud.failures.delete('ensure default/poor')),
    isDone: (side) => hasStatus(side, 'poor'),
  },
  {
    name: 'a Service that wants none any more',
    act: (side) => change(side, 'web', { spec: { type: 'ClusterIP' } }),
    isDone: (side) => lastDeed(side, 'remove default/web'),
  },
  {
    name: 'one whose balancer cannot be removed stays',
    async act(side) {
      side.cloud.failures.set('remove default/poor', 'busy')
      await side.client.delete(Services, at('poor'))
    },
  },
  {
    name: 'and goes when it can',
    act: ({ cloud }) => Promise.resolve(void cloud.failures.delete('remove default/poor')),
    isDone: async ({ client }) => (await client.list(Services)).items.every(({ metadata }) => metadata.name !== 'poor'),
  },
]
