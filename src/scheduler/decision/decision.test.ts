import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import type { Node } from '#apis/core/v1.ts'
import { createSeededRandom } from '#lib/random.ts'

import { Cluster } from '../cluster/cluster.ts'
import { Nominations } from '../cluster/nominations.ts'
import { PodInfo } from '../cluster/pod-info.ts'
import { explain } from '../framework/explanation.ts'
import { BUSY, type Plugin, unresolvable, unschedulable } from '../framework/framework.ts'
import type { Profile } from '../framework/profile.ts'
import { Decider } from './decision.ts'

interface PodOptions {
  readonly priority?: number
  readonly labels?: Record<string, string>
}

const podOf = (name: string, { priority = 0, labels = {} }: PodOptions = {}): PodInfo =>
  new PodInfo({
    metadata: { namespace: 'ns', name, uid: name, labels },
    spec: { priority, containers: [] },
    status: {},
  })

function clusterOf(count: number): Cluster {
  const cluster = new Cluster(() => undefined)
  for (let at = 0; at < count; at++)
    cluster.setNode({ metadata: { name: `n${at}` }, spec: {}, status: {} } as unknown as Node)
  return cluster
}

function deciderOf(cluster: Cluster, plugins: Record<string, Plugin>, more: Partial<Profile> = {}): Decider {
  const enabled = Object.entries(plugins).map(([name, plugin]) => ({ name, plugin, weight: 1 }))
  const having = (...points: readonly (keyof Plugin)[]) =>
    enabled.filter(({ plugin }) => points.some((point) => plugin[point] !== undefined))
  const profile = {
    percentageOfNodesToScore: 0,
    preFilter: having('preFilter'),
    filter: having('filter', 'preFilter'),
    score: having('score', 'preScore'),
    ...more,
  } as Profile
  return new Decider(profile, { cluster, nominations, random: createSeededRandom(1) })
}

let nominations = new Nominations()
const names = (nodes: readonly { readonly name: string }[]): string[] => nodes.map(({ name }) => name)

