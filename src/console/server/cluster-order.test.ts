/** Tests the order and the filter of clusters. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { byAttention, fittingClusters } from './cluster-order.ts'
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
