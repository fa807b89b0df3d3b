import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { ageText, humanDuration, shortHumanDuration } from './duration.ts'

describe('human-readable duration', () => {
  const [S, M, H, D, Y] = [1000, 60_000, 3_600_000, 86_400_000, 365 * 86_400_000]
  for (const [ms, long, short] of [
    [-3 * S, '<invalid>', '<invalid>'],
    [-1 * S, '0s', '0s'],
    [0, '0s', '0s'],
    [119 * S, '119s', '1m'],
    [2 * M, '2m', '2m'],
    [5 * M + 30 * S, '5m30s', '5m'],
    [10 * M + 30 * S, '10m', '10m'],
    [179 * M, '179m', '2h'],
    [3 * H + 12 * M, '3h12m', '3h'],
    [8 * H + 12 * M, '8h', '8h'],
    [47 * H, '47h', '1d'],
    [2 * D, '2d', '2d'],
    [2 * D + 4 * H, '2d4h', '2d'],
    [8 * D + 4 * H, '8d', '8d'],
    [2 * Y - D, '729d', '1y'],
    [2 * Y, '2y', '2y'],
    [2 * Y + 34 * D, '2y34d', '2y'],
    [8 * Y + 34 * D, '8y', '8y'],
  ] as const) {
    it(`is ${long} for ${ms} ms, or ${short} in short form`, () => {
      assert.equal(humanDuration(ms), long)
      assert.equal(shortHumanDuration(ms), short)
    })
  }

  it('is the age of an object in tables', () => {
    assert.equal(ageText('2026-01-01T00:00:00Z', Date.UTC(2026, 0, 1, 0, 5)), '5m')
    assert.equal(ageText(undefined, 0), '<unknown>')
  })
})
