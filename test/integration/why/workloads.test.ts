/** Tests explanations of workloads, their pods and their Services: each injected cause must be named. */
import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'

import { Deployments, ReplicaSets, StatefulSets } from '#apis/apps/v1.ts'
import { HorizontalPodAutoscalers } from '#apis/autoscaling/v2.ts'
import {
  ConfigMaps,
  Events,
  Namespaces,
  Nodes,
  PersistentVolumeClaims,
  PersistentVolumes,
  Pods,
  ResourceQuotas,
  Services,
} from '#apis/core/v1.ts'
import type { Kind } from '#apis/kinds.ts'
import { StorageClasses } from '#apis/storage/v1.ts'
import type { Explanation } from '#explain/explanation.ts'
import type { Fault } from '#simulated-node/fault.ts'
import { startCluster, type TestCluster } from '#testing/cluster.ts'

import { createPod, falseEvidence, namespace, why } from './bed.ts'
import { deploymentOf, nameOfPod } from './workloads.ts'

const KINDS: readonly Kind[] = [
  Pods,
  Nodes,
  Namespaces,
  ConfigMaps,
  Events,
  Deployments,
  ReplicaSets,
  StatefulSets,
  Services,
  HorizontalPodAutoscalers,
  PersistentVolumeClaims,
  PersistentVolumes,
  StorageClasses,
]

let cluster: TestCluster
before(async () => {
  cluster = await startCluster({ clock: 'virtual', nodes: 2 })
})
after(() => cluster?.stop())

async function explain(kind: Kind, name: string): Promise<Explanation> {
  const found = await why(cluster.client, kind, name)
  assert.deepEqual(await falseEvidence(cluster, KINDS, found), [])
  return found
}

describe('why containers do not run', () => {
  const rows: readonly (readonly [app: string, fault: (pod: string) => Fault, container: object, verdict: RegExp])[] = [
    [
      'no-image',
      (pod) => ({ type: 'image-pull-error', pod, message: 'no such image' }),
      {},
      /does not start because the image app:1 of container app cannot be pulled: .*no such image/,
    ],
    [
      'crashing',
      (pod) => ({ type: 'crash', pod, exitCode: 3 }),
      {},
      /because container app ended with exit code 3 \(restarted \d+ times\)$/,
    ],
    [
      'hungry',
      (pod) => ({ type: 'oom', pod }),
      { resources: { limits: { memory: '64Mi' } } },
      /because container app used more memory than its limit of 64Mi/,
    ],
    [
      'unready',
      (pod) => ({ type: 'unhealthy', pod, afterMs: 0 }),
      { readinessProbe: { httpGet: { path: '/ready', port: 80 }, periodSeconds: 2 } },
      /is not ready because the readiness probe of container app fails: /,
    ],
    [
      'lifeless',
      (pod) => ({ type: 'unhealthy', pod, afterMs: 5000 }),
      { livenessProbe: { httpGet: { path: '/live', port: 80 }, periodSeconds: 2 } },
      /because container app failed its liveness probe/,
    ],
  ]
  for (const [app, fault, container, verdict] of rows) {
    it(`names the cause of ${app}`, async () => {
      const end = cluster.inject(fault(app))
      const containers = [{ name: 'app', image: 'app:1', ...container }]
      await createPod(cluster, app, { spec: { containers } as never, labels: { app } })
      await cluster.clock.advance(app === 'lifeless' ? '25s' : '90s')
      assert.match((await explain(Pods, app)).verdict, verdict)
      end()
      await cluster.client.delete(Pods, { namespace, name: app }, { gracePeriodSeconds: 0 })
      await cluster.settle()
    })
  }

  it('does not take the end of an earlier run for that of the last one', async () => {
    const end = cluster.inject({ type: 'unhealthy', pod: 'many-runs', afterMs: 5000 })
    const livenessProbe = { httpGet: { path: '/live', port: 80 }, periodSeconds: 2 }
    const containers = [{ name: 'app', image: 'app:1', livenessProbe }]
    await createPod(cluster, 'many-runs', { spec: { containers } as never })
    await cluster.clock.advance('90s')
    const { verdict } = await explain(Pods, 'many-runs')
    assert.match(verdict, /ended with exit code \d+; an earlier run failed its liveness probe/)
    end()
    await cluster.client.delete(Pods, { namespace, name: 'many-runs' }, { gracePeriodSeconds: 0 })
    await cluster.settle()
  })

  it('names a readiness gate', async () => {
    await createPod(cluster, 'gate', { spec: { readinessGates: [{ conditionType: 'example.com/ready' }] } })
    await cluster.settle()
    assert.match(
      (await explain(Pods, 'gate')).verdict,
      /is not ready because its readiness gate example\.com\/ready is not met$/,
    )
  })

  it('finds nothing wrong with a pod that runs', async () => {
    await createPod(cluster, 'fine')
    await cluster.settle()
    assert.match(
      (await explain(Pods, 'fine')).verdict,
      /^NotKnown: no explainer finds anything wrong with default\/fine$/,
    )
  })

  it('names the node that does not report', async () => {
    const { spec } = await cluster.client.get(Pods, { namespace, name: 'fine' })
    const end = cluster.inject({ type: 'network-cut', node: spec.nodeName ?? '' })
    await cluster.clock.advance('90s')
    assert.match(
      (await explain(Pods, 'fine')).verdict,
      new RegExp(`because its node ${spec.nodeName} does not report: `),
    )
    end()
    await cluster.settle()
  })

  it('names finalizers', async () => {
    const metadata = { namespace, name: 'kept', finalizers: ['example.com/backup'] }
    await cluster.client.create(ConfigMaps, { metadata })
    await cluster.client.delete(ConfigMaps, { namespace, name: 'kept' })
    assert.match(
      (await explain(ConfigMaps, 'kept')).verdict,
      /stays because it has the finalizer example\.com\/backup$/,
    )
  })
})

