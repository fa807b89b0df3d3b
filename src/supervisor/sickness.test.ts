import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { type Health, isLost, nextHealth } from './sickness.ts'

/** Looks at one process or more: at which second, which number, and whether it says that it is well. When it was found lost first. */
function lostAt(...looks: readonly (readonly [second: number, pid: number, isWell: boolean])[]): number | undefined {
  let health: Health | undefined
  for (const [second, pid, isWell] of looks) {
    health = nextHealth(health, pid, isWell, second * 1000)
    if (isLost(health, second * 1000)) return second
  }
  return undefined
}

describe('a process that lives', () => {
  it('is lost when it is not well three times in a row, over twenty seconds', () => {
    assert.equal(lostAt([0, 1, true], [10, 1, false], [20, 1, false], [30, 1, false]), 30)
    assert.equal(lostAt([0, 1, true], [10, 1, false], [20, 1, true], [30, 1, false], [40, 1, false]), undefined)
  })

  it('is not lost because looks follow each other fast', () => {
    assert.equal(lostAt([0, 1, true], [1, 1, false], [2, 1, false], [3, 1, false], [4, 1, false]), undefined)
  })

  it('has a minute to come up', () => {
    const looks = [0, 10, 20, 30, 40, 50].map((second) => [second, 1, false] as const)
    assert.equal(lostAt(...looks), undefined)
    assert.equal(lostAt(...looks, [60, 1, false]), 60)
  })

  it('does not answer for the one before it', () => {
    assert.equal(lostAt([0, 1, true], [10, 1, false], [20, 1, false], [30, 2, false], [40, 2, false]), undefined)
  })
})
