/** Tests the pure parts of a list: ages, colours of states, the rows in sight, and the names of kinds. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import type { Kind } from '../api/kinds.ts'
import { formatAge } from '../parts/age.ts'
import { groupKinds, titleOf } from '../parts/kind-groups.ts'
import { toneOf } from '../parts/tone.ts'
import { rowsInSight, scrollTopFor, spacersOf } from './row-window.ts'

describe('formatAge()', () => {
  const cases: readonly (readonly [seconds: number, text: string])[] = [
    [-5, '0s'],
    [119, '119s'],
    [120, '2m'],
    [185, '3m5s'],
    [3600, '60m'],
    [3 * 3600, '3h'],
    [3 * 3600 + 60, '3h1m'],
    [86_400, '24h'],
    [3 * 86_400 + 3600, '3d1h'],
    [40 * 86_400, '40d'],
    [3 * 365 * 86_400, '3y'],
  ]
  for (const [seconds, text] of cases) {
    it(`formats ${seconds} s as ${text}`, () => assert.equal(formatAge(seconds * 1000), text))
  }
})

describe('toneOf()', () => {
  const cases: readonly (readonly [column: string, text: string, tone: string | undefined])[] = [
    ['Status', 'Running', 'good'],
    ['Status', 'CrashLoopBackOff', 'bad'],
    ['Status', 'Init:0/1', 'busy'],
    ['Ready', '1/2', 'busy'],
    ['Ready', '2/2', undefined],
    ['Status', 'NotReady', 'bad'],
    ['Status', 'Ready,SchedulingDisabled', undefined],
    ['Name', 'Running', undefined],
  ]
  for (const [column, text, tone] of cases) {
    it(`returns ${tone} for ${column} ${text}`, () => assert.equal(toneOf(column, text), tone))
  }

  it('returns none for the containers of a pod that has completed', () => {
    assert.equal(toneOf('Ready', '0/1', ['job-1', '0/1', 'Completed', 0]), undefined)
    assert.equal(toneOf('Ready', '0/1', ['web-1', '0/1', 'Pending', 0]), 'busy')
  })
})

describe('the rows in sight', () => {
  it('include spare rows around the viewport', () => {
    assert.deepEqual(rowsInSight({ total: 1000, scrollTop: 3200, clientHeight: 320 }), { from: 88, count: 34 })
  })

  it('can be the last ones of a list that is higher than an element may be', () => {
    const total = 10_000_000
    const { from } = rowsInSight({ total, scrollTop: 8_000_000, clientHeight: 640 })
    assert.ok(from > total - 100)
  })

  const scrolls: readonly (readonly [index: number, scrollTop: number, expected: number])[] = [
    [5, 0, 0],
    [10, 0, 66],
    [2, 320, 64],
    [12, 320, 320],
  ]
  for (const [index, scrollTop, expected] of scrolls) {
    it(`come to ${expected} px for row ${index} seen from ${scrollTop} px`, () => {
      assert.equal(scrollTopFor(index, { total: 100, scrollTop, clientHeight: 320 }), expected)
    })
  }

  it('have spacers that keep the height of the list', () => {
    assert.deepEqual(spacersOf({ total: 100, from: 10, count: 30 }), [320, 1920])
  })
})

describe('groupKinds()', () => {
  const rest = { version: 'v1', singular: '', isNamespaced: true, verbs: [], shortNames: [] }
  const kind = (plural: string, group: string, name: string): Kind => ({
    ...rest,
    group,
    plural,
    kind: name,
    subresources: [],
  })

  it('puts kinds of other API groups below Custom, and the rest of Kubernetes below Other kinds', () => {
    const kinds = [
      kind('pods', '', 'Pod'),
      kind('widgets', 'example.com', 'Widget'),
      kind('csinodes', 'storage.k8s.io', 'CSINode'),
    ]
    assert.deepEqual(
      groupKinds(kinds).map(({ title, kinds: [first] }) => [title, first?.kind]),
      [
        ['Workloads', 'Pod'],
        ['Custom', 'Widget'],
        ['Other kinds', 'CSINode'],
      ],
    )
  })

  it('names kinds in the plural', () => {
    const titles = [
      ['PersistentVolumeClaim', 'persistentvolumeclaims', 'Persistent Volume Claims'],
      ['Ingress', 'ingresses', 'Ingresses'],
      ['NetworkPolicy', 'networkpolicies', 'Network Policies'],
      ['Endpoints', 'endpoints', 'Endpoints'],
    ] as const
    for (const [name, plural, title] of titles) assert.equal(titleOf({ kind: name, plural }), title)
  })
})