describe('Decider.search', () => {
  it('visits every node once despite interruptions, and stops at an error', () => {
    const cluster = clusterOf(5)
    const broken = new Set<string>()
    const slow: Plugin = {
      preFilter() {
        let isRested = true
        const seen = new Set<string>()
        return {
          resume: () => void (isRested = true),
          filter({ name }) {
            if (!isRested) return BUSY
            isRested = false
            assert.ok(!seen.has(name))
            seen.add(name)
            return broken.has(name) ? { code: 'error', reasons: ['because'] } : undefined
          },
        }
      },
    }
    const decider = deciderOf(cluster, { slow })
    for (let round = 0; round < 3; round++) {
      const search = decider.search(podOf('p'))
      while (search.isUnfinished) decider.resume(search)
      assert.deepEqual(names(search.feasible).sort(), ['n0', 'n1', 'n2', 'n3', 'n4'])
    }
    broken.add('n2')
    const search = decider.search(podOf('q'))
    while (search.isUnfinished) decider.resume(search)
    assert.deepEqual(names(search.feasible), [])
    assert.deepEqual(search.refusals.get('n2')?.reasons, ['running "slow" filter plugin: because'])
  })

  const rows: readonly [nodes: number, percentage: number, found: number][] = [
    [99, 0, 99],
    [100, 0, 100],
    [125, 0, 100],
    [1000, 0, 420],
    [5000, 0, 500],
    [6000, 0, 300],
    [1000, 30, 300],
    [1000, 5, 100],
    [1000, 100, 1000],
  ]
  for (const [count, percentage, found] of rows) {
    it(`finds ${found} feasible nodes of ${count} with percentageOfNodesToScore ${percentage}`, () => {
      const decider = deciderOf(clusterOf(count), {}, { percentageOfNodesToScore: percentage })
      assert.equal(decider.search(podOf('p')).feasible.length, found)
    })
  }

  it('continues at the node after the previous search', () => {
    const decider = deciderOf(clusterOf(150), {})
    const first = names(decider.search(podOf('p')).feasible)
    const second = names(decider.search(podOf('p')).feasible)
    assert.deepEqual([first[0], first.at(-1), second[0], second.at(-1)], ['n0', 'n99', 'n100', 'n49'])
  })

  it('stops at the first plugin that rejects a node, and records the reason', () => {
    const decider = deciderOf(clusterOf(4), {
      First: { filter: (_, { name }) => (name === 'n0' ? unresolvable('no good') : undefined) },
      Second: {
        preFilter: () => ({ filter: ({ name }) => (name < 'n2' ? unschedulable('a', 'b') : unschedulable('a')) }),
      },
    })
    const search = decider.search(podOf('p'))
    assert.equal(explain(search, 4, []), '0/4 nodes are available: 1 b, 1 no good, 3 a.')
  })

  it('visits only nodes in the intersection of all PreFilter results', () => {
    const naming = (...nodes: readonly string[]): Plugin => ({
      preFilter: () => ({ nodes: new Set(nodes), filter: () => unschedulable('taken') }),
    })
    const cluster = clusterOf(5)
    const agreed = deciderOf(cluster, { A: naming('n1', 'n2'), B: naming('n2', 'n3') }).search(podOf('p'))
    assert.equal(
      explain(agreed, 5, ['help']),
      "0/5 nodes are available: 1 taken, 4 node(s) didn't satisfy plugin(s) [A B]. help",
    )
    const torn = deciderOf(cluster, { B: naming('n1'), A: naming('n3') }).search(podOf('p'))
    assert.equal(
      explain(torn, 5, []),
      "0/5 nodes are available: node(s) didn't satisfy plugin(s) [A B] simultaneously.",
    )
  })

  it('includes nominated pods of at least equal priority', () => {
    nominations = new Nominations()
    const cluster = clusterOf(2)
    const roomForOne: Plugin = { filter: (_, { pods }) => (pods.size > 0 ? unschedulable('full') : undefined) }
    const decider = deciderOf(cluster, { roomForOne })
    nominations.set(podOf('promised', { priority: 5 }), 'n0')
    assert.deepEqual(names(decider.search(podOf('lesser')).feasible), ['n1'])
    assert.deepEqual(names(decider.search(podOf('greater', { priority: 9 })).feasible).sort(), ['n0', 'n1'])
    assert.deepEqual(names(decider.search(podOf('promised', { priority: 5 })).feasible).sort(), ['n0', 'n1'])
  })
})

describe('Decider.best', () => {
  it('selects the node with the highest weighted score', () => {
    const cluster = clusterOf(3)
    const decider = deciderOf(cluster, {
      Likes: { score: (_, { name }) => (name === 'n1' ? 10 : 0) },
      LikesMore: { preScore: () => ({ score: ({ name }) => (name === 'n2' ? 20 : 0) }) },
    })
    assert.equal(decider.best(decider.search(podOf('p'))).name, 'n2')
    assert.equal(decider.best(decider.search(podOf('p')), new Map([['n0', 100]])).name, 'n0')
  })

  it('selects uniformly among nodes with equal scores', () => {
    const decider = deciderOf(clusterOf(3), { Same: { score: () => 1 } })
    const chosen = new Set(Array.from({ length: 50 }, () => decider.best(decider.search(podOf('p'))).name))
    assert.equal(chosen.size, 3)
  })

  it('scores only changed nodes again for equivalent pods', () => {
    const cluster = clusterOf(2)
    const decider = deciderOf(cluster, { Emptier: { score: (_, { pods }) => 10 - pods.size } })
    const first = decider.best(decider.search(podOf('a'))).name
    cluster.assume(podOf('a'), first)
    assert.notEqual(decider.best(decider.search(podOf('b'))).name, first)
  })
})