describe('why a rollout does not go on', () => {
  it('names the quota', async () => {
    const { client } = cluster
    await client.create(Namespaces, { metadata: { name: 'small' } })
    const spec = { hard: { pods: '1' } }
    await client.create(ResourceQuotas, { metadata: { namespace: 'small', name: 'few' }, spec })
    await cluster.settle()
    await client.create(Deployments, deploymentOf('api', { replicas: 2, namespace: 'small' }))
    await cluster.clock.advance('1s')
    const { Reader } = await import('#explain/reader.ts')
    const { whyObject } = await import('#explain/explain.ts')
    for (const kind of [Deployments, ReplicaSets] as const) {
      const name =
        kind === Deployments
          ? 'api'
          : ((await client.list(ReplicaSets, { namespace: 'small' })).items[0]?.metadata.name ?? '')
      const found = await whyObject(kind, { namespace: 'small', name }, new Reader({ client }))
      assert.match(found.verdict, /lacks pods because the API server refuses them: .* exceeded quota: few/)
      assert.deepEqual(found.wouldHelp, ['raise the ResourceQuota few, or request less'])
      assert.deepEqual(await falseEvidence(cluster, KINDS, found), [])
    }
    await client.delete(Namespaces, { name: 'small' })
    await cluster.settle()
  })

  it('names the pod that holds it up, and the arithmetic', async () => {
    const { client } = cluster
    await client.create(Deployments, deploymentOf('web', { replicas: 4 }))
    await cluster.settle()
    const end = cluster.inject({ type: 'image-pull-error', image: 'app:broken' })
    const containers = [{ name: 'app', image: 'app:broken' }]
    await client.patch(
      Deployments,
      { namespace, name: 'web' },
      { type: 'strategic', value: { spec: { template: { spec: { containers } } } } },
    )
    await cluster.clock.advance('30s')
    const { verdict, steps } = await explain(Deployments, 'web')
    assert.match(
      verdict,
      /^Deployment default\/web has 2 of 2 pods not ready: Pod .* the image app:broken of container app cannot be pulled/,
    )
    assert.match(
      steps[0]?.did ?? '',
      /^keeps at least 3 of 4 pods available and at most 5 in all; 3 are available, 2 have the newest template$/,
    )
    end()
    await cluster.settle()
    const change = (spec: object): Promise<unknown> =>
      client.patch(Deployments, { namespace, name: 'web' }, { type: 'strategic', value: { spec } })
    await change({ paused: true })
    await cluster.settle()
    assert.match(
      (await explain(Deployments, 'web')).verdict,
      /^NotKnown: no explainer finds anything wrong with .*, which is paused$/,
    )
    await change({ template: { spec: { containers: [{ name: 'app', image: 'app:3' }] } } })
    await cluster.settle()
    assert.match((await explain(Deployments, 'web')).verdict, /does not go on because spec\.paused is true$/)
  })
})

