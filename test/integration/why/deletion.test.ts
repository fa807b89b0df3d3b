/** Tests explanations of deletions: each planted cause must be named, with the users and objects that led to it. */
import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'

import { Deployments, ReplicaSets } from '#apis/apps/v1.ts'
import { Jobs } from '#apis/batch/v1.ts'
import { ConfigMaps, Events, Namespaces, Nodes, Pods } from '#apis/core/v1.ts'
import type { Kind } from '#apis/kinds.ts'
import { ClusterRoleBindings, ClusterRoles } from '#apis/rbac/v1.ts'
import { PriorityClasses } from '#apis/scheduling/v1.ts'
import { whyGone } from '#explain/explain.ts'
import type { Explanation } from '#explain/explanation.ts'
import { Reader } from '#explain/reader.ts'
import { startCluster, type TestCluster } from '#testing/cluster.ts'

import { createPod, falseEvidence, namespace, read } from './bed.ts'
import { deploymentOf, nameOfPod, podsOf } from './workloads.ts'

const KINDS: readonly Kind[] = [Pods, Nodes, Namespaces, ConfigMaps, Deployments, ReplicaSets, Jobs]

describe('why an object was deleted', () => {
  let cluster: TestCluster
  before(async () => {
    cluster = await startCluster({ clock: 'virtual', nodes: 3 })
    await cluster.client.create(ClusterRoleBindings, {
      metadata: { name: 'ann' },
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'cluster-admin' },
      subjects: [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'User', name: 'ann' }],
    })
  })
  after(() => cluster?.stop())

  /** As ann does and asks. */
  async function gone(kind: Kind, name: string, there: string = namespace): Promise<Explanation> {
    const reader = new Reader({ client: cluster.clientAs({ name: 'ann' }) })
    const found = await whyGone(kind, { ...(kind.namespaced && { namespace: there }), name }, reader)
    assert.deepEqual(await falseEvidence(cluster, KINDS, found), [])
    return found
  }

  it('names the user', async () => {
    await createPod(cluster, 'solo')
    await cluster.settle()
    await cluster.clientAs({ name: 'ann' }).delete(Pods, { namespace, name: 'solo' })
    await cluster.settle()
    const { verdict, steps } = await gone(Pods, 'solo')
    assert.match(verdict, /^Pod default\/solo was deleted at 2026-01-01T00:00:\d\dZ because ann deleted it$/)
    assert.deepEqual(
      steps.map(({ actor, certainty }) => [actor, certainty]),
      [['ann', 'reported']],
    )
  })

  it('explains an earlier pod of the same name', async () => {
    await createPod(cluster, 'solo')
    await cluster.settle()
    assert.match(await read(cluster, 'why deleted pod/solo'), /because ann deleted it/)
  })

  it('names the criterion of a scale-down, and who scaled', async () => {
    const ann = cluster.clientAs({ name: 'ann' })
    await ann.create(Deployments, deploymentOf('web', { replicas: 3 }))
    await cluster.settle()
    const [cheap, ...rest] = await podsOf(cluster, 'web')
    const annotations = { 'controller.kubernetes.io/pod-deletion-cost': '-5' }
    const name = cheap?.metadata.name ?? ''
    await ann.patch(Pods, { namespace, name }, { type: 'merge', value: { metadata: { annotations } } })
    await cluster.settle()
    await ann.patch(Deployments, { namespace, name: 'web' }, { type: 'merge', value: { spec: { replicas: 2 } } })
    await cluster.settle()
    assert.equal((await podsOf(cluster, 'web')).length, rest.length)
    const { verdict, steps } = await gone(Pods, name)
    assert.match(verdict, /had more pods than replicas: ann set spec\.replicas of Deployment web from 3 to 2$/)
    const choice = steps.find(({ certainty }) => certainty === 'recomputed')
    assert.equal(choice?.did, 'chose it among 3 pods, because its deletion cost was lower')
    assert.equal(choice?.evidence[0]?.value, '-5')
    assert.deepEqual(
      steps.map(({ actor }) => actor),
      ['replicaset-controller', 'replicaset-controller', 'deployment-controller', 'ann'],
    )
  })

  it('does not take an earlier scale-down for the cause of a later deletion', async () => {
    const ann = cluster.clientAs({ name: 'ann' })
    const [one] = await podsOf(cluster, 'web')
    const labels = one?.metadata.labels ?? {}
    await createPod(cluster, 'adopted', { labels })
    await cluster.settle()
    const adopted = await ann.get(Pods, { namespace, name: 'adopted' }).catch(() => undefined)
    assert.equal(adopted, undefined)
    const { verdict, steps } = await gone(Pods, 'adopted')
    assert.match(verdict, /because ReplicaSet web-\w+ had more pods than replicas$/)
    assert.doesNotMatch(JSON.stringify(steps), /ann/)
  })

  it('does not take an earlier change of the Deployment for the cause of a corrected ReplicaSet', async () => {
    const { client } = cluster
    const [set] = (await client.list(ReplicaSets, { namespace, labelSelector: 'app=web' })).items
    const deleted = async (): Promise<string[]> => {
      const { items } = await client.list(Events, { namespace, fieldSelector: 'reason=SuccessfulDelete' })
      return items.flatMap(({ message = '' }) => /^Deleted pod: (web-\S+)$/.exec(message)?.[1] ?? [])
    }
    const before = await deleted()
    const where = { namespace, name: set?.metadata.name ?? '' }
    await client.patch(ReplicaSets, where, { type: 'merge', value: { spec: { replicas: 4 } } })
    await cluster.settle()
    const extra = (await deleted()).filter((name) => !before.includes(name))
    assert.ok(extra.length > 0)
    for (const name of extra) {
      assert.match(
        (await gone(Pods, name)).verdict,
        /: deployment-controller set spec\.replicas of ReplicaSet web-\w+ from 4 to 2$/,
      )
    }
  })

  it('follows owners upwards', async () => {
    const name = await nameOfPod(cluster, 'web')
    await cluster.clientAs({ name: 'ann' }).delete(Deployments, { namespace, name: 'web' })
    await cluster.settle()
    const { verdict } = await gone(Pods, name)
    assert.match(
      verdict,
      /its owner ReplicaSet .* was deleted at .* because its owner Deployment default\/web was deleted at .* because ann deleted it$/,
    )
  })

  it('names the namespace', async () => {
    await cluster.client.create(Namespaces, { metadata: { name: 'shop' } })
    await cluster.client.create(ConfigMaps, { metadata: { namespace: 'shop', name: 'settings' } })
    await cluster.clientAs({ name: 'ann' }).delete(Namespaces, { name: 'shop' })
    await cluster.settle()
    const { verdict } = await gone(ConfigMaps, 'settings', 'shop')
    assert.match(verdict, /because its Namespace shop was deleted at .* because ann deleted it$/)
  })

  it('names an eviction', async () => {
    await createPod(cluster, 'evicted')
    await cluster.settle()
    const where = { namespace, name: 'evicted' }
    const eviction = { kind: 'Eviction', apiVersion: 'policy/v1', metadata: where }
    await cluster.clientAs({ name: 'ann' }).create(Pods, eviction, { subresource: 'eviction' })
    await cluster.settle()
    assert.match((await gone(Pods, 'evicted')).verdict, /because ann evicted it$/)
  })

  it('names the time to live of a Job', async () => {
    const containers = [{ name: 'app', image: 'app:1', command: ['true'] }]
    const template = { spec: { containers, restartPolicy: 'Never' } }
    const spec = { ttlSecondsAfterFinished: 20, template }
    await cluster.client.create(Jobs, { metadata: { namespace, name: 'once' }, spec } as never)
    await cluster.settle({ quiet: '30s' })
    assert.match(
      (await gone(Jobs, 'once')).verdict,
      /because its ttlSecondsAfterFinished of 20 s passed after it finished at /,
    )
  })

  it('names a preemption', async () => {
    await using small = await startCluster({
      clock: 'virtual',
      nodes: [{ name: 'only', capacity: { cpu: '2', memory: '4Gi', pods: '10' } }],
    })
    await small.client.create(PriorityClasses, { metadata: { name: 'high' }, value: 1000 })
    await createPod(small, 'low', { requests: { cpu: '1500m' } })
    await small.settle()
    await createPod(small, 'urgent', { requests: { cpu: '1' }, spec: { priorityClassName: 'high' } })
    await small.settle()
    const found = await whyGone(Pods, { namespace, name: 'low' }, new Reader({ client: small.client }))
    assert.match(found.verdict, /because the scheduler preempted it: /)
    assert.deepEqual(await falseEvidence(small, KINDS, found), [])
  })

  it('names a lost node', async () => {
    await createPod(cluster, 'stranded', {
      spec: {
        tolerations: ['not-ready', 'unreachable'].map((what) => ({
          key: `node.kubernetes.io/${what}`,
          operator: 'Exists',
          effect: 'NoExecute',
          tolerationSeconds: 10,
        })),
      },
    })
    await cluster.settle()
    const { spec } = await cluster.client.get(Pods, { namespace, name: 'stranded' })
    const node = spec.nodeName ?? ''
    const end = cluster.inject({ type: 'network-cut', node })
    await cluster.clock.advance('2m')
    end()
    await cluster.settle()
    const { verdict, steps } = await gone(Pods, 'stranded')
    assert.match(
      verdict,
      new RegExp(`because node ${node} was silent and got the taint node\\.kubernetes\\.io/unreachable:NoExecute$`),
    )
    assert.ok(steps.some(({ did }) => did.startsWith(`found node ${node} silent`)))
  })

  it('does not know what the history does not have', async () => {
    assert.match((await gone(Pods, 'never')).verdict, /^NotKnown: the history.* has no deletion of Pod default\/never$/)
    await createPod(cluster, 'forgotten')
    await cluster.settle()
    await cluster.client.delete(Pods, { namespace, name: 'forgotten' })
    await cluster.settle()
    await cluster.clock.advance('15m')
    assert.match((await gone(Pods, 'forgotten')).verdict, /^NotKnown/)
  })

  it('hides objects of kinds that the user may not get', async () => {
    const { client } = cluster
    await client.create(Deployments, deploymentOf('shy', { replicas: 2 }))
    await cluster.settle()
    const before = await podsOf(cluster, 'shy')
    await client.patch(Deployments, { namespace, name: 'shy' }, { type: 'merge', value: { spec: { replicas: 1 } } })
    await cluster.settle()
    const kept = new Set((await podsOf(cluster, 'shy')).map(({ metadata }) => metadata.name))
    const name = before.map(({ metadata }) => metadata.name ?? '').find((one) => !kept.has(one)) ?? ''
    const rules = [
      { apiGroups: [''], resources: ['pods'], verbs: ['get', 'list', 'watch'] },
      { apiGroups: ['hyperkube.io'], resources: ['moments'], verbs: ['get'] },
    ]
    await client.create(ClusterRoles, { metadata: { name: 'carl' }, rules })
    await client.create(ClusterRoleBindings, {
      metadata: { name: 'carl' },
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'carl' },
      subjects: [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'User', name: 'carl' }],
    })
    const where = { namespace, name }
    const [all, some] = [client, cluster.clientAs({ name: 'carl' })].map((asker) => new Reader({ client: asker }))
    const whole = await whyGone(Pods, where, all as Reader)
    assert.ok(
      whole.steps[0]?.because.some((ref) => ref.startsWith('replicasets.apps/')),
      JSON.stringify(whole.steps[0]),
    )
    const part = await whyGone(Pods, where, some as Reader)
    assert.match(part.verdict, /had more pods than replicas$/)
    assert.deepEqual(
      part.steps.flatMap(({ because }) => because.filter((ref) => !ref.startsWith('pods/'))),
      ['an object that you may not see'],
    )
  })

  it('shows nothing to a user who may not read the past', async () => {
    await cluster.client.create(ClusterRoleBindings, {
      metadata: { name: 'bob' },
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'admin' },
      subjects: [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'User', name: 'bob' }],
    })
    const reader = new Reader({ client: cluster.clientAs({ name: 'bob' }) })
    const found = await whyGone(Pods, { namespace, name: 'solo' }, reader)
    assert.match(found.verdict, /^NotKnown: you may not read the changes of Pod default\/solo/)
    assert.doesNotMatch(JSON.stringify(found), /ann/)
  })
})
