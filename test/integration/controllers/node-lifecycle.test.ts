/**
 * Tests how unresponsive nodes are handled on a complete API server with a virtual clock: conditions, taints, pods and
 * zones, to the second.
 */
import assert from 'node:assert/strict'
import { afterEach, beforeEach, describe, it } from 'node:test'

import fc from 'fast-check'

import { Leases } from '#apis/coordination/v1.ts'
import { Events, Namespaces, type Node, Nodes, Pods } from '#apis/core/v1.ts'
import { ApiClient, type Transport } from '#client/api-client.ts'
import { nodeLifecycleController } from '#controllers/nodes/node-lifecycle/controller.ts'
import { type RunningControllers, startControllers } from '#kits/controllers/start.ts'
import { createVirtualClock, every, realClock, type Timer, type VirtualClock } from '#lib/clock.ts'
import { HttpError } from '#lib/http/http-error.ts'
import { createLog } from '#lib/log/log.ts'
import { createSeededRandom } from '#lib/random.ts'
import { timeOf } from '#meta/time.ts'
import { type ControlPlane, startControlPlane } from '#testing/control-plane.ts'

let clock: VirtualClock
let plane: ControlPlane
let controllers: RunningControllers
let client: ApiClient
let beats: Map<string, Timer>
const namespace = 'node'
const MASTER = { name: 'tester', uid: '', groups: ['system:masters', 'system:authenticated'], extra: {} }

beforeEach(async () => {
  clock = createVirtualClock(Date.UTC(2026, 0, 1))
  plane = await startControlPlane({ clock, settings: { 'disable-admission-plugins': ['ServiceAccount'] } })
  controllers = startControllers(plane, clock, [nodeLifecycleController])
  client = controllers.client
  beats = new Map()
  await client.create(Namespaces, { metadata: { name: namespace } })
  await clock.advance(1000)
})

afterEach(async () => {
  for (const timer of beats.values()) timer.cancel()
  await controllers.stop()
  await plane.stop()
})

const status = (ready: string): object => {
  const now = timeOf(clock.now())
  const told = (type: string, value: string): object => ({
    type,
    status: value,
    reason: 'r',
    message: 'm',
    lastHeartbeatTime: now,
    lastTransitionTime: now,
  })
  return { conditions: [told('MemoryPressure', 'False'), told('Ready', ready)] }
}

const post = async (name: string, ready = 'True'): Promise<void> => {
  await client.patch(Nodes, { name, subresource: 'status' }, { type: 'merge', value: { status: status(ready) } })
}

/** A node that renews its lease every ten seconds from now on. */
const live = async (name: string, labels: Record<string, string> = {}): Promise<void> => {
  await client.create(Nodes, { metadata: { name, labels } })
  await post(name)
  const where = { namespace: 'kube-node-lease', name }
  const renewTime = (): string => timeOf(clock.now()).replace('Z', '.000000Z')
  await client.create(Leases, { metadata: where, spec: { holderIdentity: name, renewTime: renewTime() } })
  const renew = (): void =>
    void client.patch(Leases, where, { type: 'merge', value: { spec: { renewTime: renewTime() } } })
  beats.set(name, every(clock, 10_000, renew))
}

const die = (...names: string[]): void => {
  for (const name of names) beats.get(name)?.cancel()
}

const taintsOf = ({ spec }: Node): string[] =>
  (spec.taints ?? []).map(({ key, effect }) => `${key.replace('node.kubernetes.io/', '')}:${effect}`)

const taints = async (name: string): Promise<string[]> => taintsOf(await client.get(Nodes, { name }))

const conditions = async (name: string): Promise<string[]> => {
  const {
    status: { conditions: found = [] },
  } = await client.get(Nodes, { name })
  return found.map(({ type, status: value, reason, message }) => `${type} ${value} ${reason} ${message}`)
}

const told = async (kind: string): Promise<string[]> => {
  const { items } = await client.list(Events)
  return items
    .filter(({ involvedObject }) => involvedObject.kind === kind)
    .map(({ type, reason, message, reportingComponent }) => `${type} ${reason} ${reportingComponent} ${message}`)
    .toSorted()
}

