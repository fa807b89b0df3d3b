/**
 * Laws of explanations, for clusters and pods drawn by chance: every cited field has its value at the cited revision, the
 * numbers of nodes are those of the scheduler, proposed requests fit, and no user reads about objects that they may not get.
 */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { Namespaces, type Node, Nodes, type Pod, Pods } from '#apis/core/v1.ts'
import { ClusterRoleBindings, ClusterRoles, RoleBindings } from '#apis/rbac/v1.ts'
import { isNotKnown } from '#explain/explanation.ts'
import { createSeededRandom, type Random } from '#lib/random.ts'
import { startCluster, type TestCluster } from '#testing/cluster.ts'

import { falseEvidence, namespace, podOf, why } from './bed.ts'

const SEED = Number(process.env['PROPERTY_SEED'] ?? 1364) || 1364
const CLUSTERS = 4
const PODS = 40

function pick<T>(random: Random, values: readonly T[]): T {
  return values[random.int(values.length)] as T
}

async function drawCluster(random: Random, seed: number): Promise<TestCluster> {
  const nodes = Array.from({ length: 2 + random.int(6) }, (_, at) => ({
    name: `node-${at}`,
    capacity: {
      cpu: pick(random, ['1', '2', '4']),
      memory: pick(random, ['1Gi', '3Gi', '9Gi']),
      pods: pick(random, ['3', '20']),
    },
    labels: { disk: pick(random, ['ssd', 'hdd']), zone: pick(random, ['a', 'b']) },
    ...(random.int(4) === 0 && { taints: [{ key: 'gpu', value: 'true', effect: 'NoSchedule' }] }),
  }))
  return startCluster({ clock: 'virtual', nodes, seed })
}

function drawPod(random: Random, at: number): Pod {
  const requests = { cpu: pick(random, ['100m', '700m', '1500m', '3']), memory: pick(random, ['64Mi', '700Mi', '2Gi']) }
  const app = pick(random, ['web', 'db'])
  const antiAffinity = {
    podAntiAffinity: {
      requiredDuringSchedulingIgnoredDuringExecution: [
        { topologyKey: 'zone', labelSelector: { matchLabels: { app } } },
      ],
    },
  }
  const spread = {
    maxSkew: 1,
    topologyKey: 'zone',
    whenUnsatisfiable: 'DoNotSchedule',
    labelSelector: { matchLabels: { app } },
  }
  return podOf(`pod-${at}`, {
    requests,
    labels: { app },
    spec: {
      ...(random.int(3) === 0 && { nodeSelector: { disk: pick(random, ['ssd', 'hdd', 'nvme']) } }),
      ...(random.int(4) === 0 && { tolerations: [{ key: 'gpu', operator: 'Exists' }] }),
      ...(random.int(5) === 0 && { affinity: antiAffinity }),
      ...(random.int(5) === 0 && { topologySpreadConstraints: [spread] }),
    },
  })
}

/** By the message of the scheduler: the number of nodes that its first reason excludes. */
function countOf(pod: Pod, reason: string): number {
  const message = pod.status.conditions?.find(({ type }) => type === 'PodScheduled')?.message ?? ''
  return Number(new RegExp(`(\\d+) ${reason}`).exec(message.replace(/ preemption:.*$/s, ''))?.[1] ?? 0)
}

/** By the explanation: the nodes whose first problem has this text. */
function explainedOf(verdict: string, text: string): number {
  const groups = verdict.replace(/^.*because no node fits: /, '').split('; ')
  const counts = groups.flatMap((group) => {
    const [, count = '0', problems = ''] = /^(\d+) nodes?: (.*)$/.exec(group) ?? []
    return problems.startsWith(text) ? [Number(count)] : []
  })
  return counts.reduce((sum, count) => sum + count, 0)
}

