import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { parseMoment } from './moment.ts'

const NOW = Date.UTC(2026, 10, 19, 12)
const at = (time: string): { timeMs: number } => ({ timeMs: Date.parse(time) })

describe('parseMoment()', () => {
  const valid: readonly (readonly [text: string, moment: object])[] = [
    ['rv:812', { revision: 812 }],
    ['rv:0', { revision: 0 }],
    ['-2h', at('2026-11-19T10:00:00Z')],
    ['-1h30m', at('2026-11-19T10:30:00Z')],
    ['-2d', at('2026-11-17T12:00:00Z')],
    ['-1d12h', at('2026-11-18T00:00:00Z')],
    ['-0s', at('2026-11-19T12:00:00Z')],
    ['2026-11-18T03:00Z', at('2026-11-18T03:00:00Z')],
    ['2026-11-18t03:00:07.25z', at('2026-11-18T03:00:07.250Z')],
    ['2026-11-18T03:00+02:00', at('2026-11-18T01:00:00Z')],
  ]
  for (const [text, moment] of valid) {
    it(`reads ${text}`, () => assert.deepEqual(parseMoment(text, NOW), moment))
  }

  const invalid = ['', '-', '-2', '2h', 'rv:', 'rv:-1', 'rv:1e3', '2026-11-18', '2026-11-18T03:00']
  for (const text of [...invalid, '2026-13-18T03:00Z', 'yesterday', '-2h ', '2026-11-18T03Z']) {
    it(`refuses "${text}"`, () => {
      assert.throws(() => parseMoment(text, NOW), {
        name: 'TypeError',
        message: /is not a moment; write a time ago as -2h/,
      })
    })
  }

  it('refuses a moment in the future', () => {
    assert.throws(() => parseMoment('2026-11-19T12:01Z', NOW), /"2026-11-19T12:01Z" is in the future/)
    assert.throws(() => parseMoment('--1h', NOW), TypeError)
  })
})
