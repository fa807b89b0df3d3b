import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { type HealthHistory, isLost, recordHealth } from './health-history.ts'

/** Checks processes at given seconds, with pid and health, and returns when each first counted as lost. */
function lostAt(...looks: readonly (readonly [second: number, pid: number, isWell: boolean])[]): number | undefined {
  let health: HealthHistory | undefined
  for (const [second, pid, isWell] of looks) {
    health = recordHealth(health, pid, isWell, second * 1000)
    if (isLost(health, second * 1000)) return second
  }
  return undefined
}

describe('health of a supervised process', () => {
  it('fails after three failed checks in a row over twenty seconds', () => {
    assert.equal(lostAt([0, 1, true], [10, 1, false], [20, 1, false], [30, 1, false]), 30)
    assert.equal(lostAt([0, 1, true], [10, 1, false], [20, 1, true], [30, 1, false], [40, 1, false]), undefined)
  })

  it('does not fail because of checks in quick succession', () => {
    assert.equal(lostAt([0, 1, true], [1, 1, false], [2, 1, false], [3, 1, false], [4, 1, false]), undefined)
  })

  it('does not fail in the first minute after the start', () => {
    const looks = [0, 10, 20, 30, 40, 50].map((second) => [second, 1, false] as const)
    assert.equal(lostAt(...looks), undefined)
    assert.equal(lostAt(...looks, [60, 1, false]), 60)
  })

  it('does not include failed checks of the previous process', () => {
    assert.equal(lostAt([0, 1, true], [10, 1, false], [20, 1, false], [30, 2, false], [40, 2, false]), undefined)
  })
})
