import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { runProgram } from '#kits/cmd/run-program.ts'

import { at, splitLine } from './at.ts'

describe('hyperkube at', () => {
  it('separates the moment, the flags and the command', () => {
    const rows = [
      [['-2h'], { moments: ['-2h'], flags: [], command: undefined }],
      [['--print', '-2h'], { moments: ['-2h'], flags: ['--print'], command: undefined }],
      [['rv:8', '--context', 'x'], { moments: [], flags: ['rv:8', '--context', 'x'], command: undefined }],
      [['-2h', '--', 'ls', '-1', '--'], { moments: ['-2h'], flags: [], command: ['ls', '-1', '--'] }],
      [['-2h', '--'], { moments: ['-2h'], flags: [], command: [] }],
    ] as const
    for (const [args, expected] of rows) assert.deepEqual(splitLine(args), expected, args.join(' '))
  })

  it('refuses a line without one moment', async () => {
    const rows = [
      [[], /Give one moment/],
      [['-2h', '-3h'], /Give one moment/],
      [['yesterday'], /"yesterday" is not a moment/],
      [['-2h', '--'], /Give a command after "--"/],
      [['-2h', '--print', '--', 'ls'], /--print has no effect on a command/],
    ] as const
    for (const [args, message] of rows) {
      const { code, err } = await runProgram((context) => at.run(context, new AbortController().signal), { args })
      assert.equal(code, 1)
      assert.match(err, message)
    }
  })
})
