/** Tests scheduler extenders: their requests and the effect of their responses. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { PriorityClasses } from '#apis/scheduling/v1.ts'
import type { HttpClient, HttpRequest } from '#lib/http/client.ts'
import type { ExtenderConfiguration } from '#scheduler/configuration/configuration.ts'
import { Extender } from '#scheduler/decision/extender.ts'

import { asking, type ClusterUnderTest, startCluster } from './cluster-under-test.ts'

interface Asked {
  readonly url: string
  readonly body: {
    readonly Pod?: object
    readonly NodeNames?: string[] | null
    readonly Nodes?: { items: object[] } | null
    readonly Node?: string
    readonly NodeNameToVictims?: Readonly<Record<string, { readonly Pods: { metadata: { name: string } }[] }>> | null
    readonly NodeNameToMetaVictims?: Readonly<Record<string, { readonly Pods: { UID: string }[] }>> | null
  }
}

/** Answers by the last part of the URL; a number is a status without a body. */
function fakeExtender(
  config: ExtenderConfiguration,
  answers: Readonly<Record<string, object | number | ((body: Asked['body']) => object)>>,
): { readonly extender: Extender; readonly asked: Asked[] } {
  const asked: Asked[] = []
  const request = ({ url, body }: HttpRequest): Promise<object> => {
    const sent = JSON.parse(body as string) as Asked['body']
    asked.push({ url: String(url), body: sent })
    const found = answers[String(url).split('/').at(-1) ?? ''] ?? 404
    const answer = typeof found === 'function' ? found(sent) : found
    const status = typeof answer === 'number' ? answer : 200
    return Promise.resolve({ status, discard: () => undefined, text: () => Promise.resolve(JSON.stringify(answer)) })
  }
  return { extender: new Extender({ urlPrefix: 'http://x/', ...config }, { request } as unknown as HttpClient), asked }
}