const GONE = 'Kubelet stopped posting node status.'
const NEVER = 'Kubelet never posted node status.'

describe('unresponsive node in the node lifecycle controller', () => {
  it('gets conditions Unknown and a taint after its grace period, and its pods become not ready', async () => {
    await live('n1')
    await live('other')
    const containers = [{ name: 'c', image: 'i', resources: {} }]
    for (const name of ['ready', 'not-ready'])
      await client.create(Pods, { metadata: { namespace, name }, spec: { containers, nodeName: 'n1' } })
    const ready = [
      { type: 'Ready', status: 'True', reason: 'mine' },
      { type: 'Initialized', status: 'True' },
    ]
    const value = { status: { conditions: ready } }
    await client.patch(Pods, { namespace, name: 'ready', subresource: 'status' }, { type: 'merge', value })
    await clock.advance(30_000)
    assert.deepEqual(await taints('n1'), [])
    die('n1')
    await clock.advance(45_000)
    assert.deepEqual(await conditions('n1'), ['MemoryPressure False r m', 'Ready True r m'])
    await clock.advance(15_000)
    assert.deepEqual(await conditions('n1'), [
      `MemoryPressure Unknown NodeStatusUnknown ${GONE}`,
      `Ready Unknown NodeStatusUnknown ${GONE}`,
      `DiskPressure Unknown NodeStatusNeverUpdated ${NEVER}`,
      `PIDPressure Unknown NodeStatusNeverUpdated ${NEVER}`,
    ])
    assert.deepEqual(await taints('n1'), ['unreachable:NoSchedule', 'unreachable:NoExecute'])
    const node = await client.get(Nodes, { name: 'n1' })
    assert.ok((node.spec.taints ?? []).every(({ timeAdded }) => timeAdded !== undefined))
    const pod = await client.get(Pods, { namespace, name: 'ready' })
    assert.deepEqual(
      pod.status.conditions?.map((condition) => `${condition.type} ${condition.status} ${condition.reason ?? ''}`),
      ['Ready False mine', 'Initialized True '],
    )
    assert.deepEqual(await told('Pod'), ['Warning NodeNotReady node-controller Node is not ready'])
    assert.deepEqual(await told('Node'), [
      'Normal NodeNotReady node-controller Node n1 status is now: NodeNotReady',
      'Normal RegisteredNode node-controller Node n1 event: Registered Node n1 in Controller',
      'Normal RegisteredNode node-controller Node other event: Registered Node other in Controller',
    ])
    const { items } = await client.list(Events, { namespace: 'default' })
    assert.equal(items[0]?.involvedObject.uid, node.metadata.uid)
  })

  it('loses both taints when it reports its status again', async () => {
    await live('n1')
    await live('other')
    die('n1')
    await clock.advance(70_000)
    assert.equal((await taints('n1')).length, 2)
    await post('n1')
    await clock.advance(6000)
    assert.deepEqual(await taints('n1'), [])
  })

  it('has a startup grace period of a minute', async () => {
    await live('other')
    await client.create(Nodes, { metadata: { name: 'n1' } })
    assert.deepEqual(await taints('n1'), ['not-ready:NoSchedule'])
    await clock.advance(59_000)
    assert.deepEqual(await conditions('n1'), [])
    await clock.advance(7000)
    const unknown = ['Ready', 'MemoryPressure', 'DiskPressure', 'PIDPressure']
    assert.deepEqual(
      await conditions('n1'),
      unknown.map((type) => `${type} Unknown NodeStatusNeverUpdated ${NEVER}`),
    )
    const {
      metadata,
      status: { conditions: found = [] },
    } = await client.get(Nodes, { name: 'n1' })
    assert.equal(found[0]?.lastHeartbeatTime, metadata.creationTimestamp)
    assert.deepEqual(await taints('n1'), ['unreachable:NoSchedule', 'unreachable:NoExecute'])
  })

  it('makes pods that are assigned later not ready', async () => {
    await live('n1')
    await live('other')
    die('n1')
    await clock.advance(70_000)
    const containers = [{ name: 'c', image: 'i', resources: {} }]
    await client.create(Pods, { metadata: { namespace, name: 'late' }, spec: { containers } })
    const value = { status: { conditions: [{ type: 'Ready', status: 'True' }] } }
    await client.patch(Pods, { namespace, name: 'late', subresource: 'status' }, { type: 'merge', value })
    const metadata = { namespace, name: 'late' }
    const binding = { kind: 'Binding', metadata, target: { kind: 'Node', name: 'n1' } }
    await client.create(Pods, binding, { subresource: 'binding' })
    await clock.advance(1000)
    const pod = await client.get(Pods, metadata)
    assert.equal(pod.status.conditions?.find(({ type }) => type === 'Ready')?.status, 'False')
  })
})

