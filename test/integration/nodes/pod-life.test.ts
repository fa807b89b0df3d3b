import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { Deployments } from '#apis/apps/v1.ts'
import { Jobs } from '#apis/batch/v1.ts'
import { Leases } from '#apis/coordination/v1.ts'
import { Nodes, Pods } from '#apis/core/v1.ts'
import { CSINodes } from '#apis/storage/v1.ts'
import { createSeededRandom } from '#lib/random.ts'
import { isNotFound } from '#meta/status.ts'
import { isReady } from '#model/pods.ts'
import { type SimulatedNodes, startSimulatedNodes } from '#simulated-node/start.ts'
import { StorageError } from '#storage/backend.ts'
import { loadBackend } from '#storage/index.ts'
import { type ControlPlaneOptions, errorLog } from '#testing/control-plane.ts'

import { type ClusterUnderTest, namespace, startCluster } from './cluster-under-test.ts'

const container = { name: 'c', image: 'img:1', resources: {} }

describe('pods on simulated nodes', () => {
  it('run once they are bound, with an address of their node, and are removed when they are deleted', async () => {
    await using cluster = await startCluster()
    const { client, clock } = cluster
    await cluster.pod('web')
    await clock.advance(1000)
    const { spec, status } = await cluster.get('web')
    const node = await client.get(Nodes, { name: spec.nodeName ?? '' })
    assert.equal(status.phase, 'Running')
    assert.equal(status.podIP, node.spec.podCIDR?.replace('0/24', '2'))
    assert.equal(status.hostIP, node.status.addresses?.[0]?.address)
    assert.deepEqual(
      status.conditions?.map(({ type, status: is, observedGeneration }) => `${type}=${is} ${observedGeneration}`),
      [
        'PodReadyToStartContainers=True 1',
        'Initialized=True 1',
        'Ready=True 1',
        'ContainersReady=True 1',
        'PodScheduled=True 1',
      ],
    )
    assert.deepEqual(await cluster.events('web'), [
      'Pulling: Pulling image "img:1"',
      'Pulled: Successfully pulled image "img:1" in 0s (0s including waiting). Image size: 101337414 bytes.',
      'Created: Container created',
      'Started: Container started',
    ])
    await client.delete(Pods, { namespace, name: 'web' })
    await clock.advance(1000)
    assert.equal((await client.list(Pods)).items.length, 0)
  })

  it('of a Deployment become ready, and those of a Job end as their command says', async () => {
    await using cluster = await startCluster()
    const { client, clock } = cluster
    const labels = { app: 'web' }
    const template = { metadata: { labels }, spec: { containers: [container] } }
    await client.create(Deployments, {
      metadata: { namespace, name: 'web' },
      spec: { replicas: 3, selector: { matchLabels: labels }, template } as never,
    })
    const job = (name: string, script: string): object => ({
      metadata: { namespace, name },
      spec: {
        backoffLimit: 0,
        template: {
          spec: { restartPolicy: 'Never', containers: [{ ...container, command: ['sh', '-c', script] }] },
        },
      },
    })
    await client.create(Jobs, job('good', 'echo hello; sleep 3') as never)
    await client.create(Jobs, job('bad', 'sleep 3; exit 2') as never)
    await clock.advance(2000)
    assert.equal((await client.get(Deployments, { namespace, name: 'web' })).status.readyReplicas, 3)
    assert.equal((await client.get(Jobs, { namespace, name: 'good' })).status.active, 1)
    await clock.advance(10_000)
    const conditions = async (name: string): Promise<string[] | undefined> =>
      (await client.get(Jobs, { namespace, name })).status.conditions?.map(({ type }) => type)
    assert.deepEqual(await conditions('good'), ['SuccessCriteriaMet', 'Complete'])
    assert.deepEqual(await conditions('bad'), ['FailureTarget', 'Failed'])
  })

  it('restart after 10 s, 20 s, 40 s and so on if they crash, and report that', async () => {
    await using cluster = await startCluster()
    const { clock } = cluster
    const { metadata } = await cluster.pod('crash', { containers: [{ ...container, command: ['sh', '-c', 'exit 3'] }] })
    const starts = new Set<number>()
    for (let turn = 0; turn < 200; turn++) {
      await clock.advance(5000)
      const { state, lastState } = (await cluster.get('crash')).status.containerStatuses?.[0] ?? {}
      const startedAt = (state?.terminated ?? lastState?.terminated)?.startedAt
      if (startedAt != null) starts.add(Date.parse(startedAt) / 1000)
    }
    const waits = Array.from(starts).map((at, index, all) => at - (all[index - 1] ?? at))
    // The first restart came at once, within the same second.
    assert.deepEqual(waits, [0, 10, 20, 40, 80, 160, 300, 300])
    const status = (await cluster.get('crash')).status
    const pod = `crash_default(${metadata.uid})`
    assert.equal(status.phase, 'Running')
    assert.deepEqual(status.containerStatuses?.[0]?.state.waiting, {
      reason: 'CrashLoopBackOff',
      message: `back-off 5m0s restarting failed container=c pod=${pod}`,
    })
    assert.equal(status.containerStatuses?.[0]?.lastState.terminated?.exitCode, 3)
    const events = await cluster.events('crash')
    assert.ok(
      events.some((event) => event.startsWith(`BackOff: Back-off restarting failed container c in pod ${pod} x`)),
    )
  })

  it('get their grace period if they are deleted', async () => {
    await using cluster = await startCluster()
    const { client, clock } = cluster
    const slow = { 'simulated.hyperkube.io/stop-time': '60s' }
    await cluster.pod('slow', { terminationGracePeriodSeconds: 20 }, slow)
    await clock.advance(1000)
    await client.delete(Pods, { namespace, name: 'slow' })
    await clock.advance(19_000)
    const pod = await cluster.get('slow')
    assert.equal(pod.status.phase, 'Running')
    assert.ok(isReady(pod))
    assert.equal(pod.status.observedGeneration, 2)
    await clock.advance(2000)
    assert.equal((await client.list(Pods)).items.length, 0)
    assert.ok((await cluster.events('slow')).includes('Killing: Stopping container c'))
  })
})

