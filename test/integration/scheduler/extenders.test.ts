/** Extenders beside the plugins: what they are asked, and what becomes of their answers. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import type { HttpClient, HttpRequest } from '#lib/http/client.ts'
import type { ExtenderConfiguration } from '#scheduler/configuration/configuration.ts'
import { Extender } from '#scheduler/extender.ts'

import { startCluster } from './cluster-under-test.ts'

interface Asked {
  readonly url: string
  readonly body: {
    readonly pod?: object
    readonly nodenames?: string[]
    readonly nodes?: { items: object[] }
    readonly node?: string
  }
}

/** Answers by the last part of the URL; a number is a status without a body. */
function fakeExtender(
  config: ExtenderConfiguration,
  answers: Readonly<Record<string, object | number>>,
): { readonly extender: Extender; readonly asked: Asked[] } {
  const asked: Asked[] = []
  const request = ({ url, body }: HttpRequest): Promise<object> => {
    asked.push({ url: String(url), body: JSON.parse(body as string) as Asked['body'] })
    const answer = answers[String(url).split('/').at(-1) ?? ''] ?? 404
    const status = typeof answer === 'number' ? answer : 200
    return Promise.resolve({ status, discard: () => undefined, text: () => Promise.resolve(JSON.stringify(answer)) })
  }
  return { extender: new Extender({ urlPrefix: 'http://x/', ...config }, { request } as unknown as HttpClient), asked }
}

describe('extenders', () => {
  it('take nodes away and give points, with upstream’s requests', async () => {
    const { extender, asked } = fakeExtender(
      { filterVerb: 'filter', prioritizeVerb: 'prioritize', weight: 5, nodeCacheCapable: true },
      {
        filter: { nodenames: ['n2', 'n3'], failedNodes: { n1: 'too loud' } },
        prioritize: [
          { host: 'n2', score: 1 },
          { host: 'n3', score: 10 },
        ],
      },
    )
    await using cluster = await startCluster({ extenders: [extender] })
    for (const name of ['n1', 'n2', 'n3']) await cluster.node(name)
    await cluster.pod('p')
    assert.equal(await cluster.placeOf('p'), 'n3')
    assert.deepEqual(
      asked.map(({ url, body }) => [url, body.nodenames?.toSorted()]),
      [
        ['http://x/filter', ['n1', 'n2', 'n3']],
        ['http://x/prioritize', ['n2', 'n3']],
      ],
    )
  })

  it('say why there is no node', async () => {
    const { extender } = fakeExtender(
      { filterVerb: 'filter' },
      { filter: { nodes: { items: [] }, failedNodes: { n1: 'too loud' }, failedAndUnresolvableNodes: { n2: 'gone' } } },
    )
    await using cluster = await startCluster({ extenders: [extender] })
    for (const name of ['n1', 'n2']) await cluster.node(name)
    await cluster.pod('p')
    assert.match(await cluster.whyNot('p'), /^0\/2 nodes are available: 1 gone, 1 too loud\./)
  })

  it('that cannot be asked keep the pod waiting, unless they are ignorable', async () => {
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

  it('bind in place of the plugin, and only what they manage', async () => {
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
    assert.deepEqual([asked.length > 0, asked[0]?.url, asked[0]?.body.node], [true, 'http://x/bind', 'n1'])
  })
})