describe('scheduler extenders', () => {
  it("filter and score nodes, with upstream's requests", async () => {
    const { extender, asked } = fakeExtender(
      { filterVerb: 'filter', prioritizeVerb: 'prioritize', weight: 5, nodeCacheCapable: true },
      {
        filter: { NodeNames: ['n2', 'n3'], FailedNodes: { n1: 'too loud' } },
        prioritize: [
          { Host: 'n2', Score: 1 },
          { Host: 'n3', Score: 10 },
        ],
      },
    )
    await using cluster = await startCluster({ extenders: [extender] })
    for (const name of ['n1', 'n2', 'n3']) await cluster.node(name)
    await cluster.pod('p')
    assert.equal(await cluster.placeOf('p'), 'n3')
    assert.deepEqual(
      asked.map(({ url, body }) => [url, body.NodeNames?.toSorted()]),
      [
        ['http://x/filter', ['n1', 'n2', 'n3']],
        ['http://x/prioritize', ['n2', 'n3']],
      ],
    )
  })

  it('report why no node fits', async () => {
    const { extender } = fakeExtender(
      { filterVerb: 'filter' },
      { filter: { nodes: { items: [] }, failedNodes: { n1: 'too loud' }, failedAndUnresolvableNodes: { n2: 'gone' } } },
    )
    await using cluster = await startCluster({ extenders: [extender] })
    for (const name of ['n1', 'n2']) await cluster.node(name)
    await cluster.pod('p')
    assert.match(await cluster.whyNot('p'), /^0\/2 nodes are available: 1 gone, 1 too loud\./)
  })

  it('keep the pod pending if they fail, unless they are ignorable', async () => {
    const needed = fakeExtender({ filterVerb: 'filter' }, { filter: 500 })
    {
      await using cluster = await startCluster({ extenders: [needed.extender] })
      await cluster.node('n1')
      await cluster.pod('p')
      assert.equal(await cluster.whyNot('p'), 'failed filter with extender at URL http://x/filter, code 500')
    }
    const ignorable = fakeExtender({ filterVerb: 'filter', ignorable: true }, { filter: 500 })
    await using cluster = await startCluster({ extenders: [ignorable.extender] })
    await cluster.node('n1')
    await cluster.pod('p')
    assert.equal(await cluster.placeOf('p'), 'n1')
  })

  it('bind pods instead of the plugin, but only pods with managed resources', async () => {
    const { extender, asked } = fakeExtender(
      { bindVerb: 'bind', managedResources: [{ name: 'example.com/gpu' }] },
      { bind: { error: 'not today' } },
    )
    await using cluster = await startCluster({ extenders: [extender] })
    await cluster.node('n1', { allocatable: { cpu: '4', memory: '8Gi', pods: '10', 'example.com/gpu': '1' } })
    await cluster.pod('plain')
    const requests = { 'example.com/gpu': '1' }
    await cluster.pod('special', { containers: [{ name: 'c', image: 'i', resources: { requests, limits: requests } }] })
    assert.equal(await cluster.placeOf('plain'), 'n1')
    assert.equal(await cluster.whyNot('special'), 'not today')
    assert.deepEqual([asked.length > 0, asked[0]?.url, asked[0]?.body.Node], [true, 'http://x/bind', 'n1'])
  })

  /** Two nodes full of less important pods, and one pod that needs a whole node. */
  async function crowded(extender: Extender): Promise<ClusterUnderTest> {
    const cluster = await startCluster({ extenders: [extender] })
    await cluster.client.create(PriorityClasses, { metadata: { name: 'high' }, value: 1000 })
    for (const name of ['n1', 'n2']) {
      await cluster.node(name, { allocatable: { cpu: '2', memory: '8Gi', pods: '10' } })
      for (const at of [1, 2])
        await cluster.pod(`${name}-${at}`, {
          ...asking({ cpu: '1' }),
          nodeName: name,
          terminationGracePeriodSeconds: 0,
        })
    }
    await cluster.pod('important', { ...asking({ cpu: '2' }), priorityClassName: 'high' })
    return cluster
  }

  it('select preemption victims, as whole pods or by UID', async () => {
    for (const nodeCacheCapable of [false, true]) {
      const { extender, asked } = fakeExtender(
        { preemptVerb: 'preempt', nodeCacheCapable },
        {
          preempt({ NodeNameToVictims, NodeNameToMetaVictims }) {
            const metas = NodeNameToMetaVictims?.['n2']?.Pods
            const Pods = metas ?? NodeNameToVictims?.['n2']?.Pods.map(({ metadata }) => ({ UID: uidOf(metadata) }))
            return { NodeNameToMetaVictims: { n2: { Pods, NumPDBViolations: 0 } } }
          },
        },
      )
      await using cluster = await crowded(extender)
      assert.equal(await cluster.placeOf('important'), 'n2')
      const body: Asked['body'] = asked[0]?.body ?? {}
      const told = nodeCacheCapable ? body.NodeNameToMetaVictims : body.NodeNameToVictims
      assert.deepEqual(Object.keys(told ?? {}).toSorted(), ['n1', 'n2'])
      assert.equal(nodeCacheCapable ? body.NodeNameToVictims : body.NodeNameToMetaVictims, null)
    }
  })

  const answers: readonly [about: string, answer: object | number, why: RegExp][] = [
    ['allow no node', { NodeNameToMetaVictims: {} }, /preemption: no candidate node for preemption/],
    [
      'name a missing pod',
      { NodeNameToMetaVictims: { n1: { Pods: [{ UID: 'x' }] } } },
      /preemption: extender: http:\/\/x\/ claims to preempt pod \(UID: &\{x\}\) on node: n1, but the pod is not found on that node/,
    ],
    [
      'name no victim on a node',
      { NodeNameToMetaVictims: { n1: { Pods: [] } } },
      /preemption: expected at least one victim pod on node "n1"/,
    ],
    [
      'return invalid responses',
      [1],
      /preemption: json: cannot unmarshal array into Go value of type v1\.ExtenderPreemptionResult/,
    ],
    ['are unreachable', 500, /preemption: failed preempt with extender at URL http:\/\/x\/preempt, code 500/],
  ]
  for (const [about, answer, why] of answers) {
    it(`prevent preemption if they ${about}`, async () => {
      const { extender } = fakeExtender({ preemptVerb: 'preempt' }, { preempt: answer })
      await using cluster = await crowded(extender)
      assert.match(await cluster.whyNot('important'), why)
    })
  }
})

function uidOf(metadata: object): string {
  return (metadata as { readonly uid: string }).uid
}