describe('explanations', () => {
  for (let at = 0; at < CLUSTERS; at++) {
    it(`of drawn cluster ${at + 1} are true`, async () => {
      const random = createSeededRandom(SEED + at)
      await using cluster = await drawCluster(random, SEED + at)
      for (let pod = 0; pod < PODS; pod++) await cluster.client.create(Pods, drawPod(random, pod))
      await cluster.settle()
      const pending = (await cluster.client.list(Pods, { namespace })).items.filter(
        ({ spec }) => spec.nodeName === undefined,
      )
      assert.ok(pending.length > 0)
      for (const pod of pending) {
        const found = await why(cluster.client, Pods, pod.metadata.name ?? '')
        assert.ok(!isNotKnown(found), found.verdict)
        assert.deepEqual(await falseEvidence(cluster, [Pods, Nodes], found), [])
        for (const [text, reason] of [
          ['taint gpu=true:NoSchedule', 'node\\(s\\) had untolerated taint'],
          ['topology spread constraints forbid', "node\\(s\\) didn't match pod topology spread constraints"],
          ['label disk', "node\\(s\\) didn't match Pod's node affinity/selector"],
        ] as const) {
          assert.equal(explainedOf(found.verdict, text), countOf(pod, reason), `${pod.metadata.name}: ${found.verdict}`)
        }
        await tryHelp(cluster, pod, found.wouldHelp)
      }
    })
  }

  /** A pod with the proposed requests gets a node. */
  async function tryHelp(cluster: TestCluster, pod: Pod, sentences: readonly string[]): Promise<void> {
    for (const sentence of sentences) {
      const [, resource = '', left = ''] = /^request \S+ (\S+) less \((\S+) in all\)/.exec(sentence) ?? []
      if (resource === '') continue
      const requests = { ...pod.spec.containers[0]?.resources?.requests, [resource]: left }
      const { nodeSelector, tolerations, affinity, topologySpreadConstraints } = pod.spec
      const kept = { nodeSelector, tolerations, affinity, topologySpreadConstraints }
      const name = `${pod.metadata.name}-less`
      await cluster.client.create(
        Pods,
        podOf(name, { requests, labels: pod.metadata.labels ?? {}, spec: kept as never }),
      )
      await cluster.settle()
      const { spec } = await cluster.client.get(Pods, { namespace, name })
      assert.notEqual(spec.nodeName, undefined, `${pod.metadata.name}: ${sentence}`)
      await cluster.client.delete(Pods, { namespace, name }, { gracePeriodSeconds: 0 })
      await cluster.settle()
    }
  }

  it('show nothing of objects that the user may not get', async () => {
    const random = createSeededRandom(SEED)
    await using cluster = await drawCluster(random, SEED)
    const { client } = cluster
    await client.create(Namespaces, { metadata: { name: 'hidden' } })
    for (let at = 0; at < 10; at++) {
      const pod = drawPod(random, at)
      await client.create(Pods, { ...pod, metadata: { ...pod.metadata, namespace: 'hidden', name: `secret-${at}` } })
      await client.create(Pods, drawPod(random, at))
    }
    await cluster.settle()
    const nodes = (await client.list<Node>(Nodes)).items.map(({ metadata }) => metadata.name ?? '')
    const pods = (await client.list(Pods, { namespace })).items
    const secrets = (await client.list(Pods, { namespace: 'hidden' })).items.map(({ metadata }) => metadata.name ?? '')
    const rights: readonly (readonly [user: string, resources: readonly string[], isEverywhere: boolean])[] = [
      ['all-pods', ['pods', 'namespaces'], true],
      ['nodes', ['nodes', 'namespaces'], true],
      ['own-pods', ['pods'], false],
    ]
    for (const [name, resources, isEverywhere] of rights) {
      await client.create(ClusterRoles, {
        metadata: { name },
        rules: [{ apiGroups: [''], resources: [...resources], verbs: ['get', 'list'] }],
      })
      const roleRef = { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name }
      const subjects = [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'User', name }]
      if (isEverywhere) await client.create(ClusterRoleBindings, { metadata: { name }, roleRef, subjects })
      else await client.create(RoleBindings, { metadata: { namespace, name }, roleRef, subjects })
      for (const pod of pods) {
        const text = JSON.stringify(await why(cluster.clientAs({ name }), Pods, pod.metadata.name ?? ''))
        const ownNode = pod.spec.nodeName ?? ''
        const leaked = [
          ...(name === 'all-pods' ? [] : secrets),
          ...(name === 'nodes' ? [] : nodes.filter((node) => node !== ownNode)),
        ].filter((word) => text.includes(`${word}"`) || text.includes(`${word} `) || text.includes(`${word},`))
        assert.deepEqual(leaked, [], `${name}: ${pod.metadata.name}: ${text}`)
      }
    }
  })
})
