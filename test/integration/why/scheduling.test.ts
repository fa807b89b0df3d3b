/** Tests explanations of pods without a node: each planted cause must be named, and nothing else. */
import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'

import { Namespaces, Nodes, PersistentVolumeClaims, Pods } from '#apis/core/v1.ts'
import { ClusterRoleBindings, ClusterRoles } from '#apis/rbac/v1.ts'
import { StorageClasses } from '#apis/storage/v1.ts'
import { startCluster, type TestCluster } from '#testing/cluster.ts'

import { createPod, falseEvidence, namespace, read, why } from './bed.ts'

/** A requirement for the name of a node. */
const named = (node: string): { key: string; operator: string; values: string[] } => ({
  key: 'metadata.name',
  operator: 'In',
  values: [node],
})

const capacity = { cpu: '4', memory: '8Gi', pods: '110' }

describe('why a pod has no node', () => {
  let cluster: TestCluster
  before(async () => {
    cluster = await startCluster({
      clock: 'virtual',
      nodes: [
        { name: 'node-0', capacity, labels: { disk: 'hdd' } },
        { name: 'node-1', capacity, labels: { disk: 'hdd' } },
        { name: 'node-2', capacity, taints: [{ key: 'gpu', value: 'true', effect: 'NoSchedule' }] },
      ],
    })
    const fields = { provisioner: 'example.com/disks', volumeBindingMode: 'WaitForFirstConsumer' }
    await cluster.client.create(StorageClasses, { metadata: { name: 'late' }, ...fields })
    for (const [name, storageClassName] of [
      ['delayed', 'late'],
      ['missing-class', 'none'],
    ] as const) {
      const resources = { requests: { storage: '1Gi' } }
      const spec = { storageClassName, accessModes: ['ReadWriteOnce'], resources }
      await cluster.client.create(PersistentVolumeClaims, { metadata: { namespace, name }, spec })
    }
    await createPod(cluster, 'large', { requests: { cpu: '2500m' } })
    await createPod(cluster, 'small', { requests: { cpu: '3' } })
    await cluster.settle()
  })
  after(() => cluster?.stop())

  const rows: readonly [
    name: string,
    options: Parameters<typeof createPod>[2],
    verdict: RegExp,
    help: readonly (string | RegExp)[],
  ][] = [
    [
      'too-large',
      { requests: { cpu: '2' } },
      /no node fits: 2 nodes: not enough cpu; 1 node: taint gpu=true:NoSchedule is not tolerated$/,
      [
        /^request 0\.5 cpu less \(1\.5 in all\): node-\d fits then$/,
        'tolerate the taint gpu=true:NoSchedule: node-2 fits then',
      ],
    ],
    [
      'wrong-disk',
      { spec: { nodeSelector: { disk: 'ssd' } } },
      /2 nodes: label disk=ssd is missing; 1 node: taint gpu=true:NoSchedule is not tolerated, label disk=ssd is missing$/,
      ['drop disk=ssd from the nodeSelector: node-0, node-1 fit then'],
    ],
    ['huge', { requests: { memory: '1Ti' } }, /not enough memory/, [/^request .*Gi memory less/]],
    [
      'gated',
      { spec: { schedulingGates: [{ name: 'example.com/budget' }] } },
      /scheduling gate example.com\/budget$/,
      [/remove the gate/],
    ],
    [
      'no-claim',
      {
        spec: {
          volumes: [{ name: 'data', persistentVolumeClaim: { claimName: 'data' } }],
        },
      },
      /its PersistentVolumeClaim data does not exist$/,
      ['create the PersistentVolumeClaim data'],
    ],
    [
      'conflict',
      {
        spec: {
          affinity: {
            nodeAffinity: {
              requiredDuringSchedulingIgnoredDuringExecution: {
                nodeSelectorTerms: [{ matchFields: [named('node-0'), named('node-1')] }],
              },
            },
          },
          volumes: [{ name: 'data', persistentVolumeClaim: { claimName: 'delayed' } }],
        },
      },
      /is Pending because pod affinity terms conflict$/,
      [],
    ],
    [
      'two-claims',
      {
        spec: {
          volumes: ['delayed', 'missing-class'].map((claimName) => ({
            name: claimName,
            persistentVolumeClaim: { claimName },
          })),
        },
      },
      /because its PersistentVolumeClaim default\/missing-class is Pending because its StorageClass none does not exist$/,
      ['create the StorageClass none, or a claim with another storageClassName'],
    ],
    ['other', { spec: { schedulerName: 'mine' } }, /^NotKnown: .*the pod's scheduler is mine$/, []],
  ]
  for (const [name, options, verdict, help] of rows) {
    it(`names the cause of ${name}`, async () => {
      await createPod(cluster, name, options)
      await cluster.settle()
      const found = await why(cluster.client, Pods, name)
      assert.match(found.verdict, verdict)
      assert.equal(found.wouldHelp.length, help.length, found.wouldHelp.join('\n'))
      for (const [at, sentence] of help.entries()) {
        if (typeof sentence === 'string') assert.equal(found.wouldHelp[at], sentence)
        else assert.match(found.wouldHelp[at] ?? '', sentence)
      }
      assert.deepEqual(await falseEvidence(cluster, [Pods, Nodes, PersistentVolumeClaims, StorageClasses], found), [])
    })
  }

  it('shows the amounts, and the pods that use them', async () => {
    const text = await read(cluster, 'why pod/too-large')
    assert.match(
      text,
      /the pod requests 2 cpu, (node-\d) has 1\.5 of 4 free; most is requested by default\/large \(2\.5\)/,
    )
  })

  it('explains the past', async () => {
    const { metadata } = await cluster.client.get(Pods, { namespace, name: 'too-large' })
    await cluster.client.delete(Pods, { namespace, name: 'too-large' })
    const found = await why(cluster.client, Pods, 'too-large', `rv:${metadata.resourceVersion}`)
    assert.match(found.verdict, /no node fits: 2 nodes: not enough cpu/)
    assert.match(await read(cluster, 'why pod/too-large'), /^Pod default\/too-large was deleted at /)
    await cluster.clock.advance('1m')
    assert.match(await read(cluster, 'why pod/too-large --at -65s -o json'), /because no node fits/)
    assert.match(await read(cluster, `why pod/too-large --at rv:${metadata.resourceVersion}`), /because no node fits/)
  })

  it('does not know what the user may not see', async () => {
    const { client } = cluster
    await client.create(ClusterRoles, {
      metadata: { name: 'pods-only' },
      rules: [{ apiGroups: [''], resources: ['pods', 'namespaces'], verbs: ['get', 'list'] }],
    })
    await client.create(ClusterRoleBindings, {
      metadata: { name: 'pods-only' },
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'pods-only' },
      subjects: [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'User', name: 'ann' }],
    })
    const ann = cluster.clientAs({ name: 'ann' })
    const found = await why(ann, Pods, 'wrong-disk')
    assert.match(found.verdict, /^NotKnown: you may not list nodes/)
    assert.ok(!JSON.stringify(found.steps).includes('node-0'))
    const bob = cluster.clientAs({ name: 'bob' })
    assert.match((await why(bob, Pods, 'wrong-disk')).verdict, /^NotKnown: you may not get pods\/default\/wrong-disk$/)
    assert.equal(
      (await why(bob, Pods, 'wrong-disk')).verdict.replace('wrong-disk', 'none'),
      (await why(bob, Pods, 'none')).verdict,
    )
    assert.match((await why(bob, Namespaces, 'default')).verdict, /^NotKnown/)
  })
})

