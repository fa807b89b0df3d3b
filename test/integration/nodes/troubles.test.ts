import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { Leases } from '#apis/coordination/v1.ts'
import { type Container, ConfigMaps, type ContainerStatus, Nodes, Pods, Secrets } from '#apis/core/v1.ts'
import { isNotFound } from '#meta/status.ts'
import { epochMsOf } from '#meta/time.ts'

import { type ClusterUnderTest, namespace, startCluster } from './cluster-under-test.ts'

const container: Container = { name: 'c', image: 'img:1', resources: {} }
const told = (what: string, value: string): Record<string, string> => ({ [`simulated.hyperkube.io/${what}`]: value })

async function statusOf(cluster: ClusterUnderTest, pod: string): Promise<ContainerStatus | undefined> {
  return (await cluster.get(pod)).status.containerStatuses?.[0]
}

describe('failures of pods on simulated nodes', () => {
  it("cause upstream's events and states for images, memory, volumes and environment variables", async () => {
    await using cluster = await startCluster({ nodes: 1 })
    const { client, clock } = cluster
    await cluster.pod('image', {}, told('pull-error', 'no such image'))
    await cluster.pod('memory', { restartPolicy: 'Never' }, told('oom', '3s'))
    const volumes = [{ name: 'v', secret: { secretName: 'late' } }]
    await cluster.pod('volume', { volumes })
    const env = [{ name: 'A', valueFrom: { configMapKeyRef: { name: 'late', key: 'a' } } }]
    await cluster.pod('env', { containers: [{ ...container, env }] })
    await clock.advance(5000)
    const error = 'no such image'
    assert.deepEqual((await statusOf(cluster, 'image'))?.state, {
      waiting: { reason: 'ImagePullBackOff', message: `Back-off pulling image "img:1": ErrImagePull: ${error}` },
    })
    assert.deepEqual(await cluster.events('image'), [
      'Pulling: Pulling image "img:1"',
      `Failed: Failed to pull image "img:1": ${error}`,
      'Failed: Error: ErrImagePull',
      'BackOff: Back-off pulling image "img:1"',
      'Failed: Error: ImagePullBackOff',
    ])
    const { status } = await cluster.get('memory')
    const { reason, exitCode } = status.containerStatuses?.[0]?.state.terminated ?? {}
    assert.deepEqual([status.phase, reason, exitCode], ['Failed', 'OOMKilled', 137])
    assert.deepEqual((await statusOf(cluster, 'volume'))?.state, { waiting: { reason: 'ContainerCreating' } })
    assert.match(
      (await cluster.events('volume')).join(),
      /^FailedMount: MountVolume.SetUp failed for volume "v" : secret "late" not found x\d$/,
    )
    assert.deepEqual((await statusOf(cluster, 'env'))?.state, {
      waiting: { reason: 'CreateContainerConfigError', message: 'configmap "late" not found' },
    })
    assert.ok((await cluster.events('env')).includes('Failed: Error: configmap "late" not found'))
    await client.create(Secrets, { metadata: { namespace, name: 'late' } })
    await client.create(ConfigMaps, { metadata: { namespace, name: 'late' } })
    await clock.advance(20_000)
    assert.equal((await cluster.get('volume')).status.phase, 'Running')
    assert.equal((await cluster.get('env')).status.phase, 'Running')
    await client.delete(Pods, { namespace, name: 'image' })
    await clock.advance(1000)
    await assert.rejects(cluster.get('image'), isNotFound, 'who never ran can be deleted')
  })

  it('include rejections by nodes with too few resources or without a matching label', async () => {
    await using cluster = await startCluster({ nodes: [{ name: 'small', capacity: { cpu: '1' } }] })
    const asking = (cpu: string): Container => ({ ...container, resources: { requests: { cpu } } })
    await cluster.pod('first', { nodeName: 'small', containers: [asking('600m')] })
    await cluster.pod('second', { nodeName: 'small', containers: [asking('500m')] })
    await cluster.pod('third', { nodeName: 'small', nodeSelector: { disk: 'ssd' } })
    await cluster.clock.advance(1000)
    const text = "Node didn't have enough resource: cpu, requested: 500, used: 600, capacity: 1000"
    const { phase, reason, message } = (await cluster.get('second')).status
    assert.deepEqual([phase, reason, message], ['Failed', 'OutOfcpu', `Pod was rejected: ${text}`])
    assert.deepEqual(await cluster.events('second'), [`OutOfcpu: ${text}`])
    assert.equal((await cluster.get('third')).status.reason, 'NodeAffinity')
    assert.equal((await cluster.get('first')).status.phase, 'Running')
  })

  it('affect probes: not ready before the delay, restarted if liveness fails', async () => {
    await using cluster = await startCluster({ nodes: 1 })
    const { clock } = cluster
    const httpGet = { port: 80 }
    const probed = { ...container, readinessProbe: { httpGet, periodSeconds: 5 } }
    await cluster.pod('slow', { containers: [probed] }, told('ready-delay', '12s'))
    const living = { ...container, livenessProbe: { httpGet, periodSeconds: 5, failureThreshold: 2 } }
    await cluster.pod('ill', { containers: [living] }, told('unhealthy-after', '20s'))
    await clock.advance(11_000)
    assert.equal((await statusOf(cluster, 'slow'))?.ready, false)
    assert.ok(
      (await cluster.events('slow')).some((event) => event.startsWith('Unhealthy: Readiness probe failed: HTTP')),
    )
    await clock.advance(5000)
    assert.equal((await statusOf(cluster, 'slow'))?.ready, true)
    assert.equal((await statusOf(cluster, 'ill'))?.restartCount, 0)
    await clock.advance(10_000)
    assert.equal((await statusOf(cluster, 'ill'))?.restartCount, 1)
    const events = await cluster.events('ill')
    assert.ok(events.includes('Unhealthy: Liveness probe failed: HTTP probe failed with statuscode: 503 x2'))
    assert.ok(events.includes('Killing: Container c failed liveness probe, will be restarted'))
  })

  it('can be injected into running pods, and removed', async () => {
    await using cluster = await startCluster({ nodes: 1 })
    const { clock, nodes, client } = cluster
    await cluster.pod('web')
    await clock.advance(1000)
    const heal = nodes.inject({ type: 'crash', pod: 'web', exitCode: 7 })
    await clock.advance(5000)
    assert.equal((await statusOf(cluster, 'web'))?.state.waiting?.reason, 'CrashLoopBackOff')
    assert.equal((await statusOf(cluster, 'web'))?.lastState.terminated?.exitCode, 7)
    heal()
    await clock.advance(60_000)
    assert.equal((await statusOf(cluster, 'web'))?.ready, true)
    const down = told('fault', 'network-cut')
    await client.patch(Nodes, { name: 'node-0' }, { type: 'merge', value: { metadata: { annotations: down } } })
    await clock.advance(1000)
    await client.delete(Pods, { namespace, name: 'web' })
    await clock.advance(10_000)
    assert.equal((await client.list(Pods)).items.length, 1)
    const up = { 'simulated.hyperkube.io/fault': null }
    await client.patch(Nodes, { name: 'node-0' }, { type: 'merge', value: { metadata: { annotations: up } } })
    await clock.advance(1000)
    assert.equal((await client.list(Pods)).items.length, 0)
  })

  it('respect the order of init containers, sidecars and main containers', async () => {
    await using cluster = await startCluster({ nodes: 1 })
    const { clock } = cluster
    const sleeping = (name: string, seconds: number): Container => ({
      ...container,
      name,
      command: ['sleep', String(seconds)],
    })
    const side: Container = { ...container, name: 'side', restartPolicy: 'Always' }
    await cluster.pod('job', {
      restartPolicy: 'Never',
      initContainers: [sleeping('i1', 3), side, sleeping('i2', 2)],
      containers: [sleeping('c', 5)],
    })
    const seen: string[] = []
    for (let second = 0; second < 13; second++) {
      const { phase, initContainerStatuses = [], containerStatuses = [] } = (await cluster.get('job')).status
      const states = [...initContainerStatuses, ...containerStatuses].map(
        ({ name, state }) => `${name}:${Object.keys(state)[0]?.[0]}`,
      )
      seen.push([phase, ...states].join(' '))
      await clock.advance(1000)
    }
    assert.deepEqual(
      [...new Set(seen)],
      [
        'Pending',
        'Pending i1:r side:w i2:w c:w',
        'Pending i1:t side:r i2:r c:w',
        'Running i1:t side:r i2:t c:r',
        'Succeeded i1:t side:t i2:t c:t',
      ],
    )
  })

  it('of hundreds of waiting pods do not delay the heartbeats of nodes', async () => {
    const held = Promise.withResolvers<never>()
    held.promise.catch(() => undefined)
    await using cluster = await startCluster({ nodes: 3 }, {}, (transport) => ({
      request: (asked) => {
        const isOfPod = asked.method === 'PATCH' && String(asked.url).includes('/pods/')
        return isOfPod ? held.promise : transport.request(asked)
      },
    }))
    await using ending = new AsyncDisposableStack()
    ending.defer(() => held.reject(new Error('it is over')))
    for (let at = 0; at < 200; at++) await cluster.pod(`p${at}`)
    await cluster.clock.advance(120_000)
    const { items } = await cluster.client.list(Nodes)
    const ready = items.map(({ status }) => status.conditions?.find(({ type }) => type === 'Ready')?.status)
    assert.deepEqual(ready, ['True', 'True', 'True'])
    const { items: leases } = await cluster.client.list(Leases, { namespace: 'kube-node-lease' })
    for (const { spec } of leases)
      assert.ok(cluster.clock.now() - epochMsOf(spec.renewTime ?? '') <= 10_000, spec.renewTime ?? 'never')
  })
})
