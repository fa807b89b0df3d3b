import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { absoluteMoment, momentToRead } from './absolute-moment.ts'

const NOW = Date.parse('2026-11-18T03:00:00.900Z')

describe('absoluteMoment', () => {
  it('becomes a time, to a second', () => {
    const rows = [
      ['-2m', '2026-11-18T02:58:00Z'],
      ['-1s', '2026-11-18T02:59:59Z'],
      ['2026-11-18T02:00Z', '2026-11-18T02:00:00Z'],
      ['2026-11-18T03:00:30.5+01:00', '2026-11-18T02:00:30Z'],
      ['rv:812', 'rv:812'],
    ] as const
    for (const [text, expected] of rows) assert.equal(absoluteMoment('--at', text, NOW).text, expected, text)
  })

  it('names the flag in its error', () => {
    assert.throws(
      () => absoluteMoment('--from', 'yesterday', NOW),
      /^KubectlError: --from: "yesterday" is not a moment/,
    )
    assert.throws(() => absoluteMoment('--to', '2027-01-01T00:00Z', NOW), /^KubectlError: --to: .* is in the future/)
  })
})

describe('momentToRead', () => {
  it('is undefined without --at', () => {
    assert.equal(momentToRead({}, NOW), undefined)
    assert.equal(momentToRead({ at: '', speed: '' }, NOW), undefined)
  })

  it('adds the speed of a watch', () => {
    for (const speed of ['60', '60x']) {
      assert.deepEqual(momentToRead({ at: '-2m', speed, watch: true }, NOW), {
        text: '2026-11-18T02:58:00Z@60x',
        timeMs: Date.parse('2026-11-18T02:58:00Z'),
      })
    }
  })

  it('refuses a speed without effect', () => {
    assert.throws(() => momentToRead({ at: '', speed: '60', watch: true }, NOW), /--speed only works with --at/)
    assert.throws(() => momentToRead({ at: '-2m', speed: '60', watch: false }, NOW), /--speed only works with --watch/)
    for (const speed of ['0', '-1', 'fast']) {
      assert.throws(() => momentToRead({ at: '-2m', speed, watch: true }, NOW), /not a number greater than 0/)
    }
  })
})