describe('simulated nodes', () => {
  it('have a CSINode that is deleted with them', async () => {
    await using cluster = await startCluster()
    const { client } = cluster
    const node = await client.get(Nodes, { name: 'node-0' })
    const { metadata, spec } = await client.get(CSINodes, { name: 'node-0' })
    assert.deepEqual(metadata.ownerReferences?.[0]?.uid, node.metadata.uid)
    assert.match(
      metadata.annotations?.['storage.alpha.kubernetes.io/migrated-plugins'] ?? '',
      /^kubernetes.io\/aws-ebs,/,
    )
    assert.equal(spec.drivers, null)
  })

  it('record only warnings if configured', async () => {
    await using cluster = await startCluster({ events: 'warnings' })
    await cluster.pod('web')
    await cluster.pod('broken', {}, { 'simulated.hyperkube.io/pull-error': 'no such image' })
    await cluster.clock.advance(500)
    assert.deepEqual(await cluster.events('web'), [])
    assert.deepEqual(await cluster.events('broken'), [
      'Failed: Failed to pull image "img:1": no such image',
      'Failed: Error: ErrImagePull',
    ])
  })

  it('renew their Leases, and are NotReady while they are down', async () => {
    await using cluster = await startCluster()
    const { client, clock, nodes } = cluster
    const readiness = async (): Promise<string[]> =>
      (await client.list(Nodes)).items.map(
        ({ status }) => status.conditions?.find(({ type }) => type === 'Ready')?.status ?? '',
      )
    const labels = { app: 'web' }
    const template = { metadata: { labels }, spec: { containers: [container] } }
    await client.create(Deployments, {
      metadata: { namespace, name: 'web' },
      spec: { replicas: 4, selector: { matchLabels: labels }, template } as never,
    })
    await clock.advance(60_000)
    const lease = await client.get(Leases, { namespace: 'kube-node-lease', name: 'node-0' })
    assert.equal(lease.spec.holderIdentity, 'node-0')
    assert.ok(Date.parse(lease.spec.renewTime ?? '') > clock.now() - 11_000)
    assert.deepEqual(await readiness(), ['True', 'True'])
    const heal = nodes.inject({ type: 'node-down', node: 'node-0' })
    await clock.advance(60_000)
    assert.deepEqual(await readiness(), ['Unknown', 'True'])
    await clock.advance(360_000)
    const ready = (await client.list(Pods)).items.filter((pod) => isReady(pod))
    assert.deepEqual(new Set(ready.map(({ spec }) => spec.nodeName)), new Set(['node-1']))
    assert.equal(ready.length, 4)
    heal()
    await clock.advance(60_000)
    assert.deepEqual(await readiness(), ['True', 'True'])
    assert.equal((await client.list(Pods)).items.length, 4)
  })

  it('continue after a restart of the server: running pods keep running, and nothing starts twice', async () => {
    await using cluster = await startCluster({ nodes: 1 })
    const { client, clock, nodes } = cluster
    const sleeping = [{ ...container, command: ['sh', '-c', 'sleep 30; exit 3'] }]
    await cluster.pod('web')
    await cluster.pod('work', { restartPolicy: 'Never', containers: sleeping })
    await clock.advance(10_000)
    const before = [await cluster.get('web'), await cluster.get('work')]
    await nodes.stop()
    const starting = startAgain(cluster)
    await clock.advance(1000)
    await using _ = await starting
    await clock.advance(10_000)
    const after = [await cluster.get('web'), await cluster.get('work')]
    assert.deepEqual(
      after.map(({ status }) => status),
      before.map(({ status }) => status),
    )
    const lease = await client.get(Leases, { namespace: 'kube-node-lease', name: 'node-0' })
    assert.ok(Date.parse(lease.spec.renewTime ?? '') > clock.now() - 11_000)
    await clock.advance(10_000)
    const { status } = await cluster.get('work')
    assert.equal(status.phase, 'Failed')
    assert.equal(status.containerStatuses?.[0]?.state.terminated?.exitCode, 3)
    assert.equal((await cluster.get('web')).status.containerStatuses?.[0]?.restartCount, 0)
  })

  it('finish the deletion of a pod although the server stopped during it', async () => {
    let isAway = true
    const openStore: ControlPlaneOptions['openStore'] = async (tools) => {
      const backend = await (await loadBackend('memory'))(tools)
      const commit = backend.commit.bind(backend)
      backend.commit = (writes, signal) => {
        const isEnd = writes.some(({ key, value }) => value === null && key.endsWith('/pods/default/web'))
        if (!isEnd || !isAway) return commit(writes, signal)
        return Promise.reject(new StorageError('unavailable', 'away for a moment'))
      }
      return backend
    }
    await using cluster = await startCluster({ nodes: 1 }, { openStore })
    const { client, clock, nodes } = cluster
    await cluster.pod('web', { terminationGracePeriodSeconds: 1 })
    await clock.advance(5000)
    await client.delete(Pods, { namespace, name: 'web' })
    await clock.advance(5000)
    assert.equal((await cluster.get('web')).metadata.deletionGracePeriodSeconds, 0)
    const stopping = nodes.stop()
    // The client waits a moment before it retries.
    await clock.advance(60_000)
    await stopping
    isAway = false
    const starting = startAgain(cluster)
    await clock.advance(1000)
    await using _ = await starting
    await clock.advance(30_000)
    await assert.rejects(cluster.get('web'), isNotFound)
  })
})

/** The only node of a cluster whose nodes were stopped. */
function startAgain({ clock, plane }: ClusterUnderTest): Promise<SimulatedNodes> {
  return startSimulatedNodes({
    connect: (user) => ({ transport: plane.running.server.clientAs(user) }),
    clock,
    random: createSeededRandom(8),
    log: errorLog(),
    nodes: 1,
  })
}
