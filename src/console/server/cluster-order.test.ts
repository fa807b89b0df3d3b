/** Tests the order, the filter and the sizes of clusters. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { byAttention, bytesText, coresText, fittingClusters } from './cluster-order.ts'
import type { ManagedCluster } from './clusters.ts'

const cluster = (displayName: string, ready?: string): ManagedCluster => ({
  metadata: { name: `c-${displayName}` },
  spec: { displayName, source: 'imported' },
  status: {
    version: 'v1.36.4',
    agent: { connectedAt: 'a' },
    ...(ready !== undefined && { conditions: [{ type: 'Ready', status: ready, message: 'no answer' }] }),
  },
})
const names = (clusters: readonly ManagedCluster[]): readonly string[] => clusters.map(({ spec }) => spec.displayName)

describe('byAttention()', () => {
  it('puts problems first, then work, then the rest, each by name', () => {
    const waiting: ManagedCluster = { metadata: { name: 'c-w' }, spec: { displayName: 'w', source: 'imported' } }
    const all = [cluster('b', 'True'), cluster('a10', 'True'), cluster('a9', 'True'), waiting, cluster('z', 'False')]
    assert.deepEqual(names(byAttention(all)), ['z', 'w', 'a9', 'a10', 'b'])
  })
})

describe('fittingClusters()', () => {
  const all = [cluster('shop', 'True'), cluster('test', 'False')]
  for (const [filter, found] of [
    ['', ['shop', 'test']],
    ['SHOP', ['shop']],
    ['1.36 imported', ['shop', 'test']],
    ['-ready', []],
    ['no answer', ['test']],
    ['c-shop', ['shop']],
    ['imported -test', ['shop']],
  ] as const) {
    it(`finds ${found.join(' and ') || 'nothing'} by "${filter}"`, () =>
      assert.deepEqual(names(fittingClusters(all, filter)), found))
  }
})

describe('sizes of clusters', () => {
  for (const [text, cores] of [
    ['16', '16 cores'],
    ['1', '1 core'],
    ['1500m', '1.5 cores'],
    ['12345', '12,345 cores'],
    ['x', ''],
    [undefined, ''],
  ] as const) {
    it(`writes "${cores}" for CPU ${text}`, () => assert.equal(coresText(text), cores))
  }
  for (const [text, bytes] of [
    ['65011712Ki', '62 GiB'],
    ['1536Mi', '1.5 GiB'],
    ['100', '100 bytes'],
    ['0', '0 bytes'],
    ['9Ei', '8,192 PiB'],
    ['', ''],
  ] as const) {
    it(`writes "${bytes}" for memory ${text}`, () => assert.equal(bytesText(text), bytes))
  }
})