describe('why a Service has no endpoints', () => {
  async function service(name: string, selector: Record<string, string>, port: object = {}): Promise<Explanation> {
    const ports = [{ port: 80, ...port }]
    await cluster.client.create(Services, { metadata: { namespace, name }, spec: { selector, ports } } as never)
    return explain(Services, name)
  }

  it('names the nearest labels', async () => {
    const { verdict } = await service('typo', { app: 'webb' })
    assert.match(
      verdict,
      /no pod has the labels app=webb; the nearest, default\/web-.*, has app=web instead of app=webb$/,
    )
    assert.match((await service('nobody', { team: 'x' })).verdict, /no pod in its namespace has the labels team=x$/)
  })

  it('names the port', async () => {
    assert.match(
      (await service('ported', { app: 'web' }, { targetPort: 'http' })).verdict,
      /no container of its pods has a port named http: their containers name no port$/,
    )
  })

  it('names the pod that is not ready', async () => {
    const end = cluster.inject({ type: 'crash', labels: { app: 'broken' }, exitCode: 2 })
    await createPod(cluster, 'broken', { labels: { app: 'broken' } })
    await cluster.clock.advance('60s')
    assert.match(
      (await service('sick', { app: 'broken' })).verdict,
      /the only pod that it selects is not ready: Pod default\/broken .* exit code 2/,
    )
    end()
    await cluster.client.delete(Pods, { namespace, name: 'broken' }, { gracePeriodSeconds: 0 })
  })

  it('finds nothing wrong with a Service that has ready pods', async () => {
    assert.ok((await nameOfPod(cluster, 'web')) !== '')
    assert.match(
      (await service('web', { app: 'web' })).verdict,
      /^NotKnown: no explainer finds anything wrong with Service default\/web: 4 ready pods/,
    )
  })
})

describe('why a claim is not bound', () => {
  async function claim(name: string, spec: object): Promise<Explanation> {
    const whole = { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } }, ...spec }
    await cluster.client.create(PersistentVolumeClaims, { metadata: { namespace, name }, spec: whole })
    await cluster.settle()
    return explain(PersistentVolumeClaims, name)
  }

  it('names a class that does not exist', async () => {
    assert.match(
      (await claim('no-class', { storageClassName: 'fast' })).verdict,
      /because its StorageClass fast does not exist$/,
    )
  })

  it('names the difference of the nearest volume', async () => {
    assert.match(
      (await claim('no-volume', { storageClassName: '' })).verdict,
      /because the cluster has no PersistentVolume/,
    )
    const spec = { capacity: { storage: '500Mi' }, accessModes: ['ReadWriteOnce'], hostPath: { path: '/data' } }
    await cluster.client.create(PersistentVolumes, { metadata: { name: 'small' }, spec })
    await cluster.settle()
    const found = await explain(PersistentVolumeClaims, 'no-volume')
    assert.match(
      found.verdict,
      /none of 1 PersistentVolumes matches 1Gi of class ""; the nearest is small: it has 500Mi$/,
    )
  })

  it('names the missing consumer', async () => {
    const fields = { provisioner: 'example.com/disks', volumeBindingMode: 'WaitForFirstConsumer' }
    await cluster.client.create(StorageClasses, { metadata: { name: 'late' }, ...fields })
    assert.match(
      (await claim('waits', { storageClassName: 'late' })).verdict,
      /its StorageClass late waits for the first consumer, and no pod uses it$/,
    )
  })

  it('does not know what a silent provisioner does', async () => {
    await cluster.client.create(StorageClasses, { metadata: { name: 'now' }, provisioner: 'example.com/disks' })
    assert.match(
      (await claim('silent', { storageClassName: 'now' })).verdict,
      /^NotKnown: the provisioner example\.com\/disks has not created the volume/,
    )
  })
})

describe('why an autoscaler does not scale', () => {
  it('names the missing metrics', async () => {
    const spec = {
      scaleTargetRef: { apiVersion: 'apps/v1', kind: 'Deployment', name: 'web' },
      maxReplicas: 5,
      metrics: [
        { type: 'Resource', resource: { name: 'cpu', target: { type: 'Utilization', averageUtilization: 50 } } },
      ],
    }
    await cluster.client.create(HorizontalPodAutoscalers, { metadata: { namespace, name: 'web' }, spec })
    await cluster.clock.advance('30s')
    assert.match(
      (await explain(HorizontalPodAutoscalers, 'web')).verdict,
      /^HorizontalPodAutoscaler default\/web does not scale Deployment web because /,
    )
  })
})