describe('node conditions in the node lifecycle controller', () => {
  it('become taints at once, and are removed at once', async () => {
    await live('n1')
    await live('other')
    const bad = ['MemoryPressure', 'DiskPressure', 'PIDPressure', 'NetworkUnavailable']
    const value = { status: { conditions: bad.map((type) => ({ type, status: 'True' })) } }
    await client.patch(Nodes, { name: 'n1', subresource: 'status' }, { type: 'strategic', value })
    await client.patch(Nodes, { name: 'n1' }, { type: 'merge', value: { spec: { unschedulable: true } } })
    await clock.advance(1000)
    assert.deepEqual((await taints('n1')).toSorted(), [
      'disk-pressure:NoSchedule',
      'memory-pressure:NoSchedule',
      'network-unavailable:NoSchedule',
      'pid-pressure:NoSchedule',
      'unschedulable:NoSchedule',
    ])
    await client.patch(Nodes, { name: 'n1' }, { type: 'merge', value: { spec: { unschedulable: null } } })
    await post('n1')
    await clock.advance(1000)
    assert.deepEqual(await taints('n1'), [])
  })

  it('cause evictions if the node is not ready, without changes of pod conditions', async () => {
    await live('n1')
    await live('other')
    await clock.advance(10_000)
    await post('n1', 'False')
    await clock.advance(1000)
    assert.deepEqual(await taints('n1'), ['not-ready:NoSchedule'])
    await clock.advance(6000)
    assert.deepEqual(await taints('n1'), ['not-ready:NoSchedule', 'not-ready:NoExecute'])
    die('n1')
    await clock.advance(70_000)
    assert.deepEqual((await taints('n1')).toSorted(), ['unreachable:NoExecute', 'unreachable:NoSchedule'])
    assert.ok(!(await told('Node')).some((event) => event.includes('NodeNotReady')))
  })

  it('leave beta labels in sync with the current labels', async () => {
    await live('n1', { 'kubernetes.io/os': 'linux', 'kubernetes.io/arch': 'arm64', 'beta.kubernetes.io/arch': 'amd64' })
    await clock.advance(1000)
    const { metadata } = await client.get(Nodes, { name: 'n1' })
    assert.equal(metadata.labels?.['beta.kubernetes.io/os'], 'linux')
    assert.equal(metadata.labels?.['beta.kubernetes.io/arch'], 'arm64')
  })

  it('are ignored after the node is deleted', async () => {
    await live('n1')
    await clock.advance(5000)
    die('n1')
    await client.delete(Nodes, { name: 'n1' })
    await clock.advance(6000)
    assert.ok(
      (await told('Node')).includes(
        'Normal RemovingNode node-controller Node n1 event: Removing Node n1 from Controller',
      ),
    )
  })
})

