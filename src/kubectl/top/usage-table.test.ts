import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { nodeTable, podTable } from './usage-table.ts'

const WISHES = { noHeaders: false, sortBy: '', showSwap: false }

const PODS = [
  { metadata: { name: 'small', namespace: 'n' }, containers: [{ name: 'a', usage: { cpu: '1500u', memory: '3Mi' } }] },
  {
    metadata: { name: 'large', namespace: 'n' },
    containers: [
      { name: 'a', usage: { cpu: '100m', memory: '100Mi' } },
      { name: 'b', usage: { cpu: '1', memory: '28Mi' } },
    ],
  },
]

describe('kubectl top pods', () => {
  const options = { ...WISHES, withContainers: false, withNamespace: false, withSum: false }
  const rows = (more: object): string[][] =>
    podTable(PODS, { ...options, ...more })
      .trimEnd()
      .split('\n')
      .map((line) => line.trim().split(/\s+/))

  it('sums the usage of containers', () => {
    assert.deepEqual(rows({}), [
      ['NAME', 'CPU(cores)', 'MEMORY(bytes)'],
      ['large', '1100m', '128Mi'],
      ['small', '2m', '3Mi'],
    ])
  })

  it('sorts, adds a total and lists containers on request', () => {
    assert.deepEqual(rows({ sortBy: 'cpu', withSum: true }).slice(-2), [
      ['________', '________'],
      ['1102m', '131Mi'],
    ])
    assert.deepEqual(rows({ withContainers: true, noHeaders: true })[1], ['large', 'b', '1000m', '28Mi'])
  })
})

describe('kubectl top nodes', () => {
  it('prints percentages, and nodes without metrics last', () => {
    const metrics = [{ metadata: { name: 'n1' }, usage: { cpu: '500m', memory: '1Gi' } }]
    const available = new Map([
      ['n1', { cpu: '2', memory: '4Gi' }],
      ['n2', { cpu: '2', memory: '4Gi' }],
    ])
    const lines = nodeTable(metrics, available, WISHES).trimEnd().split('\n')
    assert.deepEqual(lines[1]?.trim().split(/\s+/), ['n1', '500m', '25%', '1024Mi', '25%'])
    assert.deepEqual(lines[2]?.trim().split(/\s+/), ['n2', '<unknown>', '<unknown>', '<unknown>', '<unknown>'])
  })
})
