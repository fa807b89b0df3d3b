import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { fieldErrorText } from '#meta/validation/field-error.ts'

import { validateLogOptions } from './log.ts'

type Options = Parameters<typeof validateLogOptions>[0]

/** Options, support for separate streams, error. Compared with upstream v1.36. */
const RULES: readonly (readonly [Options, boolean, readonly string[]])[] = [
  [{}, false, []],
  [{ tailLines: 0, limitBytes: 1, sinceSeconds: 1, follow: true }, false, []],
  [{ tailLines: -1 }, false, ['tailLines: Invalid value: -1: must be greater than or equal to 0']],
  [{ limitBytes: 0 }, false, ['limitBytes: Invalid value: 0: must be greater than 0']],
  [{ sinceSeconds: 0 }, false, ['sinceSeconds: Invalid value: 0: must be greater than 0']],
  [
    { sinceSeconds: 0, sinceTime: '2026-01-01T00:00:00Z' },
    false,
    ['[]: Forbidden: at most one of `sinceTime` or `sinceSeconds` may be specified'],
  ],
  [{ stream: 'Stdout' }, false, ['stream: Forbidden: may not be specified']],
  [{ stream: 'Stdout' }, true, []],
  [{ stream: 'All', tailLines: 5 }, true, []],
  [
    { stream: 'Stderr', tailLines: 5 },
    true,
    ['[]: Forbidden: `tailLines` and specific `stream` are mutually exclusive for now'],
  ],
  [{ stream: 'x' }, true, ['stream: Unsupported value: "x": supported values: "All", "Stderr", "Stdout"']],
]

describe('validation of log options', () => {
  for (const [options, canSplit, texts] of RULES) {
    it(`reports ${texts[0] ?? 'no error'} for ${JSON.stringify(options)}${canSplit ? ' with split streams' : ''}`, () => {
      assert.deepEqual(validateLogOptions(options, canSplit).map(fieldErrorText), texts)
    })
  }
})
