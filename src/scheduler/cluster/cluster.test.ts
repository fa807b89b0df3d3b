/** Property: the incrementally updated cluster state equals a state that is counted from scratch. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import fc from 'fast-check'

import type { Node, Pod } from '#apis/core/v1.ts'
import { compareText } from '#lib/go/text.ts'

import { Cluster } from './cluster.ts'
import type { TermKind } from './existing-affinity-terms.ts'
import type { Description } from './pod-counts.ts'
import { PodInfo } from './pod-info.ts'

const NODES = ['n1', 'n2', 'n3', 'n4']
const ZONES = ['a', 'b', undefined] as const
const APPS = ['x', 'y'] as const
const UIDS = ['p1', 'p2', 'p3', 'p4', 'p5', 'p6']

function nodeOf(name: string, zone: string | undefined): Node {
  const labels = { host: name, ...(zone !== undefined && { zone }) }
  return {
    metadata: { name, labels },
    spec: {},
    status: { allocatable: { cpu: '4', pods: '10' }, daemonEndpoints: { kubeletEndpoint: { Port: 0 } } },
  } as unknown as Node
}

function podOf(uid: string, app: string, shuns: string): PodInfo {
  const term = { topologyKey: 'zone', labelSelector: { matchLabels: { app: shuns } } }
  const pod: Pod = {
    metadata: { namespace: 'ns', name: uid, uid, labels: { app } },
    spec: {
      containers: [
        { name: 'c', resources: { requests: { cpu: '1' } }, ports: [{ containerPort: 1, hostPort: uid.length }] },
      ],
      affinity: {
        podAntiAffinity: {
          requiredDuringSchedulingIgnoredDuringExecution: [term],
          preferredDuringSchedulingIgnoredDuringExecution: [{ weight: 5, podAffinityTerm: term }],
        },
      },
      volumes: [{ name: 'v', persistentVolumeClaim: { claimName: app } }],
    },
    status: {},
  }
  return new PodInfo(pod)
}

const DESCRIPTIONS: readonly Description[] = APPS.flatMap((app) => [
  { id: `any ${app}`, matches: ({ labels }) => labels?.['app'] === app },
  {
    id: `ns ${app}`,
    namespaces: new Set(['ns']),
    matches: ({ labels, namespace }) => namespace === 'ns' && labels?.['app'] === app,
  },
])
const SORTS: readonly TermKind[] = ['affinity', 'antiAffinity', 'preferred', 'avoided']

function sorted(entries: Iterable<readonly [key: string, value: unknown]>): unknown[] {
  return [...entries].sort(([a], [b]) => compareText(a, b))
}

/** Everything that decisions read. */
function snapshotOf(cluster: Cluster): unknown {
  return {
    nodes: sorted(
      cluster.nodes.map(({ name, requested, likely, ports, pods }) => [
        name,
        [requested, likely, sorted(ports), [...pods.keys()].sort()],
      ]),
    ),
    counts: DESCRIPTIONS.map((one) => {
      const count = cluster.counts.of(one)
      return [one.id, sorted(count.onNode), sorted(count.by('zone')), sorted(count.by('host'))]
    }),
    affinityTerms: SORTS.map((sort) =>
      sorted(Array.from(cluster.affinityTerms.of(sort), ({ term, byValue }) => [term.id, sorted(byValue)])),
    ),
    labelCounts: ['zone', 'host'].map((key) => [
      sorted(cluster.labelCounts.of(key).nodes),
      cluster.labelCounts.of(key).total,
    ]),
    claims: APPS.map((app) => cluster.isClaimInUse(`ns/${app}`)),
  }
}

const step = fc.oneof(
  fc.record({ do: fc.constant('node' as const), name: fc.constantFrom(...NODES), zone: fc.constantFrom(...ZONES) }),
  fc.record({ do: fc.constant('no node' as const), name: fc.constantFrom(...NODES) }),
  fc.record({
    do: fc.constantFrom('pod' as const, 'assume' as const),
    uid: fc.constantFrom(...UIDS),
    name: fc.constantFrom(...NODES),
    app: fc.constantFrom(...APPS),
    shuns: fc.constantFrom(...APPS),
  }),
  fc.record({
    do: fc.constantFrom('no pod' as const, 'forget' as const, 'look' as const),
    uid: fc.constantFrom(...UIDS),
  }),
)

describe('cluster cache of the scheduler', () => {
  it('has the same state after incremental changes as after a rebuild', () => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
        const kept = new Cluster(() => undefined)
        const nodes = new Map<string, Node>()
        const placed = new Map<string, { pod: PodInfo; node: string; isAssumed: boolean }>()
        for (const one of steps) {
          if (one.do === 'node') {
            const node = nodeOf(one.name, one.zone)
            nodes.set(one.name, node)
            kept.setNode(node)
          } else if (one.do === 'no node') {
            nodes.delete(one.name)
            kept.removeNode(one.name)
          } else if (one.do === 'pod') {
            const pod = podOf(one.uid, one.app, one.shuns)
            placed.set(one.uid, { pod, node: one.name, isAssumed: false })
            kept.setPod(pod, one.name)
          } else if (one.do === 'assume') {
            // Only pods without a node are assumed.
            if (placed.has(one.uid)) continue
            const pod = podOf(one.uid, one.app, one.shuns)
            placed.set(one.uid, { pod, node: one.name, isAssumed: true })
            kept.assume(pod, one.name)
          } else if (one.do === 'no pod') {
            placed.delete(one.uid)
            kept.removePod(one.uid)
          } else if (one.do === 'forget') {
            if (placed.get(one.uid)?.isAssumed === true) placed.delete(one.uid)
            kept.forget(one.uid)
            // Counts are created on first use, which may be at any time.
          } else snapshotOf(kept)
        }
        const anew = new Cluster(() => undefined)
        for (const node of nodes.values()) anew.setNode(node)
        for (const { pod, node } of placed.values()) anew.setPod(pod, node)
        assert.deepEqual(snapshotOf(kept), snapshotOf(anew))
      }),
    )
  })
})

describe('NodeOrder of the scheduler', () => {
  const inZone = (name: string, zone: string): Node => {
    const node = nodeOf(name, undefined)
    return { ...node, metadata: { name, labels: { 'topology.kubernetes.io/zone': zone } } }
  }
  const names = (cluster: Cluster): string[] => cluster.nodes.map(({ name }) => name)

  it('alternates between zones of different sizes', () => {
    const cluster = new Cluster(() => undefined)
    for (const [name, zone] of [
      ['a1', 'a'],
      ['a2', 'a'],
      ['a3', 'a'],
      ['b1', 'b'],
    ] as const)
      cluster.setNode(inZone(name, zone))
    assert.deepEqual(names(cluster), ['a1', 'b1', 'a2', 'a3'])
  })

  it('keeps the position of a changed node, and moves it if its zone changed', () => {
    const cluster = new Cluster(() => undefined)
    for (const name of ['n1', 'n2', 'n3']) cluster.setNode(inZone(name, 'a'))
    const before = cluster.nodes
    cluster.setNode(inZone('n1', 'a'))
    assert.equal(cluster.nodes, before)
    assert.deepEqual(names(cluster), ['n1', 'n2', 'n3'])
    cluster.setNode(inZone('n1', 'b'))
    assert.deepEqual(names(cluster), ['n2', 'n1', 'n3'])
    cluster.removeNode('n2')
    cluster.setNode(inZone('n2', 'a'))
    assert.deepEqual(names(cluster), ['n3', 'n1', 'n2'])
  })
})
