/** Tests the order and the filter of rows. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { countGroups } from './groups.ts'
import type { Column, ListView, Row } from './messages.ts'
import { compareCells, filterOf, orderBy } from './order.ts'
import { OrderedRows } from './ordered-rows.ts'

const column = (name: string): Column => ({ name, type: 'string', format: '', description: '', priority: 0 })
const COLUMNS = ['Name', 'Status', 'Restarts'].map(column)

function row(name: string, more: Partial<Row> = {}): Row {
  const base = { uid: name, namespace: 'default', name, version: '1', createdAt: 0, labels: {} }
  return { ...base, cells: [name, 'Running', '0'], ...more }
}

describe('filterOf()', () => {
  const web = row('web-1', { labels: { app: 'web' }, cells: ['web-1', 'Running', '3 (2d ago)'] })
  const cases: readonly (readonly [filter: string, fits: boolean])[] = [
    ['web', true],
    ['WEB run', true],
    ['web pending', false],
    ['-web', false],
    ['-api', true],
    ['app=web', true],
    ['app=we', false],
    ['-app=web', false],
    ['status:run', true],
    ['status:web', false],
    ['namespace:def', true],
    ['restarts:2d', true],
    ['unknown:web', false],
    ['status==running', true],
    ['status==run', false],
    ['restarts=="3 (2d ago)"', true],
    ['"2d ago"', true],
    ['-namespace==default', false],
  ]
  for (const [filter, fits] of cases) {
    it(`returns ${fits} for "${filter}"`, () => assert.equal(filterOf(filter, COLUMNS)?.(web), fits))
  }

  it('returns undefined without words', () => assert.equal(filterOf('  ', COLUMNS), undefined))
})

describe('countGroups()', () => {
  const rows = [row('a'), row('b', { cells: ['b', 'Pending', '0'] }), row('c', { namespace: 'web' })]
  const cases: readonly (readonly [column: string, groups: string])[] = [
    ['Status', 'Running 2, Pending 1'],
    ['@namespace', 'default 2, web 1'],
    ['', ''],
    ['Unknown', ''],
  ]
  for (const [column, groups] of cases) {
    it(`returns "${groups}" for "${column}"`, () => {
      const counted = countGroups(rows, column, COLUMNS)
      assert.equal(counted.map(({ value, count }) => `${value} ${count}`).join(', '), groups)
    })
  }
})

describe('compareCells()', () => {
  const cases: readonly (readonly [string | number, string | number, number])[] = [
    [2, 10, -1],
    ['2', '10', -1],
    ['3 (2d ago)', '12 (1h ago)', -1],
    ['1/2', '2/2', -1],
    ['alpha', 'Beta', -1],
    ['same', 'SAME', 0],
    ['', 'x', -1],
    ['10.0.0.9', 'none', -1],
    ['1', '1 (2d ago)', -1],
  ]
  for (const [a, b, sign] of cases) {
    it(`compares ${a} with ${b}`, () => {
      assert.equal(Math.sign(compareCells(a, b)), sign)
      assert.equal(Math.sign(compareCells(b, a)) + sign, 0)
    })
  }
})

function namesIn(rows: OrderedRows, view: ListView): string[] {
  return rows.window(view).rows.map(({ name }) => name)
}

describe('OrderedRows', () => {
  it('shows a part of the rows in both directions, and the last ones instead of none', () => {
    const rows = new OrderedRows()
    rows.columns = COLUMNS
    for (const name of ['c', 'a', 'e', 'b', 'd']) rows.put(row(name))
    const view = { filter: '', sort: '@name', isDescending: false, group: '', from: 1, count: 3 }
    assert.deepEqual(namesIn(rows, view), ['b', 'c', 'd'])
    assert.deepEqual(namesIn(rows, { ...view, isDescending: true }), ['d', 'c', 'b'])
    const { from, shown } = rows.window({ ...view, from: 900, isDescending: true })
    assert.deepEqual([from, shown], [2, 5])
    assert.deepEqual(namesIn(rows, { ...view, from: 900, isDescending: true }), ['c', 'b', 'a'])
  })

  it('has the same order after changes as after sorting everything anew', () => {
    const rows = new OrderedRows()
    rows.columns = COLUMNS
    const view = { filter: '-skip', sort: 'Restarts', isDescending: true, group: '', from: 0, count: 100 }
    const present = new Map<string, Row>()
    let seed = 7
    const random = (limit: number): number => (seed = (seed * 16_807) % 2_147_483_647) % limit
    for (let step = 0; step < 2000; step++) {
      const name = `${random(5) === 0 ? 'skip' : 'pod'}-${random(60)}`
      if (random(3) === 0) {
        present.delete(name)
        rows.delete(name)
      } else {
        const changed = row(name, { cells: [name, 'Running', String(random(40))] })
        present.set(name, changed)
        rows.put(changed)
      }
      if (random(4) > 0) continue
      const expected = [...present.values()].filter(({ name }) => !name.startsWith('skip'))
      const names = orderBy('Restarts', COLUMNS)
        .sort(expected)
        .map(({ name }) => name)
      assert.deepEqual(namesIn(rows, view), names.toReversed())
    }
  })
})