describe('why a pod has no node, if the scheduler is another one', () => {
  let cluster: TestCluster
  before(async () => {
    cluster = await startCluster({ clock: 'virtual', nodes: [{ name: 'only', capacity }], scheduler: false })
  })
  after(() => cluster?.stop())

  const rows: readonly (readonly [name: string, cpu: string, message: string | undefined, verdict: RegExp])[] = [
    [
      'strange',
      '9',
      '0/1 nodes are available: 1 node(s) had a secret reason.',
      /^NotKnown: the scheduler gave other reasons/,
    ],
    ['same', '9', '0/1 nodes are available: 1 Insufficient cpu.', /no node fits: 1 node: not enough cpu$/],
    [
      'small',
      '1',
      '0/1 nodes are available: 1 Insufficient cpu.',
      /^NotKnown: only fits by the objects now, and the scheduler has not tried again/,
    ],
    ['silent', '1', undefined, /^NotKnown: only fits by the objects now, and the scheduler has not reported anything/],
  ]
  for (const [name, cpu, message, verdict] of rows) {
    it(`does not guess about ${name}`, async () => {
      await createPod(cluster, name, { requests: { cpu } })
      const condition = { type: 'PodScheduled', status: 'False', reason: 'Unschedulable', message }
      const value = { status: { conditions: [condition] } }
      const where = { namespace, name, subresource: 'status' }
      if (message !== undefined) await cluster.client.patch(Pods, where, { type: 'strategic', value })
      assert.match((await why(cluster.client, Pods, name)).verdict, verdict)
    })
  }
})
