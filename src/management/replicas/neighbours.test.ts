import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { NeighbourTable } from './neighbours.ts'

const note = (id: string, renewal: string): { id: string; address: string; renewal: string } => ({
  id,
  address: `${id}:8443`,
  renewal,
})

describe('table of other replicas by their Leases', () => {
  it('considers a replica alive while its Lease changes', () => {
    const table = new NeighbourTable(15)
    table.learn([note('a', '1'), note('b', '1')], 0)
    table.learn([note('a', '2'), note('b', '1')], 10)
    assert.deepEqual([...table.alive(14).keys()], ['a', 'b'])
    assert.deepEqual([...table.alive(15)], [['a', 'a:8443']])
    assert.deepEqual([...table.alive(25)], [])
  })

  it('considers a replica alive again after it renews its Lease', () => {
    const table = new NeighbourTable(15)
    table.learn([note('a', '1')], 0)
    table.learn([note('a', '1')], 20)
    assert.equal(table.alive(20).size, 0)
    table.learn([note('a', '2')], 21)
    assert.equal(table.alive(21).size, 1)
  })

  it('removes a replica at once if its Lease is deleted', () => {
    const table = new NeighbourTable(15)
    table.learn([note('a', '1')], 0)
    table.learn([], 1)
    assert.equal(table.alive(1).size, 0)
  })

  it('returns replicas whose Leases expired long ago for deletion', () => {
    const table = new NeighbourTable(15)
    table.learn([note('a', '1')], 0)
    assert.deepEqual(table.expired(59), [])
    assert.deepEqual(table.expired(60), ['a'])
  })
})