describe('zones in the node lifecycle controller', () => {
  const driven = async (): Promise<string[]> => {
    const { items } = await client.list(Nodes)
    return items
      .filter((node) => taintsOf(node).includes('unreachable:NoExecute'))
      .map(({ metadata }) => metadata.name ?? '')
  }
  const inZone = (zone: string): Record<string, string> => ({ 'topology.kubernetes.io/zone': zone })

  it('taint one node every ten seconds, independently of each other', async () => {
    for (const name of ['a1', 'a2', 'a3', 'a4', 'b1', 'b2']) await live(name, inZone(name.charAt(0)))
    await clock.advance(10_000)
    die('a1', 'a2', 'b1')
    await clock.advance(61_000)
    const first = await driven()
    assert.equal(first.length, 2)
    assert.ok(first.includes('b1'))
    await clock.advance(10_000)
    assert.deepEqual((await driven()).toSorted(), ['a1', 'a2', 'b1'])
  })

  it('stop evictions if most nodes of a small zone are unresponsive', async () => {
    for (const name of ['a1', 'a2', 'a3', 'a4', 'a5', 'b1']) await live(name, inZone(name.charAt(0)))
    await clock.advance(10_000)
    die('a1', 'a2', 'a3', 'a4')
    await clock.advance(200_000)
    // The first one goes before it is known what happened to its zone.
    assert.ok((await driven()).length <= 1)
  })

  it('stop all evictions if every zone is unresponsive, and start again on recovery', async () => {
    for (const name of ['a1', 'b1']) await live(name, inZone(name.charAt(0)))
    await clock.advance(10_000)
    die('a1', 'b1')
    await clock.advance(100_000)
    assert.deepEqual(await driven(), [])
    assert.deepEqual(await taints('a1'), ['unreachable:NoSchedule'])
    await post('a1')
    await clock.advance(20_000)
    assert.deepEqual(await driven(), ['b1'])
  })
})

describe('nodes with failing or unconfirmed writes', () => {
  it('finally have exactly the taints of their conditions', async () => {
    const lost = (): never => {
      throw new HttpError('broken', 'The connection was lost')
    }
    const random = createSeededRandom(7)
    const through = (transport: Transport): Transport => ({
      async request(request) {
        const fate = request.method === 'PATCH' || request.method === 'PUT' ? random.float() : 1
        if (fate < 0.2) lost()
        const response = await transport.request(request)
        return fate < 0.4 ? lost() : response
      },
    })
    await controllers.stop()
    const nowhere = { write: (_text: string, done: () => void) => done() }
    const log = createLog({ clock: realClock, stream: nowhere }).logger
    const own = new ApiClient({ transport: plane.running.server.clientAs(MASTER), clock, userAgent: 'tester' })
    client = own
    controllers = startControllers(plane, clock, [nodeLifecycleController], { through, log })
    for (const name of ['n0', 'n1', 'n2', 'n3']) await live(name)
    const say = fc.tuple(
      fc.integer({ min: 0, max: 3 }),
      fc.constantFrom('True', 'False', 'unschedulable', 'schedulable'),
      fc.constantFrom(0, 20, 3000),
    )
    await fc.assert(
      fc.asyncProperty(fc.array(say, { minLength: 5, maxLength: 20 }), async (said) => {
        for (const [node, what, waitMs] of said) {
          const name = `n${node}`
          const spec = { unschedulable: what === 'unschedulable' }
          if (what.endsWith('schedulable')) await client.patch(Nodes, { name }, { type: 'merge', value: { spec } })
          else await post(name, what)
          await clock.advance(waitMs)
        }
        await clock.advance(60_000)
        for (const node of (await client.list(Nodes)).items) {
          const ready = node.status.conditions?.find(({ type }) => type === 'Ready')?.status
          const wanted = [
            ...(ready === 'False' ? ['not-ready:NoSchedule'] : []),
            ...(node.spec.unschedulable === true ? ['unschedulable:NoSchedule'] : []),
          ]
          const found = taintsOf(node).filter((taint) => taint.endsWith(':NoSchedule'))
          assert.deepEqual(found.toSorted(), wanted)
          if (ready === 'True') assert.ok(!taintsOf(node).some((taint) => taint.endsWith(':NoExecute')))
        }
      }),
      { numRuns: 6 },
    )
  })
})
